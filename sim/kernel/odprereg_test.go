package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// Registering a region of on-demand paging again (3.2): rights and PD in place, everything else as
// another region.
func TestPagedReregistration(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	pd, other := s.pd(u), s.pd(u)
	va := s.lazy(8)
	s.touch(va)
	const lw, od = verbs.AccessLocalWrite, verbs.AccessOnDemand
	h, key := s.paged(u, pd, va, 4*page, lw)
	again := func(what string, r ReregReq, want syscall.Errno, same bool) {
		t.Helper()
		k, _, err := u.ReregMR(Caller{}, h, r)
		wantErrno(t, what, err, want)
		if err == nil && (k == key) != same {
			t.Errorf("%s: key %#x after %#x", what, k, key)
		}
		if err == nil {
			key = k
		}
	}
	again("rights", ReregReq{Flags: verbs.ReregAccess, Access: lw | od | verbs.AccessRemoteRead}, 0, true)
	again("PD", ReregReq{Flags: verbs.ReregPD, PD: other}, 0, true)
	wantErrno(t, "the first PD is free", u.DeallocPD(Caller{}, pd), 0)
	wantErrno(t, "the second is not", u.DeallocPD(Caller{}, other), syscall.EBUSY)
	again("no paging any more", ReregReq{Flags: verbs.ReregAccess, Access: lw}, syscall.EOPNOTSUPP, true)
	again("other rights", ReregReq{Flags: verbs.ReregAccess, Access: lw | od | verbs.AccessMWBind}, syscall.EOPNOTSUPP, true)
	s.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(key, va+page, 1, 0))
	s.run()
	if s.deviceHas(key) != 2 {
		t.Errorf("device has %v", s.f.keys[key>>8].pages)
	}
	old := key
	again("elsewhere", ReregReq{Flags: verbs.ReregTranslation, Addr: va + 4*page, Length: 4 * page, Iova: va + 4*page}, 0, false)
	if !s.f.free[old>>8] || s.deviceHas(key) != 0 || len(s.d.odp.keys) != 1 {
		t.Errorf("old key free %v, device has %d, %d keys", s.f.free[old>>8], s.deviceHas(key), len(s.d.odp.keys))
	}
	again("pinned", ReregReq{Flags: verbs.ReregTranslation | verbs.ReregAccess, Access: lw, Addr: va, Length: 4 * page, Iova: va}, 0, false)
	if s.proc.Space.Pinned != 4 || len(s.d.odp.keys) != 0 {
		t.Errorf("%d pages pinned, %d keys", s.proc.Space.Pinned, len(s.d.odp.keys))
	}
	again("paged", ReregReq{Flags: verbs.ReregTranslation | verbs.ReregAccess, Access: lw | od, Addr: va, Length: 4 * page, Iova: va}, 0, false)
	if s.proc.Space.Pinned != 0 || s.deviceHas(key) != 4 {
		t.Errorf("%d pages pinned, device has %d", s.proc.Space.Pinned, s.deviceHas(key))
	}
	again("not mapped any more", ReregReq{Flags: verbs.ReregTranslation | verbs.ReregAccess, Access: lw, Addr: 0x5000, Length: page, Iova: 0x5000}, syscall.EFAULT, true)
	if s.deviceHas(key) != 4 {
		t.Error("a registration that failed has changed the region")
	}
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)

	h, key, _, err := u.RegMR(Caller{}, other, va, page, va, od)
	wantErrno(t, "for reading", err, 0)
	again("for writing", ReregReq{Flags: verbs.ReregAccess, Access: lw | od}, syscall.EACCES, true)
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)

	h, key = s.whole(u, other)
	again("everything, other rights", ReregReq{Flags: verbs.ReregAccess, Access: lw | od | verbs.AccessRemoteRead}, 0, false)
	again("everything, pinned", ReregReq{Flags: verbs.ReregAccess, Access: lw}, syscall.EOPNOTSUPP, true)
	if n, _ := s.lead(key, fakeNullKey); n != 0 || len(s.d.odp.keys) != 1 {
		t.Errorf("%d children, %d keys", n, len(s.d.odp.keys))
	}
	u.Close(Caller{})
	if s.d.Resources() != (Resources{}) || len(s.d.odp.keys) != 0 || s.d.Counters().Paging.Regions != 0 || s.d.Counters().Paging.RegionPages != 0 {
		t.Errorf("left: %+v, %+v", s.d.Resources(), s.d.Counters().Paging)
	}
	_ = s.proc.Space.Unmap(mem.VA(va), 8*page) // nobody is told any more
}

// Counters of a region by kernel: none before 5.5, operations beside pages from 6.14 on.
func TestCountersByKernel(t *testing.T) {
	for era, names := range map[PagingEra][]string{
		Paging6_2: {"page_faults", "page_invalidations", "page_prefetch"}, Paging5_5: {"page_faults", "page_invalidations", "page_prefetch"},
		Paging6_14: {"page_faults", "page_faults_handled", "page_invalidations", "page_invalidations_handled", "page_prefetch"},
	} {
		p := testParams()
		p.Paging = era
		s := pagingSetup(t, p)
		u := s.open()
		h, _ := s.paged(u, s.pd(u), s.lazy(2), 2*page, 0)
		all, err := u.MRCounters(Caller{}, h)
		if err != nil || len(all) != len(names) {
			t.Fatalf("era %d: %v, %v", era, all, err)
		}
		for i, c := range all {
			if c.Name != names[i] {
				t.Errorf("era %d: counter %q, want %q", era, c.Name, names[i])
			}
		}
	}
	p := testParams()
	p.Paging = Paging5_0
	s := pagingSetup(t, p)
	u := s.open()
	h, _ := s.paged(u, s.pd(u), s.lazy(2), 2*page, 0)
	_, err := u.MRCounters(Caller{}, h)
	wantErrno(t, "5.0", err, syscall.EOPNOTSUPP)
}
