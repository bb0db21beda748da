package mr

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// zeroBased are the rights of most regions of device memory, whose addresses begin at 0.
const zeroBased = kit.AllAccess | verbs.AccessZeroBased

// deviceMemory is memory on the device (ibv_alloc_dm).
type deviceMemory struct {
	verbs.DM
	free func(c *spec.C)
}

func allocDM(c *spec.C, e *kit.Env, n uint64) *deviceMemory {
	m, err := e.Ctx.AllocDM(c.T, verbs.DMAttr{Length: n})
	c.NoErr("alloc_dm", err)
	return &deviceMemory{m, kit.DestroyOnce(c, "free_dm", m.Free)}
}

// register registers a range of it until the case ends.
func (m *deviceMemory) register(c *spec.C, e *kit.Env, off, n uint64) (mr verbs.MR, dereg func(c *spec.C)) {
	mr, err := e.PD.RegDMMR(c.T, m.DM, off, n, zeroBased)
	c.NoErr("reg_dm_mr", err)
	return mr, kit.DestroyOnce(c, "dereg_mr", mr.Dereg)
}

func dmAboveMaximum(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	c.Observe("max_dm_size", a.MaxDMSize)
	c.True("there is device memory", a.MaxDMSize > 0, "max_dm_size is 0")
	for _, n := range []uint64{a.MaxDMSize + 1, a.MaxDMSize + 4096, 1 << 40} {
		_, err := e.Ctx.AllocDM(c.T, verbs.DMAttr{Length: n})
		c.ErrnoIn("more than the maximum", err, syscall.EINVAL, syscall.ENOMEM, syscall.ENOSPC)
	}
	// All that there is, in two parts: a third finds no room.
	half := a.MaxDMSize / 2
	first := allocDM(c, e, half)
	allocDM(c, e, half)
	_, err = e.Ctx.AllocDM(c.T, verbs.DMAttr{Length: half})
	c.ErrnoIn("more than is left", err, syscall.EINVAL, syscall.ENOMEM, syscall.ENOSPC)
	first.free(c)
	allocDM(c, e, half)
}

func dmRegistration(c *spec.C) {
	e := kit.Open(c)
	m := allocDM(c, e, 4096)
	reg := func(off, n uint64, a verbs.AccessFlags) error {
		mr, err := e.PD.RegDMMR(c.T, m.DM, off, n, a)
		if err == nil {
			kit.Must(c, "dereg_mr", mr.Dereg(c.T))
		}
		return err
	}
	c.Errno("zero-based", reg(0, 4096, zeroBased), 0)
	c.Errno("a part", reg(64, 4032, zeroBased), 0)
	c.Errno("not zero-based", reg(0, 4096, kit.AllAccess), syscall.EINVAL)
	c.Errno("no rights at all, not zero-based", reg(0, 4096, 0), syscall.EINVAL)
	c.Errno("one byte beyond the end", reg(0, 4097, zeroBased), syscall.EINVAL)
	c.Errno("a part beyond the end", reg(64, 4096, zeroBased), syscall.EINVAL)
	c.Errno("behind the end", reg(8192, 64, zeroBased), syscall.EINVAL)
	c.Errno("an offset that wraps", reg(^uint64(0)-63, 128, zeroBased), syscall.EINVAL)
	c.Errno("on demand", reg(0, 4096, zeroBased|verbs.AccessOnDemand), syscall.EINVAL)
	c.Errno("remote write without local write", reg(0, 4096, verbs.AccessRemoteWrite|verbs.AccessZeroBased), syscall.EINVAL)
}

func dmUnaligned(c *spec.C) {
	e := kit.Open(c)
	m := allocDM(c, e, 256)
	want := c.Rand().Bytes(256)
	c.Errno("copy to", m.CopyTo(c.T, 0, want), 0)
	for _, r := range []struct{ off, n uint64 }{{1, 4}, {2, 8}, {0, 5}, {4, 6}, {3, 3}, {252, 8}, {256, 4}} {
		p := make([]byte, r.n)
		c.ErrnoIn("copy to", m.CopyTo(c.T, r.off, p), syscall.EINVAL, syscall.EFAULT)
		c.ErrnoIn("copy from", m.CopyFrom(c.T, p, r.off), syscall.EINVAL, syscall.EFAULT)
	}
	got := make([]byte, 256)
	c.Errno("copy from", m.CopyFrom(c.T, got, 0), 0)
	c.Equal("bytes", got, want)
	c.Errno("a word", m.CopyTo(c.T, 4, want[:4]), 0)
	c.Errno("three words", m.CopyTo(c.T, 12, want[:12]), 0)
	copy(want[4:], append([]byte(nil), want[:4]...))
	c.Errno("copy of a part", m.CopyFrom(c.T, got[:20], 4), 0)
	c.Equal("the word", got[:4], want[4:8])
}

func dmFreeInUse(c *spec.C) {
	e := kit.Open(c)
	m := allocDM(c, e, 4096)
	_, first := m.register(c, e, 0, 4096)
	_, second := m.register(c, e, 0, 64)
	c.Errno("free_dm under two regions", m.Free(c.T), syscall.EBUSY)
	first(c)
	c.Errno("free_dm under one region", m.Free(c.T), syscall.EBUSY)
	second(c)
	m.free(c)
}

// dmAccess does the same to host memory and to device memory, which must then hold the same.
func dmAccess(c *spec.C) {
	const size, base = 4096, 1024
	p := kit.NewPair(c, kit.Default())
	m := allocDM(c, p.Env, base+size)
	mr, _ := m.register(c, p.Env, base, size)
	host, src, back := p.Buffer(c, size, kit.AllAccess), p.Buffer(c, size, kit.AllAccess), p.Buffer(c, size, kit.AllAccess)
	zero := make([]byte, size)
	host.Set(c, 0, zero)
	kit.Must(c, "memcpy_to_dm", m.CopyTo(c.T, base, zero))
	src.FillRandom(c)
	same := func(step string) {
		got := make([]byte, size)
		kit.Must(c, "memcpy_from_dm", m.CopyFrom(c.T, got, base))
		c.Equal(step, got, host.Get(c, 0, size))
	}
	// both does a request of A to B's memory, once to each.
	both := func(step string, wr verbs.SendWR, off uint64) {
		wr.RemoteAddr, wr.RKey = host.Addr(0)+off, host.MR.RKey()
		c.Status(step+" on host memory", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		result := back.Get(c, 0, 8)
		wr.RemoteAddr, wr.RKey = off, mr.RKey()
		c.Status(step+" on device memory", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		back.ExpectContents(c, step+": result", result)
		same(step)
	}
	both("WRITE", kit.Write(1, host, 0, src.SGE(0, 3000)), 500)
	both("WRITE of one byte", kit.Write(2, host, 0, src.SGE(7, 1)), size-1)
	back.FillByte(c, 0)
	wr := kit.Read(3, host, 0, back.SGE(0, 2000))
	wr.RemoteAddr, wr.RKey = 300, mr.RKey()
	c.Status("READ of device memory", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	back.ExpectContents(c, "bytes read", host.Get(c, 300, 2000))
	if c.Has("atomic") {
		both("FETCH_ADD", kit.FetchAdd(4, host, 0, 0x1122334455667788, back.SGE(0, 8)), 512)
		both("CMP_SWAP that differs", kit.CmpSwap(5, host, 0, 1, 2, back.SGE(0, 8)), 520)
		both("CMP_SWAP that is equal", kit.CmpSwap(6, host, 0, 0, 99, back.SGE(0, 8)), 8)
		both("CMP_SWAP of what was swapped", kit.CmpSwap(7, host, 0, 99, 1<<63, back.SGE(0, 8)), 8)
	}

	local := verbs.SGE{Addr: 100, Length: 1000, LKey: mr.LKey()}
	c.Status("WRITE from device memory", p.A.PostAndPoll(c, kit.Write(8, back, 0, local)), verbs.WCSuccess)
	back.ExpectContents(c, "bytes from device memory", host.Get(c, 100, 1000))
	p.B.RecvInto(c, 9, verbs.SGE{Addr: 2048, Length: 512, LKey: mr.LKey()})
	p.A.Post(c, kit.Send(10, src.SGE(1024, 512)))
	c.Status("SEND", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	c.Status("receive into device memory", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	host.Set(c, 2048, src.Get(c, 1024, 512))
	same("memory after the receive")

	wr = kit.Write(11, host, 0, src.SGE(0, 8))
	wr.RemoteAddr, wr.RKey = size-7, mr.RKey()
	c.Status("WRITE over the end of the region", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
}
