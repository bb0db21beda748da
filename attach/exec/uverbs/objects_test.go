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
	if rsp.LKey() != key || rsp.LKey() != rsp.RKey() { // it has room for the new pages: a UMR loads them
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
