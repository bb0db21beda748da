package kernel

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// adviseWorld is a process with one of each thing that a key may belong to.
type adviseWorld struct {
	*setup
	u       *Ucontext
	pd      Handle
	va      uint64 // 4 pages, of which the second is read-only and the third is not mapped
	region  uint32
	handle  Handle
	reading uint32 // without a right to write
	other   uint32 // of another PD
	pinned  uint32
	window  uint32
}

func newAdviseWorld(t *testing.T, era PagingEra) *adviseWorld {
	p := testParams()
	p.Paging = era
	w := &adviseWorld{setup: pagingSetup(t, p)}
	w.u = w.open()
	w.pd = w.setup.pd(w.u)
	w.va = w.lazy(4)
	space := w.proc.Space
	wantErrno(t, "read-only", space.Protect(mem.VA(w.va+page), page, mem.Read), 0)
	wantErrno(t, "hole", space.Unmap(mem.VA(w.va+2*page), page), 0)
	w.handle, w.region = w.paged(w.u, w.pd, w.va, 4*page, verbs.AccessLocalWrite)
	_, w.reading = w.paged(w.u, w.pd, w.va, 4*page, verbs.AccessRemoteRead)
	_, w.other = w.paged(w.u, w.setup.pd(w.u), w.va, 4*page, verbs.AccessLocalWrite)
	buf := w.buf(page, mem.Read|mem.Write)
	_, key, _, err := w.u.RegMR(Caller{}, w.pd, buf, page, buf, verbs.AccessLocalWrite)
	wantErrno(t, "pinned", err, 0)
	w.pinned = key
	_, w.window, err = w.u.AllocMW(Caller{}, w.pd, verbs.MWType1)
	wantErrno(t, "window", err, 0)
	return w
}

// What a prefetch is refused with, by span of kernels, with and without a flush (notes on facts of
// on-demand paging, 3.3).
func TestAdviseErrnos(t *testing.T) {
	type pair struct{ flush, later syscall.Errno }
	const no = syscall.Errno(0)
	both := func(e syscall.Errno) pair { return pair{e, e} }
	eras := []PagingEra{Paging5_0, Paging5_5, Paging6_2}
	mid := pair{syscall.ENOENT, syscall.EINVAL}
	range_ := pair{syscall.EFAULT, no}
	for _, c := range []struct {
		name   string
		advice verbs.AdviseMRAdvice
		sge    func(w *adviseWorld) verbs.SGE
		want   [3]pair
	}{
		{"fine", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 2 * page, LKey: w.region} }, [3]pair{}},
		{"unknown", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: 0xabc00} }, [3]pair{{syscall.EFAULT, syscall.EINVAL}, mid, both(syscall.ENOENT)}},
		{"low byte", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.region ^ 1} }, [3]pair{{syscall.EFAULT, syscall.EINVAL}, mid, both(syscall.ENOENT)}},
		{"pinned", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.pinned} }, [3]pair{{syscall.EINVAL, no}, mid, both(syscall.ENOENT)}},
		{"window", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.window} }, [3]pair{both(syscall.EINVAL), mid, both(syscall.EINVAL)}},
		{"PD", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.other} }, [3]pair{both(syscall.EINVAL), mid, both(syscall.EPERM)}},
		{"no right", verbs.AdvisePrefetchWrite, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.reading} }, [3]pair{{syscall.EINVAL, no}, mid, both(syscall.EPERM)}},
		{"beyond", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE {
			return verbs.SGE{Addr: w.va + 3*page, Length: page + 1, LKey: w.region}
		}, [3]pair{range_, range_, range_}},
		{"before", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va - 1, Length: 2, LKey: w.region} }, [3]pair{range_, range_, range_}},
		{"hole", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va + 2*page, Length: 1, LKey: w.region} }, [3]pair{range_, range_, range_}},
		{"hole, no fault", verbs.AdvisePrefetchNoFault, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 4 * page, LKey: w.region} }, [3]pair{both(syscall.EOPNOTSUPP), {}, {}}},
		{"read-only", verbs.AdvisePrefetchWrite, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 2 * page, LKey: w.region} }, [3]pair{{syscall.EPERM, no}, {syscall.EPERM, no}, {syscall.EPERM, no}}},
		{"read-only, for reading", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va + page, Length: 1, LKey: w.region} }, [3]pair{}},
		{"0 bytes, aligned", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, LKey: w.region} }, [3]pair{{syscall.EINVAL, no}, {syscall.EINVAL, no}, {syscall.EINVAL, no}}},
		{"0 bytes", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va + 1, LKey: w.region} }, [3]pair{}},
		{"0 bytes at the end", verbs.AdvisePrefetch, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va + 4*page, LKey: w.region} }, [3]pair{range_, range_, range_}},
		{"advice", 3, func(w *adviseWorld) verbs.SGE { return verbs.SGE{Addr: w.va, Length: 1, LKey: w.region} }, [3]pair{both(syscall.EOPNOTSUPP), both(syscall.EOPNOTSUPP), both(syscall.EOPNOTSUPP)}},
	} {
		for i, era := range eras {
			w := newAdviseWorld(t, era)
			name := fmt.Sprintf("%s, era %d", c.name, era)
			list := []verbs.SGE{c.sge(w)}
			wantErrno(t, name+", flush", w.u.AdviseMR(Caller{}, w.pd, c.advice, verbs.AdviseFlush, list), c.want[i].flush)
			wantErrno(t, name, w.u.AdviseMR(Caller{}, w.pd, c.advice, 0, list), c.want[i].later)
			w.run()
		}
	}
	w := newAdviseWorld(t, Paging5_16)
	one := []verbs.SGE{{Addr: w.va, Length: 1, LKey: w.region}}
	wantErrno(t, "flags", w.u.AdviseMR(Caller{}, w.pd, 0, 2, one), syscall.EINVAL)
	wantErrno(t, "flags and advice", w.u.AdviseMR(Caller{}, w.pd, 9, 2, one), syscall.EINVAL)
	wantErrno(t, "no ranges", w.u.AdviseMR(Caller{}, w.pd, 0, 0, nil), syscall.EINVAL)
	s := newSetup(t, testParams())
	u := s.open()
	wantErrno(t, "no paging", u.AdviseMR(Caller{}, s.pd(u), 0, 0, one), syscall.EOPNOTSUPP)
}

// A flush does one range after the other until one fails; without, nothing is done when a key is
// refused, and else a thread of the kernel does it.
func TestAdvisePrefetches(t *testing.T) {
	w := newAdviseWorld(t, Paging6_2)
	bad := []verbs.SGE{{Addr: w.va, Length: 1, LKey: w.region}, {Addr: w.va, Length: 1, LKey: w.other}}
	wantErrno(t, "later", w.u.AdviseMR(Caller{}, w.pd, verbs.AdvisePrefetch, 0, bad), syscall.EPERM)
	w.run()
	if w.deviceHas(w.region) != 0 {
		t.Error("a prefetch that was refused has done something")
	}
	wantErrno(t, "flush", w.u.AdviseMR(Caller{}, w.pd, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, bad), syscall.EPERM)
	if w.deviceHas(w.region) != 1 || w.f.keys[w.region>>8].pages[0]&prm.MTTWrite == 0 {
		t.Errorf("device has %v", w.f.keys[w.region>>8].pages)
	}
	w.e.Go("program", func(p *sim.Proc) {
		start := p.Now()
		wantErrno(t, "later", w.u.AdviseMR(Caller{P: p}, w.pd, verbs.AdvisePrefetch, 0, []verbs.SGE{{Addr: w.va + 3*page, Length: 10, LKey: w.region}}), 0)
		if p.Now()-start != testParams().Syscall {
			t.Errorf("the call took %v", p.Now()-start)
		}
		if w.deviceHas(w.region) != 1 {
			t.Error("the page is there at once")
		}
		start = p.Now()
		wantErrno(t, "flush", w.u.AdviseMR(Caller{P: p}, w.pd, verbs.AdvisePrefetch, verbs.AdviseFlush, []verbs.SGE{{Addr: w.va, Length: 2 * page, LKey: w.region}}), 0)
		if took := p.Now() - start; took < 10*sim.Microsecond || w.deviceHas(w.region) != 3 {
			t.Errorf("took %v, device has %d pages", took, w.deviceHas(w.region))
		}
		if w.f.keys[w.region>>8].pages[0]&prm.MTTWrite != 0 {
			t.Error("a prefetch for reading keeps the right to write")
		}
	})
	w.run()
	if c := w.counters(w.u, w.handle); c["page_prefetch"] != 4 || c["page_faults"] != 0 {
		t.Errorf("counters %v", c)
	}
}

// Errnos of registration (3.2).
func TestPagedRegistrationErrnos(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	small := s.lazy(1024)
	s.touch((small + 1<<21) &^ (1<<21 - 1))
	const lw = verbs.AccessLocalWrite
	for _, c := range []struct {
		name         string
		addr, n, iov uint64
		access       verbs.AccessFlags
		want         syscall.Errno
	}{
		{"unmapped", 0x5000, page, 0x5000, lw, 0},
		{"write without local write", 0x5000, page, 0x5000, verbs.AccessRemoteWrite, syscall.EINVAL},
		{"everything", 0, wholeSpace, 0, lw, 0},
		{"everything elsewhere", 0, wholeSpace, page, lw, syscall.EINVAL},
		{"everything in huge pages", 0, wholeSpace, 0, lw | verbs.AccessHugetlb, syscall.EINVAL},
		{"everything but a page", page, wholeSpace, page, lw, syscall.EOVERFLOW},
		{"to the end of addresses", ^uint64(0) - page + 1, page, 0, lw, syscall.EOVERFLOW},
		{"0 bytes, aligned", 0x5000, 0, 0x5000, lw, syscall.EINVAL},
		{"0 bytes", 0x5001, 0, 0x5001, lw, 0},
		{"1 TiB", 0x5000, 1 << 40, 0x5000, lw, syscall.ENOMEM},
		{"1 TiB less a page", 0, 1<<40 - page, 0, lw, 0},
		{"small pages", small, 1023 * page, small, lw | verbs.AccessHugetlb, syscall.EINVAL},
		{"huge pages of nothing", 1 << 30, 1 << 21, 1 << 30, lw | verbs.AccessHugetlb, 0},
	} {
		h, _, _, err := u.RegMR(Caller{}, pd, c.addr, c.n, c.iov, c.access|verbs.AccessOnDemand)
		wantErrno(t, c.name, err, c.want)
		if err == nil {
			wantErrno(t, c.name+": deregister", u.DeregMR(Caller{}, h), 0)
		}
	}
	u.Close(Caller{})
	if s.d.Resources() != (Resources{}) || len(s.d.odp.keys) != 0 {
		t.Errorf("left: %+v, %d keys", s.d.Resources(), len(s.d.odp.keys))
	}
	for era, want := range map[PagingEra]syscall.Errno{Paging6_2: syscall.EOPNOTSUPP, Paging6_14: syscall.EOPNOTSUPP, Paging5_16: syscall.EINVAL, Paging5_0: syscall.EINVAL} {
		p := testParams()
		p.Paging = era
		s := newSetup(t, p)
		u := s.open()
		_, _, _, err := u.RegMR(Caller{}, s.pd(u), 0x5000, page, 0x5000, lw|verbs.AccessOnDemand)
		wantErrno(t, fmt.Sprintf("no paging, era %d", era), err, want)
	}
	s = pagingSetup(t, testParams(), func(f *fakeFunction) { prm.HCACap(f.caps[prm.CapGeneral]).SetUMRExtendedTranslationOffset(false) })
	u = s.open()
	pd = s.pd(u)
	for n, want := range map[uint64]syscall.Errno{1<<28 - 1: 0, 1 << 28: syscall.EINVAL, wholeSpace: syscall.EINVAL} {
		_, _, _, err := u.RegMR(Caller{}, pd, 0, n, 0, lw|verbs.AccessOnDemand)
		wantErrno(t, fmt.Sprintf("%d bytes of a device that loads 256 MiB", n), err, want)
	}
}
