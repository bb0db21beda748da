//go:build linux

package uverbs

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

func generations(t *testing.T, body func(x *rig)) {
	for _, dynamic := range []bool{false, true} {
		t.Run(fmt.Sprintf("dynamic=%v", dynamic), func(t *testing.T) {
			x := newRig(t, newMachine(t))
			x.file.DynamicUARs = dynamic
			body(x)
		})
	}
}

func TestOpen(t *testing.T) {
	generations(t, func(x *rig) {
		c, resp := x.getContext()
		x.do("GET_CONTEXT", c)
		if resp.ResponseLength() != uapi.AllocUcontextRespSize || resp.BFRegSize() != 512 || resp.NumPorts() != 1 || resp.CQEVersion() != 1 ||
			resp.LogUARSize() != 12 || resp.NumUARsPerPage() != 1 || !c.Filled(uapi.AttrUHWOut) || !c.Filled(uapi.GetContextVec) {
			x.Errorf("answer %x", []byte(resp))
		}
		static := resp.TotBFRegs() == 16 && len(x.pages.uars) == 8*3
		if static == x.file.DynamicUARs {
			x.Errorf("%d bfregs, %d pages", resp.TotBFRegs(), len(x.pages.uars))
		}
		again, _ := x.getContext()
		x.refuse("second GET_CONTEXT", again, syscall.EINVAL)
		x.file.Close()
		if r := x.kern.Resources(); r != (kernel.Resources{}) || len(x.pages.uars) != 0 {
			x.Errorf("left behind: %+v, %d pages", r, len(x.pages.uars))
		}
		x.file.Close()
		again, _ = x.getContext()
		x.refuse("GET_CONTEXT on a closed file", again, syscall.EBADF)
	})
}

func TestQueries(t *testing.T) {
	x := newRig(t, newMachine(t))
	c, _ := x.write(uapi.CmdQueryDevice, make([]byte, 8), uapi.QueryDeviceRespSize)
	x.refuse("before GET_CONTEXT", c, syscall.EINVAL)
	x.open()
	c, rsp := x.write(uapi.CmdQueryDevice|uapi.CmdExtended, make([]byte, uapi.ExQueryDeviceSize), uapi.ExQueryDeviceRespSize)
	drv := uapi.MLX5QueryDeviceResp(c.Out(uapi.AttrUHWOut, uapi.MLX5QueryDeviceRespSize))
	x.do("EX_QUERY_DEVICE", c)
	d := uapi.ExQueryDeviceResp(rsp)
	if d.Base().NodeGUID() != x.kern.NodeGUID() || d.Base().PhysPortCnt() != 1 || d.Base().MaxQP() == 0 || d.Base().FWVer()>>32 == 0 ||
		d.ResponseLength() != uapi.ExQueryDeviceRespSize || drv.ResponseLength() != uapi.MLX5QueryDeviceRespSize ||
		drv.Flags() != uapi.QueryDevCQE128BPad|uapi.QueryDevCQE128BComp || drv.CQECompMaxNum() == 0 || drv.CQECompFormats() != 7 || d.MaxCQCount() == 0 || d.MaxCQPeriod() == 0 {
		t.Errorf("device %x, driver %x", rsp, []byte(drv))
	}
	p := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceQueryPort).Value(uapi.QueryPortNum, 8, 1)
	port := uapi.QueryPortRespEx(p.Out(uapi.QueryPortRsp, uapi.QueryPortRespExSize))
	x.do("QUERY_PORT", p)
	if l := port.Legacy(); l.State() != 4 || l.LinkLayer() != 2 || l.GIDTblLen() == 0 || l.MaxMTU() != 5 {
		t.Errorf("port %x", []byte(port))
	}
	for _, n := range []uint64{0, 2, 257, 1 << 40} {
		p := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceQueryPort).Value(uapi.QueryPortNum, 8, n)
		p.Out(uapi.QueryPortRsp, uapi.QueryPortRespExSize)
		x.refuse(fmt.Sprintf("port %d", n), p, syscall.EINVAL)
	}
	gid, index := x.gid()
	g := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceQueryGIDTable).Value(uapi.QueryGIDTableEntrySize, 8, uapi.GIDEntrySize)
	tab := g.Out(uapi.QueryGIDTableEntries, 256*uapi.GIDEntrySize)
	num := g.Out(uapi.QueryGIDTableNumEntries, 8)
	x.do("QUERY_GID_TABLE", g)
	found := false
	for i := range int(num[0]) {
		e := uapi.GIDEntry(tab[i*uapi.GIDEntrySize:][:uapi.GIDEntrySize])
		found = found || bytes.Equal(e.GID(), gid) && e.Index() == uint32(index) && e.Port() == 1
	}
	if !found {
		t.Errorf("entry %d is not in the table of %d", index, num[0])
	}
	empty := client.New(x.proc, uapi.ObjectDevice, uapi.DeviceQueryGIDEntry).Value(uapi.QueryGIDEntryPort, 8, 1).
		Value(uapi.QueryGIDEntryIndex, 8, 200).Value(uapi.QueryGIDEntryFlags, 4, 0)
	empty.Out(uapi.QueryGIDEntryRsp, uapi.GIDEntrySize)
	x.refuse("empty slot", empty, syscall.ENODATA)
}

// A program that writes WQE bytes by hand and rings registers moves data through the
// same device as all others.
func TestWriteAndSend(t *testing.T) {
	generations(t, func(x *rig) {
		x.open()
		pd, cq := x.pd(), x.cq(-1, 1)
		a, b := x.qp(pd, cq), x.qp(pd, cq)
		x.connect(false, a, b.qpn)
		x.connect(true, b, a.qpn)
		addr, buf := x.proc.Alloc(3 * 4096)
		_, key := x.mr(pd, addr, len(buf))
		copy(buf, "unmodified")
		x.post(a, prm.WQEOpRDMAWrite, raddr(addr+8000, key), data(10, key, addr))
		x.settle(x.T)
		if c := cq.poll(); c == nil || c.Opcode() != prm.CQEReq || c.QPN() != a.qpn || string(buf[8000:8010]) != "unmodified" {
			x.Fatalf("completion %x, memory %q", c, buf[8000:8010])
		}
		b.recv(0, 100, key, addr+4096)
		x.post(a, prm.WQEOpSend, data(10, key, addr))
		x.settle(x.T)
		var ops []prm.CQEOpcode
		for c := cq.poll(); c != nil; c = cq.poll() {
			ops = append(ops, c.Opcode())
			if c.Opcode() == prm.CQERespSend && (c.QPN() != b.qpn || c.ByteCnt() != 10) {
				x.Errorf("receive %x", c)
			}
		}
		if len(ops) != 2 || string(buf[4096:4106]) != "unmodified" {
			x.Errorf("completions %v, memory %q", ops, buf[4096:4106])
		}
		x.query(a)
		x.close(pd, cq, a, b)
	})
}

// query checks what QUERY_QP says of a QP in RTS.
func (x *rig) query(q *testQP) {
	x.Helper()
	r := uapi.QueryQP(make([]byte, uapi.QueryQPSize))
	r.SetQPHandle(q.handle)
	r.SetAttrMask(1)
	c, rsp := x.write(uapi.CmdQueryQP, r, uapi.QueryQPRespSize)
	x.do("QUERY_QP", c)
	a := uapi.QueryQPResp(rsp)
	if a.State() != 3 || a.PathMTU() != 3 || a.Timeout() != 14 || a.Dest().IsGlobal() != 1 || a.Port() != 1 || a.MaxRecvWR() != rqCount {
		x.Errorf("QP %x", rsp)
	}
}

// close destroys everything in order, after what must be refused.
func (x *rig) close(pd uint32, cq *testCQ, qps ...*testQP) {
	x.Helper()
	busy := client.New(x.proc, uapi.ObjectCQ, uapi.CQDestroy).Object(uapi.CQDestroyHandle, uint64(cq.handle))
	busy.Out(uapi.CQDestroyRsp, uapi.DestroyCQRespSize)
	x.refuse("CQ in use", busy, syscall.EBUSY)
	x.refuse("PD in use", client.New(x.proc, uapi.ObjectPD, uapi.PDDestroy).Object(uapi.PDDestroyHandle, uint64(pd)), syscall.EBUSY)
	for _, q := range qps {
		if n := x.destroyQP(q); n != 0 {
			x.Errorf("%d events of a QP without events", n)
		}
	}
	x.destroyCQ(cq)
	if len(x.pages.qps) != 0 || len(x.pages.cqs) != 0 {
		x.Errorf("the session still knows %d QPs, %d CQs", len(x.pages.qps), len(x.pages.cqs))
	}
	x.file.Close()
	if r := x.kern.Resources(); r != (kernel.Resources{}) {
		x.Errorf("left behind: %+v", r)
	}
}

func TestCompletionEvents(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, ch := x.pd(), x.channel()
	cq, other := x.cq(ch, 0x1111), x.cq(ch, 0x1111) // the same name on purpose
	a := x.qp(pd, cq)
	b := x.qp(pd, other)
	x.connect(false, a, b.qpn)
	x.connect(false, b, a.qpn)
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	send := func(q *testQP) {
		x.post(q, prm.WQEOpRDMAWrite, raddr(addr+2048, key), data(8, key, addr))
		x.settle(t)
	}
	send(a)
	if _, ok := x.event(ch, 8); ok {
		t.Fatal("an event that nobody armed for")
	}
	cq.poll()
	x.arm(cq)
	send(a)
	e, ok := x.event(ch, 8)
	if !ok || uapi.CompEvent(e).CQHandle() != 0x1111 {
		t.Fatalf("event %x, %v", e, ok)
	}
	cq.poll()
	cq.sn++
	x.arm(cq)
	x.arm(other)
	send(a)
	send(b) // two events lie in the pipe
	x.destroyQP(a)
	if comp, _ := x.destroyCQ(cq); comp != 1 {
		t.Errorf("%d events reported, one was read", comp)
	}
	if _, ok := x.event(ch, 8); !ok {
		t.Error("the event of the other CQ is gone")
	}
	if _, ok := x.event(ch, 8); ok {
		t.Error("an event of a CQ that is destroyed")
	}
	x.destroyQP(b)
	if comp, _ := x.destroyCQ(other); comp != 1 {
		t.Errorf("%d events reported of the other", comp)
	}
}

func TestChannelFiles(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	ch := x.channel()
	for _, fd := range []int{99, -1} {
		c, _, _ := x.cqCall(-1, 1, nil)
		c.Object(uapi.CQCreateChannel, uint64(fd))
		x.refuse(fmt.Sprintf("channel %d", fd), c, syscall.EBADF)
	}
	async := x.asyncFD()
	c, _, _ := x.cqCall(async, 1, nil)
	x.refuse("the async file as channel", c, syscall.EBADF)
	c, _, _ = x.cqCall(-1, 1, nil)
	c.Object(uapi.CQCreateEventFD, uint64(ch))
	x.refuse("a channel as async file", c, syscall.EBADF)
	c, _, _ = x.cqCall(ch, 1, nil)
	c.Object(uapi.CQCreateEventFD, uint64(async))
	x.do("CQ_CREATE", c)
	c, _, _ = x.cqCall(ch, 1, nil)
	c.Object(uapi.CQCreateEventFD, uint64(x.asyncFD())) // of an imported context
	x.do("CQ_CREATE", c)
	// A channel whose descriptors are all closed is given back when the next is made.
	x.proc.Retract(x.channel())
	if n := x.kern.Resources().CompChannel; n != 2 {
		t.Fatalf("%d channels", n)
	}
	x.channel()
	if n := x.kern.Resources().CompChannel; n != 2 {
		t.Errorf("%d channels, one was closed", n)
	}
	x.proc.noRoom = true
	w, _ := x.write(uapi.CmdCreateCompChannel, make([]byte, 8), 4)
	x.refuse("no descriptors left", w, syscall.EMFILE)
	if n := x.kern.Resources().CompChannel; n != 2 {
		t.Errorf("%d channels after one that failed", n)
	}
}

func TestAsyncEvents(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, fd := x.pd(), x.asyncFD()
	cq := x.cq(-1, 1)
	a, b := x.qp(pd, cq), x.qp(pd, cq)
	x.connect(false, a, b.qpn)
	x.connect(false, b, a.qpn)
	addr, buf := x.proc.Alloc(4096)
	_, key := x.mr(pd, addr, len(buf))
	x.post(a, prm.WQEOpRDMAWrite, raddr(addr, key^0x100), data(8, key, addr)) // no such key
	x.settle(t)
	read := uint32(0)
	for {
		e, ok := x.event(fd, uapi.AsyncEventSize)
		if !ok {
			break
		}
		read++
		if d := uapi.AsyncEvent(e); d.Element() != 0xabc0 || d.EventType() != 3 { // the responder's access error
			t.Errorf("event %d about %#x", d.EventType(), d.Element())
		}
	}
	if read != 1 {
		t.Errorf("%d events", read)
	}
	if n := x.destroyQP(b); n != read {
		t.Errorf("%d events reported, %d read", n, read)
	}
}

func TestMemoryThatGoes(t *testing.T) {
	x := newRig(t, newMachine(t))
	x.open()
	pd, cq := x.pd(), x.cq(-1, 1)
	r := uapi.RegMR(make([]byte, uapi.RegMRSize))
	r.SetStart(0x1000)
	r.SetHCAVA(0x1000)
	r.SetLength(4096)
	r.SetPDHandle(pd)
	c, _ := x.write(uapi.CmdRegMR, r, uapi.RegMRRespSize)
	x.refuse("memory that is not there", c, syscall.EFAULT)
	r.SetPDHandle(pd + 1000)
	c, _ = x.write(uapi.CmdRegMR, r, uapi.RegMRRespSize)
	x.refuse("no PD", c, syscall.ENOENT)
	r.SetPDHandle(0)
	c, _ = x.write(uapi.CmdRegMR, r, uapi.RegMRRespSize)
	x.refuse("PD 0", c, syscall.ENOENT)
	r.SetPDHandle(cq.handle)
	c, _ = x.write(uapi.CmdRegMR, r, uapi.RegMRRespSize)
	x.refuse("a CQ as PD", c, syscall.EINVAL)
	addr, buf := x.proc.Alloc(4096)
	h, _ := x.mr(pd, addr, len(buf))
	x.do("MR_DESTROY", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, uint64(h)))
	x.refuse("MR twice", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, uint64(h)), syscall.ENOENT)
	x.refuse("a handle of 64 bits", client.New(x.proc, uapi.ObjectMR, uapi.MRDestroy).Object(uapi.MRDestroyHandle, 1<<40|uint64(h)), syscall.ENOENT)
}

func TestAnswersThatCannotBeDelivered(t *testing.T) {
	x := newRig(t, newMachine(t))
	c, _ := x.getContext()
	c.Attr(uapi.AttrUHWOut).SetData(0x10)
	x.refuse("GET_CONTEXT", c, syscall.EFAULT)
	if r := x.kern.Resources(); r != (kernel.Resources{}) || len(x.pages.uars) != 0 {
		t.Errorf("left behind: %+v, %d pages", r, len(x.pages.uars))
	}
	x.pages.fail = errors.New("no room")
	c, _ = x.getContext()
	x.refuse("GET_CONTEXT without pages", c, syscall.ENOMEM)
	x.pages.fail = nil
	x.open()
	x.asyncFD()
	pd, cq := x.pd(), x.cq(-1, 1)
	before := x.kern.Resources()
	for _, id := range []uint16{uapi.CQCreateRspCQE, uapi.AttrUHWOut} {
		c, _, _ = x.cqCall(-1, 1, nil)
		c.Attr(id).SetData(0x10)
		x.refuse("CQ_CREATE", c, syscall.EFAULT)
	}
	for _, id := range []uint16{uapi.QPCreateRspCap, uapi.QPCreateRspQPN, uapi.AttrUHWOut} {
		c, _, _ = x.qpCall(pd, cq, nil)
		c.Attr(id).SetData(0x10)
		x.refuse("QP_CREATE", c, syscall.EFAULT)
	}
	for cmd, n := range map[uint32]int{uapi.CmdAllocPD: 8, uapi.CmdCreateCompChannel: 8} {
		c, _ = x.write(cmd, make([]byte, n), 8)
		c.Attr(uapi.InvokeWriteCoreOut).SetData(0x10)
		x.refuse("command", c, syscall.EFAULT)
	}
	if after := x.kern.Resources(); after != before {
		t.Errorf("%+v before, %+v after", before, after)
	}
}
