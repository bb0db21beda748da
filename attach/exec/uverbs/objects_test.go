//go:build linux

package uverbs

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// qpOf makes a QP of another type, or on an SRQ, with the values of ibv_qp_type.
func (x *rig) qpOf(pd uint32, cq *testCQ, typ uint64, srq uint32) *testQP {
	x.Helper()
	c, q, rsp := x.qpCall(pd, cq, func(d uapi.MLX5CreateQP) {
		if srq != 0 {
			d.SetRQWQECount(0)
			d.SetRQWQEShift(0)
		}
	})
	c.Attr(uapi.QPCreateType).SetData(typ)
	if srq != 0 {
		c.Object(uapi.QPCreateSRQ, uint64(srq))
		n, err := x.proc.Find(c.Attr(uapi.QPCreateCap).Data(), uapi.QPCapSize)
		if err != nil {
			x.Fatal(err)
		}
		uapi.QPCap(n).SetMaxRecvWR(0)
		q.sq = 0
	}
	x.do("QP_CREATE", c)
	q.handle = uint32(c.Result(uapi.QPCreateHandle))
	q.qpn, _ = rsp()
	return q
}

const testQKey = 0x1234

// ud brings a UD QP to RTS, with the masks that ibv_ud_pingpong uses.
func (x *rig) ud(pd uint32, cq *testCQ, srq uint32) *testQP {
	x.Helper()
	q := x.qpOf(pd, cq, 4, srq)
	x.modify(false, q, 0x71, func(m uapi.ModifyQP) { m.SetState(1); m.SetPort(1); m.SetQKey(testQKey) })
	x.modify(false, q, 0x1, func(m uapi.ModifyQP) { m.SetState(2) })
	x.modify(false, q, 0x10001, func(m uapi.ModifyQP) { m.SetState(3); m.SetSQPSN(5) })
	return q
}

// ahCall is CREATE_AH towards a GID.
func (x *rig) ahCall(pd uint32, gid []byte, index uint8, change func(uapi.AHAttr)) (c *client.Call, handle, mac func() []byte) {
	r := uapi.CreateAH(make([]byte, uapi.CreateAHSize))
	r.SetPDHandle(pd)
	a := r.Attr()
	copy(a.DGID(), gid)
	a.SetSGIDIndex(index)
	a.SetHopLimit(64)
	a.SetIsGlobal(1)
	a.SetPort(1)
	if change != nil {
		change(a)
	}
	c, rsp := x.write(uapi.CmdCreateAH, r, uapi.CreateAHRespSize)
	uhw := uapi.MLX5CreateAHResp(c.Out(uapi.AttrUHWOut, uapi.MLX5CreateAHRespSize))
	return c, func() []byte { return rsp }, func() []byte { return uhw.DMAC() }
}

func av(dest uint32, gid []byte, index uint8, mac []byte) []byte {
	a := prm.AVSegment(make([]byte, prm.AVSegmentSize))
	a.SetExtended(true)
	a.SetQKey(testQKey)
	a.SetDestQPN(dest)
	a.SetHopLimit(64)
	a.SetSGIDIndex(uint32(index))
	copy(a.RGID(), gid)
	copy(a.RMAC(), mac)
	return a
}

func TestDatagrams(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	a, b := x.ud(pd, cq, 0), x.ud(pd, cq, 0)
	gid, index := x.gid()
	c, ah, mac := x.ahCall(pd, gid, index, nil)
	x.do("CREATE_AH", c)
	if want := []byte{2, 2, 0xc9, 0, 1, 1}; !bytes.Equal(mac(), want) {
		t.Errorf("address %x, want %x", mac(), want)
	}
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	copy(buf, "datagram")
	b.recv(0, 100, key, addr+1024)
	x.post(a, prm.WQEOpSend, av(b.qpn, gid, index, mac()), data(8, key, addr))
	x.settle(t)
	if string(buf[1024+40:1024+48]) != "datagram" { // behind the global route header
		t.Errorf("memory %q", buf[1024:1024+48])
	}
	n := 0
	for cq.poll() != nil {
		n++
	}
	if n != 2 {
		t.Errorf("%d completions, not one for the request and one for the receive", n)
	}

	group := append([]byte{0xff, 0x0e}, make([]byte, 14)...)
	r := uapi.AttachMcast(make([]byte, uapi.AttachMcastSize))
	copy(r.GID(), group)
	r.SetQPHandle(b.handle)
	call := func(cmd uint32) *client.Call { c, _ := x.write(cmd, r, 0); return c }
	x.refuse("detach before attach", call(uapi.CmdDetachMcast), syscall.EINVAL)
	x.do("ATTACH_MCAST", call(uapi.CmdAttachMcast))
	x.do("ATTACH_MCAST again", call(uapi.CmdAttachMcast))
	busy := client.New(x.proc, uapi.ObjectQP, uapi.QPDestroy).Object(uapi.QPDestroyHandle, uint64(b.handle))
	busy.Out(uapi.QPDestroyRsp, uapi.DestroyQPRespSize)
	x.refuse("QP in a group", busy, syscall.EBUSY)
	x.do("DETACH_MCAST", call(uapi.CmdDetachMcast))
	copy(r.GID(), gid)
	x.refuse("no group", call(uapi.CmdAttachMcast), syscall.EINVAL)
	r.SetQPHandle(a.handle + 1000)
	x.refuse("no QP", call(uapi.CmdAttachMcast), syscall.ENOENT)

	h := uapi.CreateAHResp(ah()).AHHandle()
	x.refuse("PD of an AH", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)), syscall.EBUSY)
	x.do("AH_DESTROY", client.New(x.proc, uapi.ObjectAH, uapi.AHDestroy).Object(uapi.AHDestroyHandle, uint64(h)))
	x.refuse("AH twice", client.New(x.proc, uapi.ObjectAH, uapi.AHDestroy).Object(uapi.AHDestroyHandle, uint64(h)), syscall.ENOENT)
	x.destroyQP(a)
	x.destroyQP(b)
}

func TestAddressHandlesRefused(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd := x.pd()
	gid, index := x.gid()
	for _, r := range []struct {
		what   string
		pd     uint32
		change func(uapi.AHAttr)
		want   syscall.Errno
	}{
		{"no route header", pd, func(a uapi.AHAttr) { a.SetIsGlobal(0) }, syscall.EINVAL},
		{"port 2", pd, func(a uapi.AHAttr) { a.SetPort(2) }, syscall.EINVAL},
		{"empty GID index", pd, func(a uapi.AHAttr) { a.SetSGIDIndex(200) }, syscall.ENODATA},
		{"no PD", pd + 1000, nil, syscall.ENOENT},
	} {
		c, _, _ := x.ahCall(r.pd, gid, index, r.change)
		x.refuse(r.what, c, r.want)
	}
	c, _, _ := x.ahCall(pd, gid, index, nil)
	c.Attr(uapi.AttrUHWOut).SetLen(8)
	x.refuse("no room for the address", c, syscall.EINVAL)
	c, _, _ = x.ahCall(pd, gid, index, nil)
	c.Attr(uapi.AttrUHWOut).SetData(0x10)
	x.refuse("an answer that cannot be delivered", c, syscall.EFAULT)
	x.do("PD_DESTROY", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)))
}

// testSRQ is an SRQ as a library sees it: WQEs of 32 bytes, linked in order.
type testSRQ struct {
	handle, srqn uint32
	ring, rec    []byte
	posted       uint16
}

const srqCount = 16

func (x *rig) srqData() (*testSRQ, uapi.MLX5CreateSRQ) {
	s := &testSRQ{}
	d := uapi.MLX5CreateSRQ(make([]byte, uapi.MLX5CreateSRQSize))
	var ring, rec uint64
	ring, s.ring = x.proc.Alloc(srqCount * 32)
	rec, s.rec = x.proc.Alloc(4096)
	for i := range srqCount {
		prm.SRQNextSegment(s.ring[i*32:]).SetNextWQEIndex(uint16(i+1) % srqCount)
	}
	d.SetBufAddr(ring)
	d.SetDBAddr(rec)
	return s, d
}

// srqCall is SRQ_CREATE.
func (x *rig) srqCall(pd uint32) (*client.Call, *testSRQ, func()) {
	s, d := x.srqData()
	c := client.New(x.proc, uapi.ObjectSRQ, uapi.SRQCreate).New(uapi.SRQCreateHandle).Object(uapi.SRQCreatePD, uint64(pd)).
		Value(uapi.SRQCreateType, 8, uapi.SRQTypeBasic).Value(uapi.SRQCreateUserHandle, 8, 0x5151).Value(uapi.SRQCreateMaxWR, 4, srqCount-1).
		Value(uapi.SRQCreateMaxSGE, 4, 1).Value(uapi.SRQCreateLimit, 4, 0).In(uapi.AttrUHWIn, d)
	wr, sge := c.Out(uapi.SRQCreateRspMaxWR, 4), c.Out(uapi.SRQCreateRspMaxSGE, 4)
	uhw := uapi.MLX5CreateSRQResp(c.Out(uapi.AttrUHWOut, uapi.MLX5CreateSRQRespSize))
	return c, s, func() {
		if wr[0] != srqCount-1 || sge[0] != 1 {
			x.Errorf("%d receives of %d SGEs", wr[0], sge[0])
		}
		s.handle, s.srqn = uint32(c.Result(uapi.SRQCreateHandle)), uhw.SRQN()
	}
}

func (x *rig) srq(pd uint32) *testSRQ {
	x.Helper()
	c, s, done := x.srqCall(pd)
	x.do("SRQ_CREATE", c)
	done()
	if q := x.pages.srqs[s.srqn]; q == nil || q.Count != srqCount || q.Shift != 5 || q.UserHandle != 0x5151 {
		x.Fatalf("the session is told of %+v", q)
	}
	return s
}

// recv posts a receive of one segment.
func (s *testSRQ) recv(n, key uint32, addr uint64) {
	prm.DataSegment(s.ring[int(s.posted%srqCount)*32+16:]).Set(n, key, addr)
	s.posted++
	prm.SRQDBRec(s.rec).SetCount(s.posted)
}

func (x *rig) modifySRQ(s *testSRQ, mask, maxWR, limit uint32) *client.Call {
	r := uapi.ModifySRQ(make([]byte, uapi.ModifySRQSize))
	r.SetSRQHandle(s.handle)
	r.SetAttrMask(mask)
	r.SetMaxWR(maxWR)
	r.SetSRQLimit(limit)
	c, _ := x.write(uapi.CmdModifySRQ, r, 0)
	return c
}

func (x *rig) srqLimit(s *testSRQ) uint32 {
	x.Helper()
	r := uapi.QuerySRQ(make([]byte, uapi.QuerySRQSize))
	r.SetSRQHandle(s.handle)
	c, rsp := x.write(uapi.CmdQuerySRQ, r, uapi.QuerySRQRespSize)
	x.do("QUERY_SRQ", c)
	a := uapi.QuerySRQResp(rsp)
	if a.MaxWR() != srqCount-1 || a.MaxSGE() != 1 {
		x.Errorf("query: %d receives of %d SGEs", a.MaxWR(), a.MaxSGE())
	}
	return a.SRQLimit()
}

func (x *rig) destroySRQ(s *testSRQ) (*client.Call, func() uint32) {
	c := client.New(x.proc, uapi.ObjectSRQ, uapi.SRQDestroy).Object(uapi.SRQDestroyHandle, uint64(s.handle))
	r := uapi.DestroySRQResp(c.Out(uapi.SRQDestroyRsp, uapi.DestroySRQRespSize))
	return c, r.EventsReported
}

// Two QPs take receives from one queue; its limit is announced once, and counted when
// it was read.
func TestSharedReceives(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq, fd := x.pd(), x.cq(-1, 1), x.asyncFD()
	s := x.srq(pd)
	a, b := x.qp(pd, cq), x.qpOf(pd, cq, 2, s.handle)
	x.connect(false, a, b.qpn)
	x.connect(false, b, a.qpn)
	d := x.ud(pd, cq, s.handle)
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	copy(buf, "shared")
	for i := range 3 {
		s.recv(256, key, addr+1024+uint64(i)*256)
	}
	x.refuse("a resize", x.modifySRQ(s, 1, 8, 0), syscall.EINVAL)
	x.refuse("a limit that it cannot hold", x.modifySRQ(s, 2, 0, srqCount), syscall.EINVAL)
	x.do("MODIFY_SRQ", x.modifySRQ(s, 2, 0, 2))
	if n := x.srqLimit(s); n != 2 {
		t.Errorf("limit %d", n)
	}
	x.post(a, prm.WQEOpSend, data(6, key, addr))
	x.settle(t)
	if _, ok := x.event(fd, uapi.AsyncEventSize); ok || string(buf[1024:1030]) != "shared" {
		t.Fatalf("memory %q, an event: %v", buf[1024:1030], ok)
	}
	gid, index := x.gid()
	sender := x.ud(pd, cq, 0)
	x.post(sender, prm.WQEOpSend, av(d.qpn, gid, index, []byte{2, 2, 0xc9, 0, 1, 1}), data(6, key, addr))
	x.settle(t)
	if at := 1024 + 256 + 40; string(buf[at:at+6]) != "shared" {
		t.Errorf("memory of the datagram: %q", buf[at:at+6])
	}
	e, ok := x.event(fd, uapi.AsyncEventSize)
	if r := uapi.AsyncEvent(e); !ok || r.Element() != 0x5151 || r.EventType() != 15 { // IBV_EVENT_SRQ_LIMIT_REACHED
		t.Fatalf("event %d about %#x, %v", r.EventType(), r.Element(), ok)
	}
	if n := x.srqLimit(s); n != 0 {
		t.Errorf("limit %d after it was announced", n)
	}
	x.do("MODIFY_SRQ", x.modifySRQ(s, 2, 0, 15)) // announced, and never read
	x.post(a, prm.WQEOpSend, data(6, key, addr))
	x.settle(t)
	c, _ := x.destroySRQ(s)
	x.refuse("SRQ in use", c, syscall.EBUSY)
	for _, q := range []*testQP{a, b, d, sender} {
		x.destroyQP(q)
	}
	c, events := x.destroySRQ(s)
	x.do("SRQ_DESTROY", c)
	if n := events(); n != 1 {
		t.Errorf("%d events reported, one was read", n)
	}
	if e, ok := x.event(fd, uapi.AsyncEventSize); ok {
		t.Errorf("event %x of an SRQ that is gone", e)
	}
	if len(x.pages.srqs) != 0 {
		t.Error("the session still knows the SRQ")
	}
}

// Libraries of rdma-core before 33 have commands for SRQs.
func TestSRQCommands(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd := x.pd()
	call := func() (*client.Call, *testSRQ, uapi.CreateSRQResp, uapi.MLX5CreateSRQResp) {
		s, d := x.srqData()
		r := uapi.CreateSRQ(make([]byte, uapi.CreateSRQSize))
		r.SetPDHandle(pd)
		r.SetMaxWR(srqCount - 1)
		r.SetMaxSGE(1)
		c, rsp := x.write(uapi.CmdCreateSRQ, r, uapi.CreateSRQRespSize)
		c.In(uapi.AttrUHWIn, d)
		return c, s, uapi.CreateSRQResp(rsp), uapi.MLX5CreateSRQResp(c.Out(uapi.AttrUHWOut, uapi.MLX5CreateSRQRespSize))
	}
	c, s, rsp, uhw := call()
	x.do("CREATE_SRQ", c)
	s.handle = rsp.SRQHandle()
	if rsp.MaxWR() != srqCount-1 || rsp.MaxSGE() != 1 || x.pages.srqs[uhw.SRQN()] == nil {
		t.Errorf("answer %x, %x", []byte(rsp), []byte(uhw))
	}
	x.srqLimit(s)
	r := uapi.DestroySRQ(make([]byte, uapi.DestroySRQSize))
	r.SetSRQHandle(s.handle)
	c, _ = x.write(uapi.CmdDestroySRQ, r, uapi.DestroySRQRespSize)
	x.do("DESTROY_SRQ", c)
	c, _ = x.write(uapi.CmdDestroySRQ, r, uapi.DestroySRQRespSize)
	x.refuse("SRQ twice", c, syscall.ENOENT)
	c, _, _, _ = call()
	c.Attr(uapi.InvokeWriteCoreOut).SetData(0x10)
	x.refuse("an answer that cannot be delivered", c, syscall.EFAULT)
	if n := x.kern.Resources().SRQ; n != 0 {
		t.Errorf("%d SRQs are left", n)
	}
}

func TestSRQRefused(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd := x.pd()
	for _, r := range []struct {
		what   string
		change func(*client.Call)
		want   syscall.Errno
	}{
		{"XRC", func(c *client.Call) { c.Attr(uapi.SRQCreateType).SetData(uapi.SRQTypeXRC) }, syscall.EOPNOTSUPP},
		{"tag matching", func(c *client.Call) { c.Attr(uapi.SRQCreateType).SetData(uapi.SRQTypeTM) }, syscall.EINVAL},
		{"no type", func(c *client.Call) { c.Attr(uapi.SRQCreateType).SetData(7) }, syscall.EINVAL},
		{"too many", func(c *client.Call) { c.Attr(uapi.SRQCreateMaxWR).SetData(1 << 20) }, syscall.EINVAL},
		{"no PD", func(c *client.Call) { c.Attr(uapi.SRQCreatePD).SetData(1000) }, syscall.ENOENT},
		{"no async file", func(c *client.Call) { c.Object(uapi.SRQCreateEventFD, 99) }, syscall.EBADF},
		{"no memory", func(c *client.Call) { c.Attr(uapi.AttrUHWIn).SetData(0x10) }, syscall.EFAULT},
		{"no room", func(c *client.Call) { c.Attr(uapi.SRQCreateRspMaxWR).SetData(0x10) }, syscall.EFAULT},
	} {
		c, _, _ := x.srqCall(pd)
		r.change(c)
		x.refuse(r.what, c, r.want)
	}
	_, d := x.srqData()
	d.SetFlags(uapi.SRQFlagSignature)
	c, _, _ := x.srqCall(pd)
	addr, b := x.proc.Alloc(len(d))
	copy(b, d)
	c.Attr(uapi.AttrUHWIn).SetData(addr)
	x.refuse("signatures", c, syscall.EOPNOTSUPP)
	if n := x.kern.Resources().SRQ; n != 0 || len(x.pages.srqs) != 0 {
		t.Errorf("%d SRQs are left", n)
	}
}

// resizeCall is RESIZE_CQ to a ring of n entries.
func (x *rig) resizeCall(cq *testCQ, n uint32) (*client.Call, []byte, uapi.ResizeCQResp) {
	r := uapi.ResizeCQ(make([]byte, uapi.ResizeCQSize))
	r.SetCQHandle(cq.handle)
	r.SetCQE(n - 1)
	d := uapi.MLX5ResizeCQ(make([]byte, uapi.MLX5ResizeCQSize))
	addr, ring := x.proc.Alloc(int(n) * 64)
	d.SetBufAddr(addr)
	d.SetCQESize(64)
	c, rsp := x.write(uapi.CmdResizeCQ, r, uapi.ResizeCQRespSize)
	c.In(uapi.AttrUHWIn, d)
	return c, ring, uapi.ResizeCQResp(rsp)
}

func TestResizeCQ(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	a, b := x.qp(pd, cq), x.qp(pd, cq)
	x.connect(false, a, b.qpn)
	x.connect(false, b, a.qpn)
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	c, _, rsp := x.resizeCall(cq, cqEntries)
	x.do("RESIZE_CQ to what it is", c)
	if rsp.CQE() != cqEntries-1 {
		t.Errorf("%d entries", rsp.CQE())
	}
	c, ring, rsp := x.resizeCall(cq, 2*cqEntries)
	x.do("RESIZE_CQ", c)
	if q := x.pages.cqs[cq.cqn]; rsp.CQE() != 2*cqEntries-1 || q.Entries != 2*cqEntries {
		t.Errorf("%d entries, the session knows %d", rsp.CQE(), q.Entries)
	}
	// Libraries look for the end of the old ring as soon as the call has returned.
	if op := prm.CQE64(cq.ring[:64]).Opcode(); op != prm.CQEResizeCQ {
		t.Errorf("the old ring ends with %v", op)
	}
	x.post(a, prm.WQEOpRDMAWrite, raddr(addr+2048, key), data(8, key, addr))
	x.settle(t)
	found := false
	for i := range 2 * cqEntries {
		e := prm.CQE64(ring[i*64:][:64])
		found = found || e.QPN() == a.qpn
	}
	if !found {
		t.Error("no completion in the new ring")
	}
	c, _, _ = x.resizeCall(&testCQ{handle: cq.handle + 1000}, 8)
	x.refuse("no CQ", c, syscall.ENOENT)
	c, _, _ = x.resizeCall(cq, 4)
	req, err := x.proc.Find(c.Attr(uapi.InvokeWriteCoreIn).Data(), uapi.ResizeCQSize)
	if err != nil {
		t.Fatal(err)
	}
	uapi.ResizeCQ(req).SetCQE(1 << 24)
	x.refuse("too large", c, syscall.EINVAL)

	m := uapi.ExModifyCQ(make([]byte, uapi.ExModifyCQSize))
	m.SetCQHandle(cq.handle)
	m.SetCQCount(8)
	m.SetCQPeriod(10)
	for mask, want := range map[uint32]syscall.Errno{0: syscall.EINVAL, 1: 0, 2: syscall.EOPNOTSUPP} {
		m.SetAttrMask(mask)
		c, _ := x.write(uapi.CmdModifyCQ|uapi.CmdExtended, m, 0)
		x.refuse("EX_MODIFY_CQ", c, want)
	}
	x.destroyQP(a)
	x.destroyQP(b)
	x.destroyCQ(cq)
}

func TestWindowsAndRegions(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, other := x.pd(), x.pd()
	alloc := func(pd uint32, typ uint8) (*client.Call, uapi.AllocMWResp) {
		r := uapi.AllocMW(make([]byte, uapi.AllocMWSize))
		r.SetPDHandle(pd)
		r.SetMWType(typ)
		c, rsp := x.write(uapi.CmdAllocMW, r, uapi.AllocMWRespSize)
		return c, uapi.AllocMWResp(rsp)
	}
	keys := map[uint32]bool{}
	for typ, want := range map[uint8]syscall.Errno{0: syscall.EINVAL, 1: 0, 2: 0, 3: syscall.EINVAL} {
		c, rsp := alloc(pd, typ)
		x.refuse("ALLOC_MW", c, want)
		if want != 0 {
			continue
		}
		if keys[rsp.RKey()] || rsp.RKey() == 0 {
			t.Errorf("type %d has key %#x", typ, rsp.RKey())
		}
		keys[rsp.RKey()] = true
		x.refuse("PD of a window", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)), syscall.EBUSY)
		free := client.New(x.proc, uapi.ObjectMW, uapi.MWDestroy).Object(uapi.MWDestroyHandle, uint64(rsp.MWHandle()))
		x.do("MW_DESTROY", free)
		x.refuse("window twice", free, syscall.ENOENT)
	}
	c, _ := alloc(pd, 1)
	c.Value(uapi.AttrUHWIn, 8, 1) // a comp_mask
	x.refuse("driver data that nobody knows", c, syscall.EOPNOTSUPP)
	c, _ = alloc(pd+1000, 1)
	x.refuse("no PD", c, syscall.ENOENT)

	addr, buf := x.proc.Alloc(2 * 4096)
	h, key := x.mr(pd, addr, len(buf))
	rereg := func(flags uint32, change func(uapi.ReregMR)) (*client.Call, uapi.ReregMRResp) {
		r := uapi.ReregMR(make([]byte, uapi.ReregMRSize))
		r.SetMRHandle(h)
		r.SetFlags(flags)
		r.SetStart(addr + 4096)
		r.SetHCAVA(addr + 4096)
		r.SetLength(4096)
		r.SetPDHandle(other)
		r.SetAccessFlags(1)
		if change != nil {
			change(r)
		}
		c, rsp := x.write(uapi.CmdReregMR, r, uapi.ReregMRRespSize)
		return c, uapi.ReregMRResp(rsp)
	}
	for _, r := range []struct {
		what   string
		flags  uint32
		change func(uapi.ReregMR)
		want   syscall.Errno
	}{
		{"nothing", 0, nil, syscall.EINVAL},
		{"a flag that nobody knows", 8, nil, syscall.EOPNOTSUPP},
		{"nothing of no region", 0, func(r uapi.ReregMR) { r.SetMRHandle(h + 1000) }, syscall.EINVAL},
		{"no region", 2, func(r uapi.ReregMR) { r.SetMRHandle(h + 1000) }, syscall.ENOENT},
		{"no PD", 2, func(r uapi.ReregMR) { r.SetPDHandle(other + 1000) }, syscall.ENOENT},
		{"no memory", 1, func(r uapi.ReregMR) { r.SetStart(0x1000); r.SetHCAVA(0x1000) }, syscall.EFAULT},
		{"impossible access", 4, func(r uapi.ReregMR) { r.SetAccessFlags(2) }, syscall.EINVAL},
	} {
		c, _ := rereg(r.flags, r.change)
		x.refuse(r.what, c, r.want)
	}
	c, rsp := rereg(7, nil)
	x.do("REREG_MR", c)
	if rsp.LKey() == 0 || rsp.LKey() == key || rsp.LKey() != rsp.RKey() {
		t.Errorf("keys %#x, %#x; it was %#x", rsp.LKey(), rsp.RKey(), key)
	}
	x.do("the old PD is free", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)))
	x.do("MR_DESTROY", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, uint64(h)))
	x.file.Close()
	if r := x.kern.Resources(); r != (kernel.Resources{}) {
		t.Errorf("left behind: %+v", r)
	}
}

func TestClockPage(t *testing.T) {
	x := newRig(t, newMachine(t))
	if resp := x.open(); resp.CompMask()&uapi.UctxRespCoreClock == 0 || resp.HCACoreClockOffset() != 0 || resp.ClockInfoVersions() != 1 {
		t.Errorf("comp_mask %#x, offset %#x, versions %#x", resp.CompMask(), resp.HCACoreClockOffset(), resp.ClockInfoVersions())
	}
	for cmd, info := range map[uint32]bool{uapi.MmapCoreClock: false, uapi.MmapClockInfo: true} {
		page := uapi.MmapPage(cmd, 0)
		x.pages.fail = errors.New("no room")
		if e := x.file.Mmap(page); e != syscall.ENOMEM {
			t.Error(e)
		}
		x.pages.fail = nil
		for range 2 {
			if e := x.file.Mmap(page); e != 0 {
				t.Error(e)
			}
		}
		if got, ok := x.pages.clocks[page]; !ok || got != info {
			t.Errorf("page %#x: %v, %v", page, got, ok)
		}
	}
	x.file.Close()
	if x.pages.left() != "" {
		t.Errorf("%s are left", x.pages.left())
	}
}

// A region is given back while the device reads it for another's READ: the answers that
// are under way carry what lay there, and nothing else follows.
func TestDeregUnderRead(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	const size = 64 << 10
	to, dst := x.proc.Alloc(size)
	from, src := x.proc.Alloc(size)
	_, key := x.mr(pd, to, size)
	for i := range src {
		src[i] = byte(i%250) + 1
	}
	failed := 0
	for step := range 40 {
		a, b := x.qp(pd, cq), x.qp(pd, cq)
		x.connect(false, a, b.qpn)
		x.connect(false, b, a.qpn)
		h, rkey := x.mr(pd, from, size)
		clear(dst)
		x.post(a, prm.WQEOpRDMARead, raddr(from, rkey), data(size, key, to))
		if err := x.eng.Run(x.eng.Now() + sim.Time(step)*400*sim.Nanosecond); err != nil {
			t.Fatal(err)
		}
		x.do("MR_DESTROY", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, uint64(h)))
		x.settle(t)
		prefix := 0
		for prefix < size && dst[prefix] == src[prefix] {
			prefix++
		}
		for i, v := range dst[prefix:] {
			if v != 0 {
				t.Fatalf("step %d: byte %d is %#x behind a prefix of %d", step, prefix+i, v, prefix)
			}
		}
		for c := cq.poll(); c != nil; c = cq.poll() {
			if c.Opcode() == prm.CQEReqErr {
				failed++
			}
		}
		x.destroyQP(a)
		x.destroyQP(b)
	}
	if failed == 0 || failed == 40 {
		t.Errorf("%d of 40 READs failed: none was under way", failed)
	}
}
