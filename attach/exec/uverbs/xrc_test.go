//go:build linux

package uverbs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// Types of XRC queue pairs (enum ib_uverbs_qp_type).
const (
	xrcSend = 9
	xrcRecv = 10
)

// openFile makes a descriptor of the program.
func (x *rig) openFile(path string) int {
	x.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		x.Fatal(err)
	}
	fd := int(f.Fd())
	x.proc.fds[fd] = f
	return fd
}

// xrcdCall is OPEN_XRCD.
func (x *rig) xrcdCall(fd, flags int) (*client.Call, uapi.OpenXRCDResp) {
	r := uapi.OpenXRCD(make([]byte, uapi.OpenXRCDSize))
	r.SetFD(uint32(fd))
	r.SetOFlags(uint32(flags))
	c, rsp := x.write(uapi.CmdOpenXRCD, r, uapi.OpenXRCDRespSize)
	return c, uapi.OpenXRCDResp(rsp)
}

func (x *rig) xrcd(fd, flags int) uint32 {
	x.Helper()
	c, rsp := x.xrcdCall(fd, flags)
	x.do("OPEN_XRCD", c)
	return rsp.XRCDHandle()
}

func (x *rig) closeXRCD(h uint32) *client.Call {
	return client.New(x.proc, uapi.ObjectXRCD, uapi.XRCDDestroy).Object(uapi.XRCDDestroyHandle, uint64(h))
}

// targetCall is QP_CREATE of a target as the library asks for it: without a PD and CQs.
func (x *rig) targetCall(domain uint32) (*client.Call, func() *testQP) {
	d := uapi.MLX5CreateQP(make([]byte, uapi.MLX5CreateQPSize))
	_, rec := x.proc.Alloc(4096)
	d.SetDBAddr(0)
	c := client.New(x.proc, uapi.ObjectQP, uapi.QPCreate).New(uapi.QPCreateHandle).Object(uapi.QPCreateXRCD, uint64(domain)).
		Value(uapi.QPCreateUserHandle, 8, 0xabc1).Value(uapi.QPCreateType, 8, xrcRecv).
		In(uapi.QPCreateCap, make([]byte, uapi.QPCapSize)).In(uapi.AttrUHWIn, d)
	c.Out(uapi.QPCreateRspCap, uapi.QPCapSize)
	qpn := c.Out(uapi.QPCreateRspQPN, 4)
	uhw := uapi.MLX5CreateQPResp(c.Out(uapi.AttrUHWOut, uapi.MLX5CreateQPRespSize))
	return c, func() *testQP {
		if n := uhw.BFRegIndex(); n != 0 {
			x.Errorf("a target has register %#x", n)
		}
		return &testQP{handle: uint32(c.Result(uapi.QPCreateHandle)), qpn: uint32(qpn[0]) | uint32(qpn[1])<<8 | uint32(qpn[2])<<16, rec: rec}
	}
}

func (x *rig) target(domain uint32) *testQP {
	x.Helper()
	c, done := x.targetCall(domain)
	x.do("QP_CREATE of a target", c)
	return done()
}

// openQPCall is OPEN_QP.
func (x *rig) openQPCall(domain, qpn uint32, typ uint8) (*client.Call, uapi.CreateQPResp) {
	r := uapi.OpenQP(make([]byte, uapi.OpenQPSize))
	r.SetUserHandle(0xabc2)
	r.SetPDHandle(domain)
	r.SetQPN(qpn)
	r.SetQPType(typ)
	c, rsp := x.write(uapi.CmdOpenQP, r, uapi.CreateQPRespSize)
	return c, uapi.CreateQPResp(rsp)
}

// xsrqCall is SRQ_CREATE of an XRC SRQ.
func (x *rig) xsrqCall(pd, domain, cq uint32) (*client.Call, *testSRQ, func()) {
	c, s, done := x.srqCall(pd)
	c.Attr(uapi.SRQCreateType).SetData(uapi.SRQTypeXRC)
	c.Object(uapi.SRQCreateXRCD, uint64(domain)).Object(uapi.SRQCreateCQ, uint64(cq))
	num := c.Out(uapi.SRQCreateRspNum, 4)
	return c, s, func() {
		done()
		if n := uint32(num[0]) | uint32(num[1])<<8 | uint32(num[2])<<16; n != s.srqn || n == 0 {
			x.Errorf("number %#x, the driver says %#x", n, s.srqn)
		}
	}
}

// xsrqCommand is CREATE_XSRQ.
func (x *rig) xsrqCommand(pd, domain, cq, typ uint32) (*client.Call, uapi.CreateSRQResp) {
	_, d := x.srqData()
	r := uapi.CreateXSRQ(make([]byte, uapi.CreateXSRQSize))
	r.SetUserHandle(0x5151)
	r.SetSRQType(typ)
	r.SetPDHandle(pd)
	r.SetXRCDHandle(domain)
	r.SetCQHandle(cq)
	r.SetMaxWR(srqCount - 1)
	r.SetMaxSGE(1)
	c, rsp := x.write(uapi.CmdCreateXSRQ, r, uapi.CreateSRQRespSize)
	c.In(uapi.AttrUHWIn, d)
	c.Out(uapi.AttrUHWOut, uapi.MLX5CreateSRQRespSize)
	return c, uapi.CreateSRQResp(rsp)
}

// connectXRC brings a sender or a target to RTS with the attributes that each must have.
func (x *rig) connectXRC(q *testQP, dest uint32, sender bool) {
	x.Helper()
	gid, index := x.gid()
	toRTR, toRTS := uint32(0x129181), uint32(0x10201)
	if sender {
		toRTR, toRTS = 0x101181, 0x12e01
	}
	x.modify(false, q, 0x39, func(m uapi.ModifyQP) { m.SetState(1); m.SetPort(1); m.SetAccessFlags(0xf) })
	x.modify(false, q, toRTR, func(m uapi.ModifyQP) {
		m.SetState(2)
		m.SetPathMTU(3)
		m.SetDestQPN(dest)
		m.SetRQPSN(77)
		m.SetMaxDestRdAtomic(1)
		m.SetMinRNRTimer(12)
		d := m.Dest()
		copy(d.DGID(), gid)
		d.SetSGIDIndex(index)
		d.SetHopLimit(64)
		d.SetIsGlobal(1)
		d.SetPort(1)
	})
	x.modify(false, q, toRTS, func(m uapi.ModifyQP) {
		m.SetState(3)
		m.SetTimeout(14)
		m.SetRetryCnt(7)
		m.SetRNRRetry(7)
		m.SetSQPSN(77)
		m.SetMaxRdAtomic(1)
	})
}

// sender is a QP that sends to targets.
func (x *rig) sender(pd uint32, cq *testCQ) *testQP {
	x.Helper()
	c, q, rsp := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) { d.SetRQWQECount(0); d.SetRQWQEShift(0) })
	c.Attr(uapi.QPCreateType).SetData(xrcSend)
	x.do("QP_CREATE of a sender", c)
	q.handle, q.sq = uint32(c.Result(uapi.QPCreateHandle)), 0
	q.qpn, _ = rsp()
	return q
}

func toSRQ(n uint32) []byte {
	s := prm.XRCSegment(make([]byte, prm.XRCSegmentSize))
	s.SetSRQN(n)
	return s
}

// Two programs that open one file share the domain; it holds the inode as long as it lives.
func TestXRCDomainOfAFile(t *testing.T) {
	m := newMachine(t)
	x, y := newRig(t, m), newRig(t, m)
	x.open()
	y.open()
	said := 0
	x.file.Descriptors = &Quota{Name: "descriptors", Most: 1, Errno: syscall.EMFILE, OnFull: func() { said++ }}
	path := filepath.Join(t.TempDir(), "domain")
	fd, other := x.openFile(path), y.openFile(path)
	check := func(when string, domains, held, counted int) {
		t.Helper()
		if n := m.kern.Resources().XRCD; n != domains || x.proc.held != held || x.file.Descriptors.used != counted || y.proc.held != 0 {
			t.Errorf("%s: %d domains, %d and %d files held, %d counted; want %d, %d, 0, %d", when, n, x.proc.held, y.proc.held,
				x.file.Descriptors.used, domains, held, counted)
		}
	}
	c, _ := x.xrcdCall(fd, 0)
	x.refuse("no domain and no O_CREAT", c, syscall.EAGAIN)
	c, _ = x.xrcdCall(fd, syscall.O_EXCL)
	x.refuse("no domain, O_EXCL alone", c, syscall.EAGAIN)
	c, _ = x.xrcdCall(1<<20, syscall.O_CREAT)
	x.refuse("no such descriptor", c, syscall.EBADF)
	c, _ = x.xrcdCall(fd, syscall.O_CREAT)
	c.Attr(uapi.InvokeWriteCoreOut).SetData(0x10)
	x.refuse("an answer that cannot be delivered", c, syscall.EFAULT)
	check("after refusals", 0, 0, 0)

	a := x.xrcd(fd, syscall.O_CREAT|syscall.O_EXCL)
	check("one opener", 1, 1, 1)
	b := y.xrcd(other, 0)
	check("two openers", 1, 1, 1)
	c, _ = y.xrcdCall(other, syscall.O_CREAT|syscall.O_EXCL)
	y.refuse("O_EXCL", c, syscall.EINVAL)
	c, _ = y.xrcdCall(other, syscall.O_EXCL)
	y.refuse("O_EXCL alone", c, syscall.EINVAL)
	if c, _ = x.xrcdCall(fd, 0); said != 0 {
		t.Error("the limit is said too early")
	}
	x.refuse("a descriptor too many", c, syscall.EMFILE)
	if said != 1 {
		t.Errorf("said %d times that there are too many descriptors", said)
	}
	q := x.target(a)
	x.refuse("a handle in use", x.closeXRCD(a), syscall.EBUSY)
	y.do("close of the other", y.closeXRCD(b))
	y.refuse("close twice", y.closeXRCD(b), syscall.ENOENT)
	check("one opener is left", 1, 1, 1)
	x.proc.Retract(fd)
	y.Retract(other, path)
	y.xrcd(y.openFile(path+"2"), syscall.O_CREAT)
	if n := m.kern.Resources().XRCD; n != 2 {
		t.Errorf("%d domains of two files", n)
	}
	y.file.Close()
	x.destroyQP(q)
	x.do("the last close", x.closeXRCD(a))
	check("closed", 0, 0, 0)

	one, two := x.xrcd(-1, 0), x.xrcd(-1, syscall.O_EXCL) // flags count for files only
	if n := m.kern.Resources().XRCD; n != 2 || one == two {
		t.Errorf("%d domains without a file", n)
	}
	w, _ := x.write(uapi.CmdCloseXRCD, []byte{byte(one), byte(one >> 8), 0, 0}, 0)
	x.do("CLOSE_XRCD", w)
	x.xrcd(x.openFile(path), syscall.O_CREAT)
	x.file.Close()
	check("the program is gone", 0, 0, 0)
}

// Retract closes a descriptor and removes its file.
func (x *rig) Retract(fd int, path string) {
	x.Helper()
	x.proc.Retract(fd)
	if err := os.Remove(path); err != nil {
		x.Fatal(err)
	}
}

// A sender reaches the SRQ that it names by a target that two programs have; both hear that it has
// failed.
func TestXRCTraffic(t *testing.T) {
	m := newMachine(t)
	x, y := newRig(t, m), newRig(t, m)
	x.open()
	y.open()
	path := filepath.Join(t.TempDir(), "domain")
	pd, cq, rcq := x.pd(), x.cq(-1, 1), x.cq(-1, 2)
	hears, alsoHears := x.asyncFD(), y.asyncFD()
	domain := x.xrcd(x.openFile(path), syscall.O_CREAT)
	domain2 := y.xrcd(y.openFile(path), 0)
	c, s, done := x.xsrqCall(pd, domain, rcq.handle)
	x.do("SRQ_CREATE", c)
	done()
	target, sender := x.target(domain), x.sender(pd, cq)
	if x.pages.qps[target.qpn] != nil || x.pages.qps[sender.qpn] == nil {
		t.Error("the session is told of the target, or not of the sender")
	}
	c, opened := y.openQPCall(domain2, target.qpn, xrcRecv)
	y.do("OPEN_QP", c)
	if opened.QPN() != target.qpn || opened.QPHandle() == 0 {
		t.Errorf("answer %x", []byte(opened))
	}
	x.connectXRC(target, sender.qpn, false)
	x.connectXRC(sender, target.qpn, true)
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	copy(buf, "by XRC")
	s.recv(256, key, addr+1024)
	x.post(sender, prm.WQEOpSend, toSRQ(s.srqn), data(6, key, addr))
	x.settle(t)
	if e := rcq.poll(); e == nil || string(buf[1024:1030]) != "by XRC" {
		t.Fatalf("completion %x, memory %q", []byte(e), buf[1024:1030])
	}
	x.refuse("the CQ of an SRQ", cqDestroy(x, rcq), syscall.EBUSY)
	x.post(sender, prm.WQEOpSend, toSRQ(0xfffff0), data(6, key, addr))
	x.settle(t)
	for _, want := range []uint32{3, 16} { // IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_LAST_WQE_REACHED
		e, ok := x.event(hears, uapi.AsyncEventSize)
		if r := uapi.AsyncEvent(e); !ok || r.Element() != 0xabc1 || r.EventType() != want {
			t.Errorf("event %d about %#x, %v; want %d", r.EventType(), r.Element(), ok, want)
		}
	}
	for _, h := range []struct {
		x  *rig
		fd int
	}{{x, hears}, {y, alsoHears}} { // a handle that was opened has no file for events (Linux 6.1, ib_uverbs_open_qp)
		if e, ok := h.x.event(h.fd, uapi.AsyncEventSize); ok {
			t.Errorf("another event: %x", e)
		}
	}
	if n := x.destroyQP(target); n != 2 {
		t.Errorf("%d events of the first handle", n)
	}
	if n := m.kern.Resources().QP; n != 2 {
		t.Errorf("%d QPs while one handle is left", n)
	}
	y.file.Close() // as at the end of its process
	if n := m.kern.Resources().QP; n != 1 {
		t.Errorf("%d QPs after the last handle", n)
	}
	x.file.Close()
	if r := m.kern.Resources(); r.XRCD != 0 || r.QP != 0 || r.SRQ != 0 || x.pages.left() != "" {
		t.Errorf("left: %+v, %s", r, x.pages.left())
	}
}

func cqDestroy(x *rig, q *testCQ) *client.Call {
	c := client.New(x.proc, uapi.ObjectCQ, uapi.CQDestroy).Object(uapi.CQDestroyHandle, uint64(q.handle))
	c.Out(uapi.CQDestroyRsp, uapi.DestroyCQRespSize)
	return c
}

func TestXRCRefused(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq, domain, other := x.pd(), x.cq(-1, 1), x.xrcd(-1, 0), x.xrcd(-1, 0)
	basic, q := x.srq(pd), x.qp(pd, cq)
	target := x.target(domain)
	const none = 1000
	for what, r := range map[string]struct {
		set  func(*client.Call)
		want syscall.Errno
	}{
		"target with a PD":          {func(c *client.Call) { c.Object(uapi.QPCreatePD, uint64(pd)) }, syscall.EINVAL},
		"target with a send CQ":     {func(c *client.Call) { c.Object(uapi.QPCreateSendCQ, uint64(cq.handle)) }, syscall.EINVAL},
		"target with a receive CQ":  {func(c *client.Call) { c.Object(uapi.QPCreateRecvCQ, uint64(cq.handle)) }, syscall.EINVAL},
		"target with a basic SRQ":   {func(c *client.Call) { c.Object(uapi.QPCreateSRQ, uint64(basic.handle)) }, syscall.EINVAL},
		"target of no domain":       {func(c *client.Call) { c.Attr(uapi.QPCreateXRCD).SetData(none) }, syscall.ENOENT},
		"target of a PD as domain":  {func(c *client.Call) { c.Attr(uapi.QPCreateXRCD).SetData(uint64(pd)) }, syscall.EINVAL},
		"an RC QP with a domain":    {func(c *client.Call) { c.Attr(uapi.QPCreateType).SetData(2) }, syscall.EINVAL},
		"a sender with a domain":    {func(c *client.Call) { c.Attr(uapi.QPCreateType).SetData(xrcSend) }, syscall.EINVAL},
		"an answer without a place": {func(c *client.Call) { c.Attr(uapi.QPCreateRspQPN).SetData(0x10) }, syscall.EFAULT},
	} {
		c, _ := x.targetCall(domain)
		r.set(c)
		x.refuse(what, c, r.want)
	}
	for what, r := range map[string]struct {
		set  func(*client.Call)
		want syscall.Errno
	}{
		"SRQ of no domain":       {func(c *client.Call) { c.Attr(uapi.SRQCreateXRCD).SetData(none) }, syscall.ENOENT},
		"SRQ without a CQ":       {func(c *client.Call) { c.Attr(uapi.SRQCreateCQ).SetData(none) }, syscall.ENOENT},
		"SRQ of a CQ as domain":  {func(c *client.Call) { c.Attr(uapi.SRQCreateXRCD).SetData(uint64(cq.handle)) }, syscall.EINVAL},
		"too many receives":      {func(c *client.Call) { c.Attr(uapi.SRQCreateMaxWR).SetData(1 << 20) }, syscall.EINVAL},
		"an answer without room": {func(c *client.Call) { c.Attr(uapi.SRQCreateRspNum).SetData(0x10) }, syscall.EFAULT},
	} {
		c, _, _ := x.xsrqCall(pd, domain, cq.handle)
		r.set(c)
		x.refuse(what, c, r.want)
	}
	c, s, done := x.xsrqCall(pd, domain, cq.handle)
	x.do("SRQ_CREATE", c)
	done()
	c, _, _ = x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) { d.SetRQWQECount(0); d.SetRQWQEShift(0) })
	c.Object(uapi.QPCreateSRQ, uint64(s.handle))
	x.refuse("an RC QP with an XRC SRQ", c, syscall.EINVAL)
	for what, r := range map[string]struct {
		pd, domain, cq, typ uint32
		want                syscall.Errno
	}{
		"command, no domain":    {pd, none, cq.handle, uapi.SRQTypeXRC, syscall.EINVAL},
		"command, no CQ":        {pd, domain, none, uapi.SRQTypeXRC, syscall.ENOENT},
		"command, no PD":        {none, domain, cq.handle, uapi.SRQTypeXRC, syscall.ENOENT},
		"command, tag matching": {pd, domain, cq.handle, uapi.SRQTypeTM, syscall.EINVAL},
	} {
		c, _ := x.xsrqCommand(r.pd, r.domain, r.cq, r.typ)
		x.refuse(what, c, r.want)
	}
	c, rsp := x.xsrqCommand(pd, domain, cq.handle, uapi.SRQTypeXRC)
	x.do("CREATE_XSRQ", c)
	if q := x.pages.srqs[rsp.SRQN()]; q == nil || rsp.MaxWR() != srqCount-1 || rsp.MaxSGE() != 1 {
		t.Errorf("answer %x", []byte(rsp))
	}
	c, rsp = x.xsrqCommand(pd, none, none, uapi.SRQTypeBasic)
	x.do("CREATE_XSRQ of a basic SRQ", c)
	if rsp.SRQN() != 0 {
		t.Errorf("number %#x of a basic SRQ", rsp.SRQN())
	}
	for what, r := range map[string]struct {
		domain, qpn uint32
		typ         uint8
	}{
		"another type": {domain, target.qpn, 2}, "an RC QP": {domain, q.qpn, xrcRecv}, "no QP": {domain, 0xfffff, xrcRecv},
		"another domain": {other, target.qpn, xrcRecv}, "no domain": {none, target.qpn, xrcRecv}, "a PD as domain": {pd, target.qpn, xrcRecv},
	} {
		c, _ := x.openQPCall(r.domain, r.qpn, r.typ)
		x.refuse("OPEN_QP, "+what, c, syscall.EINVAL)
	}
	c, _ = x.openQPCall(domain, target.qpn, xrcRecv)
	c.Attr(uapi.InvokeWriteCoreOut).SetData(0x10)
	x.refuse("OPEN_QP without room", c, syscall.EFAULT)
	x.destroyQP(target)
	c, _ = x.openQPCall(domain, target.qpn, xrcRecv)
	x.refuse("OPEN_QP of a QP that is gone", c, syscall.EINVAL)
	if r := x.kern.Resources(); r.QP != 1 || r.SRQ != 4 || r.XRCD != 2 {
		t.Errorf("left: %+v", r)
	}
}
