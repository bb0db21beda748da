package kit

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// XRCD is an XRC domain that the case's process has open.
type XRCD struct {
	verbs.XRCD
	CloseNow func(c *spec.C) // closes it; the case's end does it too
}

// NoFile is the descriptor that opens an XRC domain without a name.
const NoFile = -1

// OpenXRCD opens the XRC domain that a file names by its descriptor (NoFile: one without a name).
func (e *Env) OpenXRCD(c *spec.C, fd, flags int) *XRCD {
	x, err := e.TryXRCD(c, fd, flags)
	ok(c, "open_xrcd", err)
	return &XRCD{x, DestroyOnce(c, "close_xrcd", x.Close)}
}

// TryXRCD opens an XRC domain as OpenXRCD does, and returns the error of ibv_open_xrcd.
func (e *Env) TryXRCD(c *spec.C, fd, flags int) (verbs.XRCD, error) {
	return e.Ctx.OpenXRCD(c.T, verbs.XRCDInitAttr{CompMask: verbs.XRCDInitFD | verbs.XRCDInitOFlags, FD: fd, OFlags: flags})
}

// OpenFile opens a file in the folder that the host's processes share, creates it if need be, and
// closes it when the case ends.
func OpenFile(c *spec.C, name string) (fd int) {
	files := ProcessAs[verbs.FileOpener](c)
	fd, err := files.OpenFile(c.T, name, syscall.O_CREAT)
	ok(c, "open a file", err)
	c.Defer(func() { ok(c, "close the file", files.CloseFD(c.T, fd)) })
	return fd
}

// CreateTarget creates an XRC target QP in RESET.
func (e *Env) CreateTarget(c *spec.C, d *XRCD, o Options) *QP {
	o.Type = verbs.QPTXRCRecv
	qp, err := e.Ctx.CreateQP(c.T, verbs.QPInitAttr{Type: o.Type, CompMask: verbs.QPInitXRCD, XRCD: d.XRCD})
	ok(c, "create_qp_ex of an XRC target", err)
	return &QP{QP: qp, Env: e, Opt: o, DestroyNow: DestroyOnce(c, "destroy_qp", qp.Destroy)}
}

// TryTarget opens a further handle of an XRC target QP, and returns the error of ibv_open_qp.
func (e *Env) TryTarget(c *spec.C, d *XRCD, qpn uint32) (verbs.QP, error) {
	return e.Ctx.OpenQP(c.T, verbs.QPOpenAttr{CompMask: verbs.QPOpenAll, QPN: qpn, XRCD: d.XRCD, Type: verbs.QPTXRCRecv})
}

// XRCPair is a sending XRC QP, A, and the target QP to which it is connected, B.
type XRCPair struct {
	*Env
	Domain *XRCD
	A, B   *QP
}

// NewXRCPair opens the device and connects an XRCPair in a domain without a name.
func NewXRCPair(c *spec.C, o Options) *XRCPair {
	e := Open(c)
	return e.XRCPair(c, e.OpenXRCD(c, NoFile, syscall.O_CREAT), o)
}

// XRCPair creates and connects an XRCPair in a domain.
func (e *Env) XRCPair(c *spec.C, d *XRCD, o Options) *XRCPair {
	o.Type = verbs.QPTXRCSend
	p := &XRCPair{Env: e, Domain: d, A: e.CreateQP(c, o)}
	o.PSN = (o.PSN + 0x1000) & 0xffffff
	p.B = e.CreateTarget(c, d, o)
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTR)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
	return p
}

// XRCSRQ is an XRC SRQ with its number and its CQ.
type XRCSRQ struct {
	SRQ
	N  uint32
	CQ verbs.CQ
}

// CreateXRCSRQ creates an XRC SRQ for wr receives, with a CQ of its own.
func (e *Env) CreateXRCSRQ(c *spec.C, d *XRCD, wr int) *XRCSRQ {
	return e.CreateXRCSRQOn(c, d, e.PD, e.CreateCQ(c, 255), wr)
}

// CreateXRCSRQOn creates an XRC SRQ for wr receives on a PD and a CQ.
func (e *Env) CreateXRCSRQOn(c *spec.C, d *XRCD, pd verbs.PD, cq verbs.CQ, wr int) *XRCSRQ {
	s, err := e.Ctx.CreateSRQEx(c.T, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: uint32(wr), MaxSGE: 2},
		CompMask: verbs.SRQInitAll, Type: verbs.SRQXRC, PD: pd, XRCD: d.XRCD, CQ: cq})
	ok(c, "create_srq_ex", err)
	x := &XRCSRQ{SRQ: SRQ{s, DestroyOnce(c, "destroy_srq", s.Destroy)}, CQ: cq}
	x.N, err = s.Num(c.T)
	ok(c, "get_srq_num", err)
	return x
}

// To returns the request addressed to the SRQ, which receives a send, and whose PD checks the
// memory of other requests.
func (x *XRCSRQ) To(w verbs.SendWR) verbs.SendWR {
	w.XRCRemoteSRQN = x.N
	return w
}

// OtherXRC is a process that has opened the XRC domain of a file, with an SRQ and a buffer for its
// receives.
type OtherXRC struct {
	*OtherProcess
	Domain uint64
	SRQ    uint64
	N      uint32 // of the SRQ
	Mem    *OtherBuffer
}

// JoinXRC starts a process that opens the domain of a file and creates an SRQ with n receives of 64
// bytes each.
func JoinXRC(c *spec.C, file string, n int) *OtherXRC {
	o := &OtherXRC{OtherProcess: OpenOtherProcess(c, 0, nil)}
	o.Domain = o.Do(c, player.OpenXRCD, Args{"flags": syscall.O_CREAT}, []byte(file)).Values["xrcd"]
	v := o.Do(c, player.CreateXRCSRQ, Args{"xrcd": o.Domain}, nil).Values
	o.SRQ, o.N = v["srq"], uint32(v["srqn"])
	o.Mem = o.Buffer(c, 64*n, AllAccess, 0)
	for i := range n {
		o.Do(c, player.PostSRQ, Args{"srq": o.SRQ, "id": uint64(i), "buf": o.Mem.ID, "off": uint64(64 * i), "len": 64}, nil)
	}
	return o
}

// Target creates an XRC target QP in the process.
func (o *OtherXRC) Target(c *spec.C) *OtherQP {
	v := o.Do(c, player.CreateTarget, Args{"xrcd": o.Domain}, nil).Values
	return &OtherQP{o.OtherProcess, v["qp"], uint32(v["qpn"]), v}
}

// OpenTarget opens a target QP of another process in the process.
func (o *OtherXRC) OpenTarget(c *spec.C, of *OtherQP) *OtherQP {
	v := o.Do(c, player.OpenTarget, Args{"xrcd": o.Domain, "qpn": uint64(of.QPN)}, nil).Values
	return &OtherQP{o.OtherProcess, v["qp"], uint32(v["qpn"]), v}
}

// To returns the request addressed to the SRQ of the process.
func (o *OtherXRC) To(w verbs.SendWR) verbs.SendWR {
	w.XRCRemoteSRQN = o.N
	return w
}

// SenderTo creates an XRC QP in the case's process and connects it to a target QP of another
// process.
func (e *Env) SenderTo(c *spec.C, t *OtherQP, o Options) *QP {
	o.Type = verbs.QPTXRCSend
	a := e.CreateQP(c, o)
	far := o
	far.Type, far.PSN = verbs.QPTXRCRecv, (o.PSN+0x1000)&0xffffff
	t.Connect(c, a.Peer(), far, verbs.QPSRTR)
	a.BringUp(c, t.Peer(far.PSN), verbs.QPSRTS)
	return a
}
