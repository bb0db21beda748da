//go:build linux

package uverbs

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

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
		{"XRC without a domain", func(c *client.Call) { c.Attr(uapi.SRQCreateType).SetData(uapi.SRQTypeXRC) }, syscall.ENOENT},
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
