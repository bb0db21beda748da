package kernel

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// pagedWorld is a process with regions of on-demand paging, and a device that raises faults in them
// at random.
type pagedWorld struct {
	*setup
	u      *Ucontext
	pd     Handle
	va     uint64
	pages  uint64
	keys   map[Handle]uint32
	order  []Handle
	whole  Handle // the implicit region, or 0
	raised uint32
	forks  []*mem.Space
	err    error // the first
}

// pagedStep is one thing that happens; numbers choose what exists by then.
type pagedStep struct {
	op                      string
	page, pages, offset, us int
	which, advice, rights   int
	flush                   bool
}

var pagedSteps = rapid.Custom(func(t *rapid.T) pagedStep {
	return pagedStep{
		op: rapid.SampledFrom([]string{"fault", "fault", "fault", "fault", "write", "read", "unmap", "map", "protect", "discard", "pageout", "fork",
			"advise", "register", "deregister", "whole", "wait"}).Draw(t, "op"),
		page: rapid.IntRange(0, 39).Draw(t, "page"), pages: rapid.IntRange(1, 12).Draw(t, "pages"), offset: rapid.IntRange(0, page-1).Draw(t, "offset"),
		us: rapid.IntRange(0, 15).Draw(t, "us"), which: rapid.IntRange(0, 5).Draw(t, "which"), advice: rapid.IntRange(0, 2).Draw(t, "advice"),
		rights: rapid.IntRange(0, 2).Draw(t, "rights"), flush: rapid.Bool().Draw(t, "flush"),
	}
})

// fail notes an error and ends the run. The test fails where rapid can see it.
func (w *pagedWorld) fail(format string, a ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%v: "+format, append([]any{w.e.Now()}, a...)...)
		w.e.Stop()
	}
}

// check: a page that the device has is the one that the process has there, with no more rights, in
// every region that is registered; and what the kernel takes the device to have, it has or has lost
// together with a neighbour.
func (w *pagedWorld) check() {
	for _, x := range w.d.odp.keys {
		if x.mr == nil || x.mr.odp == nil || x.mr.odp.mr == nil {
			continue
		}
		w.checkRegion(x.mr)
		for _, child := range x.mr.paging.children {
			w.checkRegion(child)
		}
	}
}

func (w *pagedWorld) checkRegion(m *mr) {
	for i, e := range w.f.keys[m.mkey>>8].pages {
		at := m.odp.start + i*page
		if at >= m.odp.end { // left behind by a longer region of the same key: the key's length is the limit
			continue
		}
		var f [1]mem.Frame
		err := w.proc.Space.Range(mem.VA(at), page, mem.RangeSnapshot, f[:])
		switch {
		case err != nil || !f[0].Present || uint64(f[0].PA) != e&^(prm.MTTRead|prm.MTTWrite):
			w.fail("%#x: device has %#x, process %+v (%v)", at, e, f[0], err)
		case e&prm.MTTWrite != 0 && !f[0].Writable:
			w.fail("%#x: the device may write what the process may not", at)
		case m.odp.pages.at(i) != e:
			w.fail("%#x: device has %#x, the kernel takes it for %#x", at, e, m.odp.pages.at(i))
		}
	}
}

func (w *pagedWorld) step(x pagedStep, p *sim.Proc) {
	space := w.proc.Space
	va, n := mem.VA(w.va+uint64(x.page)*page), min(uint64(x.pages), w.pages-uint64(x.page))*page
	var region uint32
	if len(w.order) > 0 {
		region = w.keys[w.order[x.which%len(w.order)]]
	}
	allowed := func(what string, err error, of ...syscall.Errno) {
		for _, e := range of {
			if errors.Is(err, e) {
				return
			}
		}
		if err != nil {
			w.fail("%s: %v", what, err)
		}
	}
	c := Caller{P: p}
	switch op := x.op; op {
	case "fault":
		if region != 0 && w.raised-uint32(len(w.f.resumed)) < faultContexts/2 {
			w.raiseFault(w.raised, prm.PageFaultSubRDMA, rdmaFault(region, uint64(va)+uint64(x.offset), uint32(n), w.raised))
			w.raised++
		}
	case "write":
		allowed(op, space.WriteAt([]byte{1}, va), syscall.EFAULT)
	case "read":
		allowed(op, space.ReadAt(make([]byte, 1), va), syscall.EFAULT)
	case "unmap":
		allowed(op, space.Unmap(va, n), syscall.EINVAL)
	case "map":
		_, err := space.MapWith(n, mem.MapOptions{Prot: mem.Read | mem.Write, Lazy: true, At: va})
		allowed(op, err, syscall.EEXIST)
	case "protect":
		allowed(op, space.Protect(va, n, []mem.Prot{0, mem.Read, mem.Read | mem.Write}[x.rights]), syscall.ENOMEM, syscall.EINVAL)
	case "discard":
		allowed(op, space.Discard(va, n), syscall.ENOMEM, syscall.EINVAL)
	case "pageout":
		allowed(op, space.PageOut(va, n), syscall.ENOMEM, syscall.EINVAL)
	case "fork":
		if len(w.forks) < 3 {
			child, err := space.Fork()
			allowed(op, err)
			w.forks = append(w.forks, child)
		}
	case "advise":
		if region != 0 {
			flags := verbs.AdviseMRFlags(0)
			if x.flush {
				flags = verbs.AdviseFlush
			}
			err := w.u.AdviseMR(c, w.pd, verbs.AdviseMRAdvice(x.advice), flags, []verbs.SGE{{Addr: uint64(va), Length: uint32(n), LKey: region}})
			allowed(op, err, syscall.EFAULT, syscall.EPERM)
		}
	case "register":
		if len(w.order) < 3 {
			h, key, _, err := w.u.RegMR(c, w.pd, uint64(va), n, uint64(va), verbs.AccessLocalWrite|verbs.AccessOnDemand)
			allowed(op, err)
			w.keys[h], w.order = key, append(w.order, h)
		}
	case "whole":
		if w.whole == 0 {
			h, key, _, err := w.u.RegMR(c, w.pd, 0, wholeSpace, 0, verbs.AccessLocalWrite|verbs.AccessOnDemand)
			allowed(op, err)
			w.whole, w.keys[h], w.order = h, key, append(w.order, h)
		}
	case "deregister":
		if len(w.order) > 0 {
			i := x.which % len(w.order)
			h := w.order[i]
			w.order = append(w.order[:i], w.order[i+1:]...)
			allowed(op, w.u.DeregMR(c, h))
			if h == w.whole {
				w.whole = 0
			}
		}
	case "wait":
		w.proc.AwaitInvalidations(c)
	}
	p.Sleep(sim.Time(x.us) * sim.Microsecond)
}

// Random programs of faults, prefetches, registrations and changes of memory: at every instant what
// the device has is what the process has.
func TestPagedMemoryAgainstModel(t *testing.T) {
	contentions, reaped := uint64(0), 0
	program := func(rt *rapid.T) {
		s := pagingSetup(t, testParams())
		w := &pagedWorld{setup: s, u: s.open(), pages: 40, keys: map[Handle]uint32{}}
		w.pd = s.pd(w.u)
		w.va = s.lazy(w.pages)
		done := s.f.done
		s.f.done = func() { done(); w.check() }
		steps := rapid.SliceOfN(pagedSteps, 1, 60).Draw(rt, "steps")
		s.e.Go("program", func(p *sim.Proc) {
			for _, x := range steps {
				w.step(x, p)
				w.check()
			}
		})
		if err := s.e.Run(sim.Never); err != nil {
			rt.Fatal(err)
		}
		if w.check(); w.err != nil {
			rt.Fatal(w.err)
		}
		if uint32(len(s.f.resumed)) != w.raised {
			rt.Fatalf("%d of %d faults were answered", len(s.f.resumed), w.raised)
		}
		contentions += s.d.Counters().Paging.Contentions
		if len(s.d.odp.later.idle) > 0 {
			reaped++
		}
		w.u.Close(Caller{})
		if s.d.Resources() != (Resources{}) || len(s.d.odp.keys) != 0 || s.d.odp.busy != 0 || s.d.Counters().Paging.Regions != 0 {
			rt.Fatalf("left: %+v, %d keys, %d busy", s.d.Resources(), len(s.d.odp.keys), s.d.odp.busy)
		}
		for _, x := range append(w.forks, s.proc.Space) {
			x.Release()
		}
	}
	rapid.Check(t, program)
	// Few programs have a fault overtaken, and no hundred of them is sure to.
	for range 9 {
		if !testing.Short() && !t.Failed() && (contentions == 0 || reaped == 0) {
			rapid.Check(t, program)
		}
	}
	if !testing.Short() && (contentions == 0 || reaped == 0) {
		t.Errorf("%d faults were overtaken, %d runs with work of the kernel's own", contentions, reaped)
	}
}
