package odp

import (
	"bytes"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// everything registers the whole address space, to be paged on demand.
func everything(c *spec.C, e *kit.Env, access verbs.AccessFlags) verbs.MR {
	mr, err := e.PD.RegMR(c.T, 0, math.MaxUint64, access|verbs.AccessOnDemand)
	kit.Must(c, "reg_mr of the whole address space", err)
	c.Defer(func() { kit.Must(c, "dereg_mr", mr.Dereg(c.T)) })
	return mr
}

// within names n bytes of memory by the key of a region of the whole address space.
func within(mr verbs.MR, m verbs.Buffer, off, n int) verbs.SGE {
	return verbs.SGE{Addr: m.Addr() + uint64(off), Length: uint32(n), LKey: mr.LKey()}
}

// oneKeyForAll sends memory of each kind by one key.
func oneKeyForAll(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	p := e.Pair(c, options())
	to := e.Buffer(c, size, kit.AllAccess)
	send := func(what string, m verbs.Buffer) {
		want := make([]byte, size)
		_, err := m.ReadAt(c.T, want, 0)
		kit.Must(c, "read "+what, err)
		p.B.RecvInto(c, 1, to.All())
		c.Status("send of "+what, p.A.PostAndPoll(c, kit.Send(2, within(mr, m, 0, size))), verbs.WCSuccess)
		c.Status("receive of "+what, kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
		c.True("contents of "+what, bytes.Equal(to.Get(c, 0, size), want), "other bytes")
	}
	heap := kit.Map(c, size)
	_, err := heap.WriteAt(c.T, c.Rand().Bytes(size), 0)
	kit.Must(c, "write memory", err)
	send("written memory", heap)
	send("untouched memory", kit.MapLazily(c, size))
	o, ok := c.Process().(verbs.MemObjects)
	if !ok {
		c.Errorf("the target's processes have no files to map")
	}
	for _, x := range []struct {
		what string
		make func(verbs.Thread, uint64) (verbs.MemObject, error)
	}{{"a file", o.NewFile}, {"shared memory", o.NewShared}} {
		object, err := x.make(c.T, size)
		kit.Must(c, "make "+x.what, err)
		c.Defer(func() { kit.Must(c, "close "+x.what, object.Close(c.T)) })
		_, err = object.WriteAt(c.T, c.Rand().Bytes(size), 0)
		kit.Must(c, "write "+x.what, err)
		m, err := c.Process().Map(c.T, size, verbs.MapOptions{Lazy: true, Object: object})
		kit.Must(c, "map "+x.what, err)
		c.Defer(func() { kit.Must(c, "unmap "+x.what, m.Unmap(c.T)) })
		send(x.what, m)
	}
}

// holeOfEverything accesses what is not mapped, by the key of the whole address space, and again
// when it is.
func holeOfEverything(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	to := e.Buffer(c, size, kit.AllAccess)
	p, other := e.Pair(c, options()), e.Pair(c, options())
	hole := kit.MapLazily(c, size)
	at := hole.Addr()
	kit.Must(c, "munmap", hole.Unmap(c.T)) // after all that maps memory of its own, which could lie there
	wc := p.A.PostAndPoll(c, kit.Write(1, to, 0, verbs.SGE{Addr: at, Length: 8, LKey: mr.LKey()}))
	c.True("write from the hole fails", wc.Status != verbs.WCSuccess, "it succeeds")
	c.Observe("status", wc.Status)
	c.Equal("state", p.A.QueryState(c), verbs.QPSErr)
	m, err := c.Process().Map(c.T, size, verbs.MapOptions{Lazy: true, At: at})
	kit.Must(c, "map the hole", err)
	c.Defer(func() { kit.Must(c, "munmap", m.Unmap(c.T)) })
	want := c.Rand().Bytes(size)
	_, err = m.WriteAt(c.T, want, 0)
	kit.Must(c, "write memory", err)
	c.Status("write from there now", other.A.PostAndPoll(c, kit.Write(2, to, 0, within(mr, m, 0, size))), verbs.WCSuccess)
	c.True("contents", bytes.Equal(to.Get(c, 0, size), want), "other bytes")
}

// gib is what a child of such a region has in the driver, in bytes.
const gib = 1 << 30

// acrossChildren sends memory around an address that is a multiple of a GiB.
func acrossChildren(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	m := kit.MapLazily(c, 2*gib)
	at := int((m.Addr()+gib+gib-1)&^(gib-1) - m.Addr() - size/2)
	want := c.Rand().Bytes(size)
	_, err := m.WriteAt(c.T, want, int64(at))
	kit.Must(c, "write memory", err)
	p, to := e.Pair(c, options()), e.Buffer(c, size, kit.AllAccess)
	c.Status("write", p.A.PostAndPoll(c, kit.Write(1, to, 0, within(mr, m, at, size))), verbs.WCSuccess)
	c.True("contents", bytes.Equal(to.Get(c, 0, size), want), "other bytes")
}

// aboveTheProgram accesses addresses that no program has.
func aboveTheProgram(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	p, to := e.Pair(c, options()), e.Buffer(c, size, kit.AllAccess)
	wc := p.A.PostAndPoll(c, kit.Write(1, to, 0, verbs.SGE{Addr: 1 << 62, Length: 8, LKey: mr.LKey()}))
	c.True("write from there fails", wc.Status != verbs.WCSuccess, "it succeeds")
	c.Observe("status", wc.Status)
	c.Equal("state", p.A.QueryState(c), verbs.QPSErr)
}

// remoteEverything serves writes to any of a program's memory.
func remoteEverything(c *spec.C) {
	e := kit.Open(c)
	mr := everything(c, e, kit.AllAccess)
	p, from := e.Pair(c, options()), e.Buffer(c, size, kit.AllAccess)
	for i := range 3 {
		m := kit.MapLazily(c, 2*size)
		want := from.FillRandom(c)
		wr := kit.Write(uint64(i), from, 0, from.All())
		wr.RemoteAddr, wr.RKey = m.Addr()+100, mr.RKey()
		c.Status("write", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		got := make([]byte, size)
		_, err := m.ReadAt(c.T, got, 100)
		kit.Must(c, "read memory", err)
		c.True("contents", bytes.Equal(got, want), "other bytes")
	}
}

// hugeEverything asks for huge pages of the whole address space.
func hugeEverything(c *spec.C) {
	e := kit.Open(c)
	_, err := e.PD.RegMR(c.T, 0, math.MaxUint64, verbs.AccessLocalWrite|verbs.AccessOnDemand|verbs.AccessHugetlb)
	c.Errno("reg_mr of the whole address space in huge pages", err, syscall.EINVAL)
}
