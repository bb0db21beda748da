package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// OnDemand says what regions of on-demand paging a load uses.
type OnDemand string

// Kinds of regions: none, one for each buffer, or one of the whole address space.
const (
	Pinned   OnDemand = ""
	Explicit OnDemand = "explicit"
	Implicit OnDemand = "implicit"
)

// End names one or both of the sides of a load.
type End string

// Ends.
const (
	Both  End = ""
	Local End = "from"
	Peer  End = "to"
)

// pages says whether a side has its regions paged on demand.
func (l *Load) pages(target bool) bool {
	return l.OnDemand != Pinned && l.OnDemandAt != map[bool]End{false: Peer, true: Local}[target]
}

// checkPaging reports what contradicts itself in how the load's memory is paged.
func (l *Load) checkPaging() error {
	switch {
	case l.OnDemand == Pinned && (l.Cold || l.OnDemandAt != Both):
		return fmt.Errorf("cold and on_demand_at say which pages come on demand: give on_demand as well")
	case l.OnDemand != Pinned && l.PageSize > 4096:
		return fmt.Errorf("on_demand is for pages that come and go one by one: leave page_size out")
	case l.Cold && (!l.Latency || l.Threads > 1):
		return fmt.Errorf("cold takes the pages of each message away before it is timed: it needs measure latency, and one thread")
	case l.BothWays && (l.Latency || l.Spread > 0 || l.QPs > 1 || l.SignalEvery > 1 || l.sharesQueues() || types[l.Transport] != verbs.QPTRC || l.needsReceiver()):
		return fmt.Errorf("both_ways is for loads on rc that measure a rate, of verbs that need no receives, with one queue pair and CQ for each thread, every request signalled, and no spread")
	}
	return nil
}

// mapRegion maps and registers a region.
func (l *Load) mapRegion(t verbs.Thread, p verbs.Process, pd verbs.PD, target bool) (region, error) {
	paged := l.pages(target)
	size := l.sizeAt(target)
	access := verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	if k := l.memoryAt(target); k != verbs.MemoryHost {
		return l.ofKind(t, p, pd, k, size, access)
	}
	b, err := p.Map(t, size, verbs.MapOptions{PageSize: l.PageSize, Lazy: paged})
	if err != nil {
		return region{}, fmt.Errorf("map %d bytes: %w", size, err)
	}
	addr, length := b.Addr(), size
	if paged {
		access |= verbs.AccessOnDemand
	}
	if paged && l.OnDemand == Implicit {
		addr, length = 0, math.MaxUint64
	}
	mr, err := pd.RegMR(t, addr, length, access)
	return region{b, mr}, err
}

// cool takes the pages of a message from the sides that page on demand, and touches them again: the
// hosts have them then, and the devices do not.
func (s *Started) cool(t verbs.Thread, w *verbs.SendWR) bool {
	if s.l.pages(false) {
		if err := s.a.cool(t, w.SGEs[0].Addr, uint64(s.l.Payload)); err != nil {
			s.fail(t.Now(), "take pages away: %v", err)
			return false
		}
	}
	if !s.l.pages(true) {
		return true
	}
	err := in(t, s.b.proc, s.l.Name+"-cool", func(t verbs.Thread) error { return s.b.cool(t, w.RemoteAddr, uint64(s.l.Payload)) })
	if err != nil {
		s.fail(t.Now(), "take pages away: %v", err)
	}
	return err == nil
}

func (s *side) cool(t verbs.Thread, addr, n uint64) error {
	for _, c := range s.ctxs {
		for _, r := range c.mrs {
			if addr-r.buf.Addr() < r.buf.Len() {
				return coolPart(t, r.buf, addr-r.buf.Addr(), n)
			}
		}
	}
	return fmt.Errorf("no region has address %#x", addr)
}

func coolPart(t verbs.Thread, b verbs.Buffer, off, n uint64) error {
	p, ok := b.(verbs.PagedBuffer)
	if !ok {
		return fmt.Errorf("the target cannot take pages from a process")
	}
	const page = 4096
	first := off &^ (page - 1)
	n = (off+n+page-1)&^(page-1) - first
	if err := p.Advise(t, first, n, verbs.AdviceDontNeed); err != nil {
		return err
	}
	return p.Advise(t, first, n, verbs.AdvicePopulateWrite)
}

// answer posts as the load's threads do, from the target on the same queue pairs, until the load
// ends.
func (s *Started) answer(t verbs.Thread, g int) {
	l, p := s.l, s.newPoster(g+s.l.Threads)
	wc := make([]verbs.WC, pollBatch)
	k := s.b.qps[g][0]
	for out := 0; s.running(t); {
		for ; out < l.Window; out++ {
			if _, err := k.qp.PostSend(t, p.prepare(k, g, 1, p.sent)); err != nil {
				s.fail(t.Now(), "target, thread %d: post: %v", g, err)
				return
			}
		}
		n, err := k.cq.PollWait(t, wc, 10*time.Microsecond)
		if err != nil {
			s.fail(t.Now(), "target, thread %d: poll: %v", g, err)
			return
		}
		for _, w := range wc[:n] {
			if w.Status != verbs.WCSuccess {
				s.fail(t.Now(), "completion at the target: %v (vendor syndrome %#x)", w.Status, w.VendorErr)
				return
			}
		}
		out -= n
	}
}

// checkPageable reports work of a side that its device cannot do on pages that it does not have: it
// would end in an error of protection, or in silence.
func (l *Load) checkPageable(t verbs.Thread, c verbs.Context, target bool) error {
	if !l.pages(target) || l.Inline && !target {
		return nil
	}
	atomic := func(m Mix) bool { return m.Verb == CmpSwap || m.Verb == FetchAdd }
	if types[l.Transport] == verbs.QPTRC && !slices.ContainsFunc(l.Mix, atomic) { // devices that page have all of that
		return nil
	}
	a, err := c.QueryDeviceEx(t, 0)
	if err != nil {
		return fmt.Errorf("query device: %w", err)
	}
	can := map[verbs.QPType]uint32{verbs.QPTRC: a.ODPRC, verbs.QPTUC: a.ODPUC, verbs.QPTUD: a.ODPUD}[types[l.Transport]]
	for _, m := range l.Mix {
		need := map[Verb]uint32{Send: verbs.ODPSend, Write: verbs.ODPWrite, WriteImm: verbs.ODPWrite, Read: verbs.ODPRead}[m.Verb]
		switch {
		case need == 0:
			need = verbs.ODPAtomic
		case m.Verb == Send && target && l.NoReceive:
			continue
		case m.Verb == Send && target:
			need = verbs.ODPRecv
		}
		if can&need == 0 {
			return fmt.Errorf("the device does not page memory on demand for %s on %s: leave on_demand out, or give it to the other side with on_demand_at: %w",
				m.Verb, cmp.Or(l.Transport, RC), syscall.EOPNOTSUPP)
		}
	}
	return nil
}
