package workload

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// XRCCalls says by which calls programs make, share and give back XRC target QPs. Kernels of
// different times have different ones.
type XRCCalls uint8

// The calls.
const (
	// XRCShared: ibv_create_qp_ex, ibv_open_qp and ibv_destroy_qp.
	XRCShared XRCCalls = iota
	// XRCOwned: the same without ibv_open_qp.
	XRCOwned
	// XRCRegistered: create_, modify_, reg_ and unreg_xrc_rcv_qp of OFED 1.3.
	XRCRegistered
	// XRCAllocated: alloc_xrc_rcv_qp of December 2007. No call shares or ends a QP.
	XRCAllocated
)

// OpenDomain opens the domain that a file names, with O_CREAT and O_EXCL of flags; "": one without
// a name. The file is there afterwards.
func (m *Member) OpenDomain(t verbs.Thread, file string, flags int) (verbs.XRCD, error) {
	a := verbs.XRCDInitAttr{CompMask: verbs.XRCDInitFD | verbs.XRCDInitOFlags, FD: -1, OFlags: flags}
	if file == "" {
		return m.Ctx.OpenXRCD(t, a)
	}
	files, ok := m.Proc.(verbs.FileOpener)
	if !ok {
		return nil, fmt.Errorf("the target opens no files: %w", syscall.ENOSYS)
	}
	var err error
	if a.FD, err = files.OpenFile(t, file, syscall.O_CREAT); err != nil {
		return nil, err
	}
	d, err := m.Ctx.OpenXRCD(t, a)
	err = cmp.Or(err, files.CloseFD(t, a.FD)) // the domain holds the inode
	return d, err
}

// XRCTarget is a target QP as one process has it.
type XRCTarget struct {
	QPN uint32
	d   verbs.XRCD
	qp  verbs.QP // nil: it is known by its number
}

// attributes of a connection; those of its ends are added.
func xrcAttr(peer uint32, ah verbs.AHAttr) verbs.QPAttr {
	const psn = 0x1000
	return verbs.QPAttr{Port: port, Access: verbs.AccessLocalWrite | verbs.AccessRemoteWrite, AH: ah, PathMTU: verbs.MTU1024, DestQPN: peer, RQPSN: psn,
		MaxDestRdAtomic: 1, MinRNRTimer: 12, SQPSN: psn, Timeout: xrcTimeout, RetryCnt: 2, RNRRetry: 1, MaxRdAtomic: 1}
}

// xrcTimeout is the code of the ACK timeout, 1 ms: a target that is gone is noticed soon.
const xrcTimeout = 8

const (
	xrcInitMask   = verbs.QPMaskState | verbs.QPMaskPort | verbs.QPMaskPKeyIndex | verbs.QPMaskAccessFlags
	xrcSendMask   = verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	xrcTargetMask = xrcSendMask | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	xrcRTSMask    = verbs.QPMaskState | verbs.QPMaskSQPSN | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
)

// Listen makes a target QP in a domain that is ready to receive what an initiator of a peer sends.
func (m *Member) Listen(t verbs.Thread, d verbs.XRCD, peer *Member, initiator uint32) (XRCTarget, error) {
	a := xrcAttr(initiator, m.ctx.pathTo(peer.ctx))
	g := XRCTarget{d: d}
	modify := func(a *verbs.QPAttr, mask verbs.QPAttrMask) error { return g.qp.Modify(t, a, mask) }
	var err error
	switch m.calls {
	case XRCAllocated:
		g.QPN, err = m.numbers().AllocXRCRcvQP(t, d, &a, (xrcInitMask|xrcTargetMask)&^verbs.QPMaskState)
		return g, err
	case XRCRegistered:
		g.QPN, err = m.numbers().CreateXRCRcvQP(t, d)
		modify = func(a *verbs.QPAttr, mask verbs.QPAttrMask) error {
			return m.numbers().ModifyXRCRcvQP(t, d, g.QPN, a, mask)
		}
	default:
		if g.qp, err = m.Ctx.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTXRCRecv, CompMask: verbs.QPInitXRCD, XRCD: d}); err == nil {
			g.QPN = g.qp.QPN()
		}
	}
	if err != nil {
		return g, err
	}
	a.State = verbs.QPSInit
	if err := modify(&a, xrcInitMask); err != nil {
		return g, fmt.Errorf("target to INIT: %w", err)
	}
	a.State = verbs.QPSRTR
	if err := modify(&a, verbs.QPMaskState|xrcTargetMask); err != nil {
		return g, fmt.Errorf("target to RTR: %w", err)
	}
	return g, nil
}

// numbers are the calls on QPs by number, which the simulator's contexts have.
func (m *Member) numbers() verbs.XRCReceiveQPs { return m.Ctx.(verbs.XRCReceiveQPs) }

// Join makes the process a user of a target QP that another one has made. ENOSYS: the kernel has no
// call for it.
func (m *Member) Join(t verbs.Thread, d verbs.XRCD, qpn uint32) (XRCTarget, error) {
	g := XRCTarget{d: d, QPN: qpn}
	switch m.calls {
	case XRCAllocated:
		return g, fmt.Errorf("receive QPs have no users: %w", syscall.ENOSYS)
	case XRCRegistered:
		return g, m.numbers().RegXRCRcvQP(t, d, qpn)
	}
	var err error
	g.qp, err = m.Ctx.OpenQP(t, verbs.QPOpenAttr{CompMask: verbs.QPOpenAll, QPN: qpn, XRCD: d, Type: verbs.QPTXRCRecv})
	return g, err
}

// Leave gives a target QP back. ENOSYS: the kernel has no call for it.
func (m *Member) Leave(t verbs.Thread, g XRCTarget) error {
	switch {
	case m.calls == XRCAllocated:
		return fmt.Errorf("no call ends a receive QP: %w", syscall.ENOSYS)
	case g.qp == nil:
		return m.numbers().UnregXRCRcvQP(t, g.d, g.QPN)
	}
	return g.qp.Destroy(t)
}

// XRCInitiator is a send QP of XRC with its CQ.
type XRCInitiator struct {
	QP  verbs.QP
	CQ  verbs.CQ
	ctx *ctx
}

// Initiator makes a send QP with room for so many requests; cq may be nil for one of its own.
func (m *Member) Initiator(t verbs.Thread, cq verbs.CQ, sends int) (*XRCInitiator, error) {
	i := &XRCInitiator{CQ: cq, ctx: m.ctx}
	var err error
	if cq == nil {
		if i.CQ, err = m.Ctx.CreateCQ(t, verbs.CQAttr{CQE: max(1, sends)}); err != nil {
			return nil, fmt.Errorf("create CQ: %w", err)
		}
	}
	i.QP, err = m.PD.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTXRCSend, SendCQ: i.CQ,
		Cap: verbs.QPCap{MaxSendWR: uint32(sends), MaxSendSGE: 1, MaxInline: 64}})
	if err != nil {
		return nil, fmt.Errorf("create initiator: %w", err)
	}
	return i, nil
}

// Connect brings the initiator to RTS, towards a target QP of a peer.
func (i *XRCInitiator) Connect(t verbs.Thread, peer *Member, target uint32) error {
	a := xrcAttr(target, i.ctx.pathTo(peer.ctx))
	for _, s := range []struct {
		to   verbs.QPState
		mask verbs.QPAttrMask
	}{{verbs.QPSInit, xrcInitMask}, {verbs.QPSRTR, verbs.QPMaskState | xrcSendMask}, {verbs.QPSRTS, xrcRTSMask}} {
		a.State = s.to
		if err := i.QP.Modify(t, &a, s.mask); err != nil {
			return fmt.Errorf("initiator to %v: %w", s.to, err)
		}
	}
	return nil
}

// XRCInbox is an XRC SRQ with its CQ and buffers.
type XRCInbox struct {
	SRQ  verbs.SRQ
	CQ   verbs.CQ
	SRQN uint32
}

// XRCQueue makes an XRC SRQ in a domain, whose completions go to a CQ.
func (m *Member) XRCQueue(t verbs.Thread, d verbs.XRCD, cq verbs.CQ, receives int) (verbs.SRQ, uint32, error) {
	s, err := m.Ctx.CreateSRQEx(t, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: uint32(receives), MaxSGE: 1},
		CompMask: verbs.SRQInitAll, Type: verbs.SRQXRC, PD: m.PD, XRCD: d, CQ: cq})
	if err != nil {
		return nil, 0, fmt.Errorf("create XRC SRQ: %w", err)
	}
	n, err := s.Num(t)
	return s, n, err
}

// Inbox makes an XRC SRQ in a domain with so many receives posted, each of so many bytes.
func (m *Member) Inbox(t verbs.Thread, d verbs.XRCD, receives int, size uint32) (*XRCInbox, error) {
	b := &XRCInbox{}
	var err error
	if b.CQ, err = m.Ctx.CreateCQ(t, verbs.CQAttr{CQE: receives}); err != nil {
		return nil, fmt.Errorf("create CQ: %w", err)
	}
	if b.SRQ, b.SRQN, err = m.XRCQueue(t, d, b.CQ, receives); err != nil {
		return nil, err
	}
	buf, err := m.Proc.Map(t, uint64(size), verbs.MapOptions{})
	if err != nil {
		return nil, err
	}
	mr, err := m.PD.RegMR(t, buf.Addr(), uint64(size), verbs.AccessLocalWrite)
	if err != nil {
		return nil, err
	}
	sge := []verbs.SGE{{Addr: buf.Addr(), Length: size, LKey: mr.LKey()}}
	for range receives {
		if _, err := b.SRQ.PostRecv(t, []verbs.RecvWR{{SGEs: sge}}); err != nil {
			return nil, fmt.Errorf("post receive: %w", err)
		}
	}
	return b, nil
}
