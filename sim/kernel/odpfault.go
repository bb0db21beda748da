package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// fault handles a page fault (mlx5_ib_pfault).
func (k *call) fault(f fault) {
	k.d.count.Paging.Faults++
	k.base, k.handles = k.d.p.PageFault, true
	switch f.sub {
	case prm.PageFaultSubWQE:
		k.queueFault(&f)
	case prm.PageFaultSubRDMA:
		k.rdmaFault(&f)
	case prm.PageFaultSubMemory:
		k.memoryFault(&f)
	default:
		k.resume(&f, true)
	}
}

// maxFaultPrefetch is how much of an operation of unknown length is made present beyond the packet.
const maxFaultPrefetch = 4 << 20

// rdmaFault handles a fault of a remote operation (mlx5_ib_mr_rdma_pfault_handler): first what is
// needed to go on, and after the queue has been resumed what probably comes next.
func (k *call) rdmaFault(f *fault) {
	va := f.va + uint64(f.committed)
	n := uint64(f.length - min(f.committed, f.length))
	ahead := n == 0
	if ahead {
		n = uint64(f.packet)
	}
	switch _, err := k.faultSegment(f.key, va, n); {
	case err == errAgain:
		ahead = false
	case err != nil:
		k.resume(f, true)
		return
	}
	k.resume(f, false)
	if ahead {
		_, _ = k.faultSegment(f.key, va, uint64(min(maxFaultPrefetch, f.committed))) // a failure shows when the peer gets there
	}
}

// memoryFault handles a fault in a device's memory scheme (mlx5_ib_mr_memory_pfault_handler).
func (k *call) memoryFault(f *fault) {
	x := k.d.odp.keys[f.key>>8]
	if x == nil || !x.named(f.key) || x.mr == nil {
		k.d.count.Paging.UnknownKeys++
		k.resume(f, true)
		return
	}
	m := x.mr
	if x.kind == keyOfChild {
		m = m.paging.parent
	}
	defer m.paging.holds.take(k.d)()
	n, err := k.faultRegion(m, f.va-f.before, f.before+f.demanded+f.after, 0, true)
	if err != nil {
		n, err = k.faultRegion(m, f.va, f.demanded, 0, true)
	}
	if err != nil {
		k.resume(f, true)
		return
	}
	k.countFault(m, n)
	if f.last {
		k.resume(f, false)
	}
}

// countFault counts n pages for a region.
func (k *call) countFault(m *mr, n uint64) {
	if k.d.breaks(rule.FaultsCountTheirPages) {
		n--
	}
	m.paging.stats.Faults += n
	m.paging.stats.FaultsHandled++
	k.d.count.Paging.FaultPages += n
}

// named says whether a key of a fault is this one. Programs change the low byte of windows.
func (x *odpKey) named(key uint32) bool { return x.kind == keyOfWindow || x.key == key }

// piece is a range under a key, at a depth of windows.
type piece struct {
	key   uint32
	va, n uint64
	depth int
}

// faultSegment makes [va, va+n) under a key present (pagefault_single_data_segment), and returns
// how much of it is. Under a key that is none of on-demand paging everything is.
func (k *call) faultSegment(key uint32, va, n uint64) (mapped uint32, err error) {
	todo := []piece{{key, va, n, 0}}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x := k.d.odp.keys[p.key>>8]
		switch {
		case x == nil:
			k.d.count.Paging.UnknownKeys++
			if !k.d.breaks(rule.PinnedSegmentsArePresent) {
				mapped += uint32(p.n)
			}
			// The driver ends here, whatever else a window leads to.
			return mapped, nil
		case !x.named(p.key):
			return mapped, fmt.Errorf("key %#x is %#x by now: %w", p.key, x.key, syscall.EFAULT)
		case x.kind == keyOfRegion:
			n, err := k.faultPiece(x.mr, p)
			mapped += n
			if err != nil {
				return mapped, err
			}
		case x.kind == keyOfWindow:
			if todo, err = k.openWindow(x, p, todo); err != nil {
				return mapped, err
			}
		default:
			return mapped, fmt.Errorf("key %#x is the driver's own: %w", p.key, syscall.EFAULT)
		}
	}
	return mapped, nil
}

// faultPiece makes a range of a region present, all of it.
func (k *call) faultPiece(m *mr, p piece) (mapped uint32, err error) {
	defer m.paging.holds.take(k.d)()
	want := ((p.va+p.n+mem.PageSize-1)&^pageMask - p.va&^pageMask) / mem.PageSize
	got, err := k.faultRegion(m, p.va, p.n, 0, false)
	if err != nil {
		return 0, err
	}
	k.countFault(m, got)
	if got < want {
		return 0, fmt.Errorf("%d of %d pages: %w", got, want, syscall.EFAULT)
	}
	return uint32(p.n), nil
}

// openWindow puts what a window leads to before the rest.
func (k *call) openWindow(x *odpKey, p piece, todo []piece) ([]piece, error) {
	if p.depth >= k.d.caps.odp.indirect {
		return todo, fmt.Errorf("windows %d deep: %w", p.depth, syscall.EFAULT)
	}
	in, out := prm.NewIn(prm.OpQueryMKey, 0), prm.NewOut(prm.OpQueryMKey, (x.entries-2)*prm.KLMSize)
	prm.QueryMKeyIn(in).SetMKeyIndex(x.key >> 8)
	k.awaitCommands()
	if err := k.exec(in, out); err != nil {
		return todo, err
	}
	k.leave()
	k.dev = 0
	answer := prm.QueryMKeyOut(out)
	off, n := p.va-answer.MKC().StartAddr(), p.n
	for i := 0; i < x.entries && n > 0; i++ {
		e := answer.KLM(i)
		size := uint64(e.ByteCount())
		if off >= size {
			off -= size
			continue
		}
		l := min(n, size-off)
		todo = append(todo, piece{e.MKey(), e.VA() + off, l, p.depth + 1})
		n, off = n-l, 0
	}
	return todo, nil
}

// faultRegion makes a range of a region's addresses present (pagefault_mr), and returns how many
// pages it has. A permissive one is cut to the region. EFAULT: outside.
func (k *call) faultRegion(m *mr, va, n uint64, how pageFlags, permissive bool) (uint64, error) {
	o := m.odp
	if o.implicit {
		return k.faultImplicit(m, va, n, how)
	}
	outside := fmt.Errorf("[%#x, +%#x) outside [%#x, +%#x): %w", va, n, m.iova, o.length, syscall.EFAULT)
	if va < m.iova && !permissive {
		return 0, outside
	}
	at := o.addr
	if va >= m.iova {
		at += va - m.iova
		if at < o.addr {
			return 0, outside
		}
	}
	if permissive {
		at = max(at, o.start)
		if at+n > o.end {
			n = o.end - at
		}
	} else if at >= o.end || o.end-at < n {
		return 0, outside
	}
	return k.faultPages(m, at, n, how)
}

// errAgain: what the fault was about has gone meanwhile. The device finds that when it goes on
// (EAGAIN).
var errAgain = fmt.Errorf("deregistered meanwhile: %w", syscall.EAGAIN)

// faultPages makes pages of the process present for the device (pagefault_real_mr): looked up at
// one instant, and committed at a later one if no invalidation has touched the region between, else
// again.
func (k *call) faultPages(m *mr, va, n uint64, how pageFlags) (uint64, error) {
	o, d := m.odp, k.d
	if o.buf != nil { // of a DMA-BUF the whole region becomes present
		va, n = o.start, o.end-o.start
	}
	if !o.holds(va, n) {
		return 0, fmt.Errorf("[%#x, +%#x) outside [%#x, %#x): %w", va, n, o.start, o.end, syscall.EFAULT)
	}
	var found []foundPage
	start, times := k.clock(), &d.count.PagingTimes
	for {
		if o.proc.Gone && o.buf == nil {
			return 0, fmt.Errorf("the process that registered the memory has ended: %w", syscall.EINVAL)
		}
		seq, before := o.seq, o.proc.Space.Faults()
		var err error
		found, err = o.find(va, n, how)
		k.pause(k.base + sim.Time(o.systemPages(uint64(len(found))))*d.p.PageFaultPage + d.touchTime(o.proc.Space, before))
		k.base = 0
		if err != nil {
			return 0, err
		}
		if d.removed || o.mr == nil {
			return 0, errAgain
		}
		if o.seq == seq || d.breaks(rule.RacedPagesAreLookedUpAgain) {
			break
		}
		d.count.Paging.Contentions++
	}
	k.lap(&times.Find, &start)
	if err := o.proc.RAM.roomForRegions(0); err != nil {
		return 0, err
	}
	for _, f := range found {
		o.pages.set(f.index, f.entry)
	}
	o.note(o.keeps())
	size := uint64(1) << o.shift
	first, end := (va-o.start)>>o.shift, (va+n-o.start+size-1)>>o.shift
	if err := k.writePages(m, first, end-first); err != nil {
		return 0, err
	}
	k.settle(d.updateTime(o.systemPages(end - first)))
	k.lap(&times.Update, &start)
	return o.systemPages(end - first), nil
}

// touchTime is what it takes to bring the pages into memory that a process has got since it had so
// many page faults.
func (d *Device) touchTime(s *mem.Space, before mem.Faults) sim.Time {
	now := s.Faults()
	return sim.Time(now.Minor-before.Minor)*d.p.MinorFault + sim.Time(now.Major-before.Major)*d.p.MajorFault
}
