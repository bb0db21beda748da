package odp

import (
	"bytes"
	"maps"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// discardedAtAnyMoment gives a page back while the device asks for it, at other moments of the page
// fault: whatever the device got, from then on it has the page that the program has.
func discardedAtAnyMoment(c *spec.C) {
	x := connect(c)
	const step, moments = 10 * time.Microsecond, 60
	discard := func() {
		kit.Must(c, "madvise", x.from.Pages(c).Advise(c.T, 0, kit.Page, verbs.AdviceDontNeed))
	}
	other := kit.MapLazily(c, moments*kit.Page)
	for i := range moments {
		discard()
		x.pair.A.Post(c, kit.Read(1, x.from, 0, x.to.SGE(kit.Page, 8)))
		c.T.Sleep(time.Duration(i) * step)
		discard()
		_, err := other.WriteAt(c.T, []byte{1}, int64(i*kit.Page)) // the memory that was given back has another owner
		kit.Must(c, "write memory", err)
		x.from.SetWord(c, 0, uint64(i+1))
		c.Status("read while the page was given back", kit.PollOne(c, x.pair.A.SendCQ), verbs.WCSuccess)
		c.Status("read", x.pair.A.PostAndPoll(c, kit.Read(2, x.from, 0, x.to.SGE(0, 8))), verbs.WCSuccess)
		c.Equal("what the device reads", x.to.Word(c, 0), uint64(i+1))
	}
}

// unmappedAfterARace has a peer ask for a page that nobody has touched, and brings it by a prefetch
// meanwhile, at other moments of the page fault. A request that has completed waits for no page any
// more: its page may go, and the connection lives.
func unmappedAfterARace(c *spec.C) {
	e := kit.Open(c)
	o := options()
	o.MinRNRTimer = 1 // the shortest
	p, own, other := e.Pair(c, o), e.Buffer(c, kit.Page, kit.AllAccess), e.Buffer(c, kit.Page, kit.AllAccess)
	const step, moments = 10 * time.Microsecond, 60
	for i := range moments {
		raced := e.Paged(c, 2*kit.Page, kit.AllAccess)
		request := kit.Write(1, raced, 0, own.SGE(0, 8))
		if i%2 > 0 {
			request = kit.Read(1, raced, 0, own.SGE(0, 8))
		}
		p.A.Post(c, request)
		c.T.Sleep(time.Duration(i/2) * step)
		page := []verbs.SGE{raced.SGE(0, kit.Page)}
		c.NoErr("prefetch", e.PD.AdviseMR(c.T, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, page))
		c.Status("request whose page was prefetched", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
		kit.Must(c, "munmap of the page", raced.Pages(c).UnmapPart(c.T, 0, kit.Page))
		c.T.Sleep(time.Millisecond) // longer than a page fault takes
		c.Status("another request on the connection", p.A.PostAndPoll(c, kit.Write(2, other, 0, own.SGE(0, 8))), verbs.WCSuccess)
	}
}

// remappedUnderWrites puts other memory under a region while writes to it are under way, at other
// moments. A second mapping shows the old page: nothing reaches it any more when the call has
// returned.
func remappedUnderWrites(c *spec.C) {
	o, ok := c.Process().(verbs.MemObjects)
	if !ok {
		c.Errorf("the target's processes have no files to map")
	}
	e := kit.Open(c)
	shared, err := o.NewShared(c.T, kit.Page)
	kit.Must(c, "make shared memory", err)
	c.Defer(func() { kit.Must(c, "close it", shared.Close(c.T)) })
	m, err := c.Process().Map(c.T, kit.Page, verbs.MapOptions{Lazy: true, Object: shared})
	kit.Must(c, "mmap", err)
	c.Defer(func() { kit.Must(c, "munmap", m.Unmap(c.T)) })
	to := e.PagedOver(c, m, kit.Page, kit.AllAccess)
	const lot, length, rounds = 50, 64, 20
	p, from := e.Pair(c, options()), e.Buffer(c, lot*length, kit.AllAccess)
	remap := func(object verbs.MemObject) {
		if m, err = c.Process().Map(c.T, kit.Page, verbs.MapOptions{Lazy: true, At: m.Addr(), Object: object}); err != nil {
			c.Errorf("map other memory in its place: %v", err)
		}
	}
	old, now := make([]byte, kit.Page), make([]byte, kit.Page)
	for round := range rounds {
		from.FillRandom(c)
		c.Status("write that brings the page", p.A.PostAndPoll(c, kit.Write(0, to, 0, from.SGE(0, length))), verbs.WCSuccess)
		for i := range lot {
			p.A.Post(c, kit.Write(uint64(i), to, i*length, from.SGE(i*length, length)))
			if i == lot*round/rounds {
				remap(nil)
				_, err = shared.ReadAt(c.T, old, 0)
				kit.Must(c, "read the old page", err)
			}
		}
		for range lot {
			c.Status("write", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
		}
		_, err = shared.ReadAt(c.T, now, 0)
		kit.Must(c, "read the old page", err)
		c.True("the old page is as it was when the call returned", bytes.Equal(now, old), "other bytes")
		_, err = m.ReadAt(c.T, now, 0)
		kit.Must(c, "read the new page", err)
		c.True("the new page has the last write", bytes.Equal(now[(lot-1)*length:lot*length], from.Get(c, (lot-1)*length, length)), "other bytes")
		remap(shared)
	}
}

// killedUnderFaults ends a process whose memory a peer reads, at moments of the page faults:
// nothing of it is left.
func killedUnderFaults(c *spec.C) {
	counter, counted := c.TB.(verbs.ResourceCounter)
	counted = counted && c.Has("restrack")
	e := kit.Open(c)
	mem := e.Buffer(c, size, kit.AllAccess)
	var before, after map[string]int
	count := func(into *map[string]int) {
		if counted {
			var err error
			*into, err = counter.ResourceCounts(c.T, kit.RemoteHost(c))
			kit.Must(c, "count the resources", err)
		}
	}
	opt := options()
	opt.Timeout, opt.RetryCnt = 10, 3
	opt.SendCQ, opt.RecvCQ = e.CreateCQ(c, opt.CQE), e.CreateCQ(c, opt.CQE) // where there is one device, this side is counted too
	for i := range 6 {
		other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
		a, _ := e.PairWith(c, other, opt)
		far := other.PagedBuffer(c, size, kit.AllAccess)
		a.Post(c, far.ReadFrom(1, 0, mem.All()))
		c.T.Sleep(time.Duration(i) * 60 * time.Microsecond)
		other.Kill(c)
		c.ObservePlatform("status", kit.PollOne(c, a.SendCQ).Status) // whether the data or the end was first
		a.DestroyNow(c)
		if i == 0 {
			count(&before) // with what the kernel keeps from the first time on
		}
	}
	count(&after) // both are empty where nobody counts
	c.True("resources as before when all have ended", maps.Equal(after, before), "%v, before %v", after, before)
	p := e.Pair(c, options())
	c.Status("write by another connection", p.A.PostAndPoll(c, kit.Write(2, e.Paged(c, size, kit.AllAccess), 0, mem.All())), verbs.WCSuccess)
}

// manyPlaces reads memory of many GiB by the key of the whole address space, and gives it back.
func manyPlaces(c *spec.C) {
	user, ok := c.Process().(verbs.MemoryUser)
	if !ok {
		c.Errorf("the target's processes do not tell what memory they use")
	}
	use := func() uint64 {
		u, err := user.MemoryUse(c.T)
		kit.Must(c, "memory of the process", err)
		return u.Resident
	}
	e := kit.Open(c)
	mr := everything(c, e, verbs.AccessLocalWrite)
	p, to := e.Pair(c, options()), e.Buffer(c, size, kit.AllAccess)
	const slack = 64 << 10
	places := c.Scale(8, 64)
	tries := 6
	for left := 2; left > 0; left-- { // the second time in places that have had children
		before := use()
		m, unmap := lazyOnce(c, places*gib)
		for i := range places {
			at, want := i*gib+i*kit.Page, c.Rand().Bytes(8)
			_, err := m.WriteAt(c.T, want, int64(at))
			kit.Must(c, "write memory", err)
			c.Status("write", p.A.PostAndPoll(c, kit.Write(1, to, 0, within(mr, m, at, 8))), verbs.WCSuccess)
			c.Equal("contents", to.Get(c, 0, 8), want)
		}
		during := use()
		if during < before+uint64(places*kit.Page) && tries > 0 { // the process has given other memory back meanwhile: once more
			tries, left = tries-1, left+1
			unmap()
			continue
		}
		c.True("the process has the pages", during >= before+uint64(places*kit.Page), "%d bytes more", int64(during-before))
		unmap()
		now := use()
		c.True("the pages are given back", now+uint64(places*kit.Page) <= during+slack, "%d bytes, with the pages %d", now, during)
	}
}

// lazyOnce maps memory that nobody has touched, until unmap is called.
func lazyOnce(c *spec.C, n int) (m verbs.Buffer, unmap func()) {
	m, err := c.Process().Map(c.T, uint64(n), verbs.MapOptions{Lazy: true})
	kit.Must(c, "mmap", err)
	once := kit.DestroyOnce(c, "munmap", m.Unmap)
	return m, func() { once(c) }
}
