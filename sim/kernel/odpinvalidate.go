package kernel

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// invalidate takes pages away from the device before they change in the process
// (mlx5_ib_invalidate_range). It takes effect at this instant, and what it costs is the process's
// to wait for (Process.AwaitInvalidations).
func (m *mr) invalidate(va mem.VA, n uint64) {
	o := m.odp
	o.seq++
	if o.pages.present == 0 || o.mr == nil {
		return
	}
	d := m.u.dev
	k := &call{d: d}
	size := uint64(1) << o.shift
	first, end := (uint64(va)-o.start)>>o.shift, (uint64(va)+n-o.start+size-1)>>o.shift
	if d.breaks(rule.InvalidationReachesTheLastPage) {
		end--
	}
	counted, zapped := m.zapRange(k, first, end)
	waits := !d.breaks(rule.InvalidationAwaitsAccesses)
	if zapped > 0 && waits {
		d.link.Drain() // what the device has under way there reaches the pages as they are
	}
	if d.breaks(rule.InvalidationsCountTheirPages) {
		counted++
	}
	m.paging.stats.Invalidations += counted
	m.paging.stats.InvalidationsHandled++
	d.count.Paging.Invalidations++
	d.count.Paging.InvalidationPages += zapped
	for i, ok := o.pages.next(first, end); ok; i, ok = o.pages.next(i+1, end) {
		o.pages.clear(i)
	}
	o.note(o.keeps())
	if waits {
		o.proc.owe(k, d.p.Invalidate+sim.Time(zapped)*d.p.InvalidatePage)
	}
	if o.pages.present == 0 && m.paging.parent != nil {
		m.reap(k)
	}
}

// zapRange has the device forget the pages of [first, end), in blocks: each begins at a page that
// the device has, and ends where one that it lacks begins a piece of the list. counted is what the
// kernel's counter says of it: of a block that ends before the range does, one place more than it
// has; in the first form of the counter, for each page its place in the block, from 1 on. zapped is
// how many pages the device had.
func (m *mr) zapRange(k *call, first, end uint64) (counted, zapped uint64) {
	o := m.odp
	i, ok := o.pages.next(first, end)
	for ok {
		start, last := i, i
		stop := end // where the block ends
		places := uint64(0)
		for {
			zapped++
			places += last - start + 1
			j, more := o.pages.next(last+1, end)
			limit := end
			if more {
				limit = j
			}
			// The first place that is absent and begins a piece ends the block.
			if a := (last + mttAlign) &^ (mttAlign - 1); a < limit {
				stop, i, ok = a, j, more
				break
			}
			if !more {
				ok = false
				break
			}
			last = j
		}
		if !k.d.breaks(rule.InvalidationReachesTheDevice) {
			_ = k.zapPages(m, start, stop-start) // what the driver does not look at either
		}
		switch e := k.d.p.Paging; {
		case e == Paging5_5 || e == Paging5_0:
			counted += places
		case stop == end:
			counted += stop - start
		default:
			counted += stop - start + 1
		}
	}
	return counted, zapped
}

// owed is what a process has to wait for at a device.
type owed struct {
	d    *Device
	umr  uint64 // the last change that was posted
	n    int    // changes
	time sim.Time
}

// owe notes what an invalidation costs.
func (p *Process) owe(k *call, t sim.Time) {
	for i := range p.owed {
		if x := &p.owed[i]; x.d == k.d {
			x.umr, x.n, x.time = max(x.umr, k.umr), x.n+k.numUMRs, x.time+t
			return
		}
	}
	p.owed = append(p.owed, owed{k.d, k.umr, k.numUMRs, t})
}

// AwaitInvalidations waits for the time that the changes of the process's memory since the last
// call cost its devices. The thread that changed the memory calls it; a caller without a thread
// does not wait.
func (p *Process) AwaitInvalidations(c Caller) {
	if len(p.owed) == 0 {
		return
	}
	all := p.owed
	p.owed = nil
	for _, x := range all {
		if c.P != nil && !x.d.removed {
			k := call{d: x.d, c: c, umr: x.umr, numUMRs: x.n, lists: true}
			start := k.clock()
			k.settle(x.time)
			x.d.count.PagingTimes.Invalidate += k.clock() - start
		}
	}
}
