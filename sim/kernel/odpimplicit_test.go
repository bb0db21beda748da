package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// whole registers the whole address space.
func (s *setup) whole(u *Ucontext, pd Handle) (Handle, uint32) {
	s.t.Helper()
	h, key, _, err := u.RegMR(Caller{}, pd, 0, wholeSpace, 0, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	if err != nil {
		s.t.Fatal(err)
	}
	return h, key
}

// lead is how many places of an implicit region lead to a child, and the number of the first.
func (s *setup) lead(key, null uint32) (n int, first uint64) {
	first = implicitSlots
	for i, x := range s.f.keys[key>>8].slots {
		if x.length != slotSize {
			s.t.Errorf("place %d has %d bytes", i, x.length)
		}
		if x.key != null {
			n, first = n+1, min(first, i)
		}
	}
	return n, first
}

// A fault in a region of everything makes the child around it, which goes when its last page does:
// then the place leads to the null key again, and the key is used for the next child.
func TestImplicitRegion(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	h, key := s.whole(u, s.pd(u))
	k := s.f.keys[key>>8]
	if n, _ := s.lead(key, fakeNullKey); n != 0 || len(k.slots) != implicitSlots || !k.whole {
		t.Fatalf("%d of %d places lead somewhere, whole %v", n, len(k.slots), k.whole)
	}
	va := s.lazy(8)
	at := va >> slotShift
	for round := range uint32(3) {
		s.raiseFault(round, prm.PageFaultSubRDMA, rdmaFault(key, va+page, 2*page, round))
		s.run()
		n, first := s.lead(key, fakeNullKey)
		if n != 1 || first != at || k.slots[at].va != at<<slotShift {
			t.Fatalf("round %d: %d children, the first at %d: %+v", round, n, first, k.slots[at])
		}
		child := s.f.keys[k.slots[at].key>>8]
		if len(child.pages) != 2 || child.pages[(va+page)&(slotSize-1)/page] == 0 || !child.whole {
			t.Fatalf("round %d: child %+v", round, child)
		}
		if round > 0 && s.f.live[prm.OpCreateMKey] != 3 { // the driver's own, the parent, the child
			t.Errorf("round %d: %d keys", round, s.f.live[prm.OpCreateMKey])
		}
		wantErrno(t, "discard", s.proc.Space.Discard(mem.VA(va), 8*page), 0)
		s.run()
		if n, _ := s.lead(key, fakeNullKey); n != 0 {
			t.Errorf("round %d: %d children are left", round, n)
		}
	}
	if c := s.counters(u, h); c["page_faults"] != 6 || c["page_invalidations"] != 0 { // those of children are nobody's
		t.Errorf("counters %v", c)
	}
	s.raiseFault(3, prm.PageFaultSubRDMA, rdmaFault(key, implicitSize-1, 2, 9))
	s.run()
	if !prm.PageFaultResumeIn(s.f.resumed[3]).Error() {
		t.Error("a fault above a user's addresses was served")
	}
	s.raiseFault(4, prm.PageFaultSubRDMA, rdmaFault(key, va, page, 9))
	s.run()
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	if !s.f.free[key>>8] || !s.f.free[k.slots[at].key>>8] || len(s.d.odp.keys) != 0 {
		t.Errorf("free: parent %v, child %v; %d keys", s.f.free[key>>8], s.f.free[k.slots[at].key>>8], len(s.d.odp.keys))
	}
	_, again := s.whole(u, s.pd(u))
	if again != key {
		t.Errorf("the key %#x is not used again, but %#x", key, again)
	}
}

// A fault while the work that destroys a child is queued makes another child, and the place keeps
// leading to that.
func TestFaultBesideAReapedChild(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	_, key := s.whole(u, s.pd(u))
	va := s.lazy(8)
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va, page, 0))
	s.run()
	old := s.f.keys[key>>8].slots[va>>slotShift].key
	s.e.Go("program", func(*sim.Proc) {
		wantErrno(t, "discard", s.proc.Space.Discard(mem.VA(va), page), 0)
		wantErrno(t, "prefetch", u.AdviseMR(Caller{}, Handle(1), verbs.AdvisePrefetchWrite, verbs.AdviseFlush, []verbs.SGE{{Addr: va, Length: 1, LKey: key}}), 0)
	})
	s.run()
	n, _ := s.lead(key, fakeNullKey)
	now := s.f.keys[key>>8].slots[va>>slotShift].key
	if n != 1 || now == old || s.deviceHas(now) != 1 || !s.f.free[old>>8] {
		t.Errorf("%d children, key %#x after %#x with %d pages, the old one free: %v", n, now, old, s.deviceHas(now), s.f.free[old>>8])
	}
}

// A range over two places makes a child for each; one that fails in the second keeps the first, and
// its place leads there.
func TestImplicitRegionOverPlaces(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	_, key := s.whole(u, s.pd(u))
	edge := uint64(0x3000_0000_0000)
	if _, err := s.proc.Space.MapWith(2*page, mem.MapOptions{Prot: mem.Read | mem.Write, Lazy: true, At: mem.VA(edge - page)}); err != nil {
		t.Fatal(err)
	}
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, edge-page, 2*page, 0))
	s.raiseFault(1, prm.PageFaultSubRDMA, rdmaFault(key, edge, 3*page, 1)) // its end is not mapped
	s.run()
	for _, b := range s.f.resumed {
		if r := prm.PageFaultResumeIn(b); r.Error() != (r.Token() == 1) {
			t.Errorf("answer %x", b)
		}
	}
	if n, first := s.lead(key, fakeNullKey); n != 2 || first != edge>>slotShift-1 || len(s.f.resumed) != 2 {
		t.Errorf("%d children from %d, resumed %x", n, first, s.f.resumed)
	}
}

// In the memory scheme empty places lead to a null key of the region's own, each at an address of
// its own; faults name it, the child or the region, and only the last of an event is answered.
func TestImplicitRegionByMemory(t *testing.T) {
	s := pagingSetup(t, testParams(), func(f *fakeFunction) { prm.ODPCap(f.caps[prm.CapODP]).SetMemPageFault(true) })
	u := s.open()
	h, key := s.whole(u, s.pd(u))
	null := s.f.keys[key>>8].slots[0].key
	if null == fakeNullKey || s.f.keys[key>>8].slots[5].va != 5<<slotShift || s.f.keys[null>>8].mode != prm.MKeyModeMTT {
		t.Fatalf("place 5 leads to %+v", s.f.keys[key>>8].slots[5])
	}
	va := s.lazy(16)
	fault := func(key uint32, va uint64, before, demanded, after uint16, last bool) func([]byte) {
		return func(b []byte) {
			f := prm.PageFaultMemory(b)
			f.SetMKey(key)
			f.SetVA(va)
			f.SetPreDemandPages(before)
			f.SetDemandPages(uint32(demanded))
			f.SetPostDemandPages(after)
			f.PutToken48(0x1234_5678_9abc)
			if last {
				f.SetFlags(prm.PageFaultMemoryLast)
			}
		}
	}
	s.raiseFault(0, prm.PageFaultSubMemory, fault(null, va+4*page, 2, 1, 3, false))
	s.run()
	child := s.f.keys[key>>8].slots[va>>slotShift].key
	if child == null || s.deviceHas(child) != 6 || len(s.f.resumed) != 0 {
		t.Fatalf("child %#x has %d pages, %d answers", child, s.deviceHas(child), len(s.f.resumed))
	}
	// The pages around it are not mapped: what was demanded is served alone.
	s.raiseFault(1, prm.PageFaultSubMemory, fault(child, va, 5, 1, 0, true))
	s.raiseFault(2, prm.PageFaultSubMemory, fault(0xabc00, va, 0, 1, 0, false))
	s.run()
	if len(s.f.resumed) != 2 || s.deviceHas(child) != 7 {
		t.Fatalf("%d answers, %d pages", len(s.f.resumed), s.deviceHas(child))
	}
	for i, want := range []bool{false, true} {
		if r := prm.PageFaultResumeMemoryIn(s.f.resumed[i]); r.Error() == want == (r.Token48() == 0x1234_5678_9abc) && r.Error() != want {
			t.Errorf("answer %d: %x", i, []byte(r))
		}
	}
	if c := s.counters(u, h); c["page_faults"] != 7 {
		t.Errorf("counters %v", c)
	}
	wantErrno(t, "discard", s.proc.Space.Discard(mem.VA(va), 16*page), 0)
	s.run()
	if got := s.f.keys[key>>8].slots[va>>slotShift]; got.key != null || got.va != va&^(slotSize-1) || s.d.odp.keys[child>>8] != nil {
		t.Errorf("after the last page: %+v", got)
	}
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	if len(s.d.odp.keys) != 0 {
		t.Errorf("%d keys are left", len(s.d.odp.keys))
	}
}

// When the process that registered memory has ended, its faults fail (a child of it may still have
// the device open).
func TestOwnerGone(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	va := s.lazy(2)
	_, key := s.paged(u, pd, va, 2*page, verbs.AccessLocalWrite)
	s.proc.Gone = true
	s.proc.Space.Release()
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va, 1, 0))
	s.run()
	if !prm.PageFaultResumeIn(s.f.resumed[0]).Error() {
		t.Error("the fault was served")
	}
	sge := []verbs.SGE{{Addr: va, Length: 1, LKey: key}}
	wantErrno(t, "flush", u.AdviseMR(Caller{}, pd, 0, verbs.AdviseFlush, sge), syscall.EINVAL)
	wantErrno(t, "later", u.AdviseMR(Caller{}, pd, 0, 0, sge), 0)
	s.run()
	u.Close(Caller{})
}
