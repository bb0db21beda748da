package kernel

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// A region has at once what is in memory, and nothing is pinned for it; a fault brings the rest.
func TestPagedRegion(t *testing.T) {
	s := pagingSetup(t, testParams())
	s.proc.IPCLock, s.proc.MemlockLimit = false, 0
	u := s.open()
	pd := s.pd(u)
	va := s.lazy(8)
	s.touch(va + 2*page)
	h, key := s.paged(u, pd, va, 8*page, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if s.deviceHas(key) != 1 || s.f.keys[key>>8].pages[2] == 0 || s.proc.Space.Pinned != 0 {
		t.Fatalf("device has %v, %d pinned", s.f.keys[key>>8].pages, s.proc.Space.Pinned)
	}
	start := s.e.Now()
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va+4*page+5, 2*page, 0x77))
	s.run()
	if s.deviceHas(key) != 4 || len(s.f.resumed) != 1 {
		t.Fatalf("device has %d pages, %d resumed", s.deviceHas(key), len(s.f.resumed))
	}
	r := prm.PageFaultResumeIn(s.f.resumed[0])
	if r.Error() || r.Token() != 0x77 || r.WQNumber() != 0x77 || r.FaultType() != prm.FaultRDMA|prm.FaultWrite {
		t.Errorf("resumed %x", s.f.resumed[0])
	}
	p := testParams()
	want := p.Interrupt + p.PageFault + 3*p.PageFaultPage + 2*p.MinorFault + p.PageUpdate + 3*p.PageUpdatePage
	if got := s.e.Now() - start; got < want || got > want+sim.Microsecond {
		t.Errorf("took %v, want %v", got, want)
	}
	if c := s.counters(u, h); c["page_faults"] != 3 || c["page_invalidations"] != 0 || len(c) != 3 {
		t.Errorf("counters %v", c)
	}
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	if !s.f.free[key>>8] || len(s.d.odp.keys) != 0 {
		t.Errorf("key free: %v, %d keys in the table", s.f.free[key>>8], len(s.d.odp.keys))
	}
	u.Close(Caller{})
	if s.d.Resources() != (Resources{}) {
		t.Errorf("left: %+v", s.d.Resources())
	}
}

// What the counter says follows from blocks that end where an absent page begins a piece of 64
// bytes.
func TestInvalidationsAreCounted(t *testing.T) {
	for _, c := range []struct {
		present      []uint64
		first, n     uint64
		want, first1 uint64
	}{
		{[]uint64{3}, 3, 1, 1, 1},
		{[]uint64{0, 1, 2, 3}, 0, 4, 4, 10},
		{[]uint64{0, 1}, 0, 32, 9, 3},          // to the absent page 8, and one
		{[]uint64{0, 1}, 0, 8, 8, 3},           // the range ends before
		{[]uint64{0, 10}, 0, 32, 9 + 7, 1 + 1}, // two blocks: 0..7 and 10..15
		{[]uint64{0, 3, 8}, 0, 16, 16, 1 + 4 + 9},
		{nil, 0, 32, 0, 0},
	} {
		for era, want := range map[PagingEra]uint64{Paging6_2: c.want, Paging5_5: c.first1} {
			p := testParams()
			p.Paging = era
			s := pagingSetup(t, p)
			u := s.open()
			va := s.lazy(64)
			for _, i := range c.present {
				s.touch(va + i*page)
			}
			s.touch(va + 63*page)
			h, key := s.paged(u, s.pd(u), va, 64*page, verbs.AccessLocalWrite)
			if err := s.proc.Space.Unmap(mem.VA(va+c.first*page), c.n*page); err != nil {
				t.Fatal(err)
			}
			if got := s.counters(u, h)["page_invalidations"]; got != want {
				t.Errorf("era %d, %v of [%d, +%d): counted %d, want %d", era, c.present, c.first, c.n, got, want)
			}
			if s.deviceHas(key) != 1 {
				t.Errorf("device has %v", s.f.keys[key>>8].pages)
			}
		}
	}
}

// Pages that an invalidation overtakes between the look and the commit are looked up again.
func TestFaultAndInvalidationRace(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	va := s.lazy(4)
	s.touch(va)
	h, key := s.paged(u, s.pd(u), va, 4*page, verbs.AccessLocalWrite)
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va, 2*page, 1))
	s.e.Go("program", func(p *sim.Proc) {
		p.Sleep(3 * sim.Microsecond) // the handler sleeps over what it has found
		if err := s.proc.Space.Discard(mem.VA(va), 4*page); err != nil {
			t.Error(err)
		}
		if s.deviceHas(key) != 0 {
			t.Errorf("device has %v", s.f.keys[key>>8].pages)
		}
		start := p.Now()
		s.proc.AwaitInvalidations(Caller{P: p})
		if took := p.Now() - start; took < testParams().Invalidate {
			t.Errorf("the invalidation took %v", took)
		}
	})
	s.run()
	if n := s.d.Counters().Paging.Contentions; n != 1 || s.counters(u, h)["page_faults"] != 2 || s.deviceHas(key) != 2 {
		t.Errorf("%d contentions, %v, device has %d pages", n, s.counters(u, h), s.deviceHas(key))
	}
	s.agree(key, va)
}

// agree checks that each page of the device is that of the process.
func (s *setup) agree(key uint32, start uint64) {
	s.t.Helper()
	for i, e := range s.f.keys[key>>8].pages {
		var f [1]mem.Frame
		at := start&^pageMask + i*page
		if err := s.proc.Space.Range(mem.VA(at), page, mem.RangeSnapshot, f[:]); err != nil || !f[0].Present || uint64(f[0].PA) != e&^(prm.MTTRead|prm.MTTWrite) ||
			e&prm.MTTWrite != 0 && !f[0].Writable {
			s.t.Fatalf("%v: page %d at %#x: device has %#x, process %+v (%v)", s.e.Now(), i, at, e, f[0], err)
		}
	}
}

// A fault that cannot be served is answered with an error: outside the region, not mapped,
// read-only, a key that has changed.
func TestFaultsThatFail(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	va := s.lazy(8)
	_, key := s.paged(u, pd, va, 4*page, verbs.AccessLocalWrite)
	if err := s.proc.Space.Unmap(mem.VA(va+3*page), page); err != nil {
		t.Fatal(err)
	}
	if err := s.proc.Space.Protect(mem.VA(va+2*page), page, mem.Read); err != nil {
		t.Fatal(err)
	}
	pinned := s.buf(page, mem.Read|mem.Write)
	_, other, _, err := u.RegMR(Caller{}, pd, pinned, page, pinned, 0)
	wantErrno(t, "register", err, 0)
	for i, c := range []struct {
		key  uint32
		va   uint64
		n    uint32
		fail bool
	}{
		{key, va, 2 * page, false},
		{key, va - 1, 1, true},
		{key, va + 4*page - 1, 2, true},
		{key, va + 3*page, 1, true},
		{key, va + 2*page, 1, true},
		{key + 1, va, 1, true},
		{other, pinned, 1, false}, // a key that knows no faults counts as present
		{0xabcdef00, va, 1, false},
	} {
		s.raiseFault(uint32(i), prm.PageFaultSubRDMA, rdmaFault(c.key, c.va, c.n, uint32(i)))
		s.run()
		if r := prm.PageFaultResumeIn(s.f.resumed[len(s.f.resumed)-1]); len(s.f.resumed) != i+1 || r.Token() != uint32(i) || r.Error() != c.fail {
			t.Errorf("fault %d: %d answers, the last %x", i, len(s.f.resumed), []byte(r))
		}
	}
	if c := s.d.Counters().Paging; c.FailedResolutions != 5 || c.UnknownKeys != 2 || c.Faults != 8 {
		t.Errorf("counters %+v", c)
	}
}

// More faults than there are contexts are all answered, in time.
func TestManyFaultsAtOnce(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	const n = 300
	va := s.lazy(n)
	_, key := s.paged(u, s.pd(u), va, n*page, verbs.AccessLocalWrite)
	for i := range uint32(n) {
		s.raiseFault(i, prm.PageFaultSubRDMA, rdmaFault(key, va+uint64(i)*page, 1, i))
	}
	s.run()
	if len(s.f.resumed) != n || s.deviceHas(key) != n || s.d.odp.busy != 0 || s.d.odp.work.running != faultHandlers {
		t.Errorf("%d answers, %d pages, %d busy, %d handlers", len(s.f.resumed), s.deviceHas(key), s.d.odp.busy, s.d.odp.work.running)
	}
	s.agree(key, va)
}

// Who deregisters a region waits for the handler of a fault in it, which changes nothing any more.
func TestDeregistrationWaitsForFaults(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	va := s.lazy(4)
	h, key := s.paged(u, s.pd(u), va, 4*page, verbs.AccessLocalWrite)
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va, page, 1))
	s.e.Go("program", func(p *sim.Proc) {
		p.Sleep(2 * sim.Microsecond)
		wantErrno(t, "deregister", u.DeregMR(Caller{P: p}, h), 0)
		if s.d.odp.busy != 0 && len(s.f.resumed) == 0 {
			t.Error("a handler still holds the region")
		}
	})
	s.run()
	if s.deviceHas(key) != 0 || len(s.f.resumed) != 1 || prm.PageFaultResumeIn(s.f.resumed[0]).Error() {
		t.Errorf("device has %d pages, resumed %x", s.deviceHas(key), s.f.resumed)
	}
}
