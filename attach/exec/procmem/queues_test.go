//go:build linux && amd64

package procmem

import (
	"math/rand/v2"
	"testing"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// TestQueueRanges compares the ranges with a table of pages, through queues that begin and end at
// random.
func TestQueueRanges(t *testing.T) {
	const pages = 64
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Streams
	p := &Process{}
	table := map[mem.VA]queueKind{}
	type queue struct {
		addr mem.VA
		n    uint64
		work bool
	}
	var all []queue
	set := func(q queue, on bool) {
		k := queueKind{work: delta(on)}
		if q.work {
			s.WorkQueue(p, q.addr, q.n, on)
		} else {
			s.CompletionQueue(p, q.addr, q.n, on)
			k = queueKind{completions: delta(on)}
		}
		for a := q.addr &^ (mem.PageSize - 1); a < q.addr+mem.VA(q.n); a += mem.PageSize {
			table[a] = queueKind{table[a].work + k.work, table[a].completions + k.completions}
		}
	}
	for range 3000 {
		if i := rnd.IntN(40); i < len(all) {
			set(all[i], false)
			all = append(all[:i], all[i+1:]...)
		} else {
			q := queue{mem.VA(rnd.IntN(pages * mem.PageSize)), uint64(rnd.IntN(5 * mem.PageSize)), rnd.IntN(2) == 0}
			all = append(all, q)
			set(q, true)
		}
		used := 0
		for a := mem.VA(0); a < (pages+8)*mem.PageSize; a += mem.PageSize {
			if got := p.queues.kind(a + mem.VA(rnd.IntN(mem.PageSize))); got != table[a] {
				t.Fatalf("page %#x: %+v, want %+v", uint64(a), got, table[a])
			}
			if table[a] != (queueKind{}) {
				used++
			}
		}
		if s.Queues() != used {
			t.Fatalf("%d pages, want %d", s.Queues(), used)
		}
	}
	for _, q := range all {
		set(q, false)
	}
	if s.Queues() != 0 || len(p.queues.marks) != 0 {
		t.Errorf("%d pages and %d marks are left", s.Queues(), len(p.queues.marks))
	}
}

// TestLongQueue: the work for a queue does not depend on its length. In a table of pages these
// would not end.
func TestLongQueue(t *testing.T) {
	var s Streams
	p := &Process{}
	for range 1000 {
		s.WorkQueue(p, 1<<30, 1<<46, true)
	}
	if s.Queues() != 1<<34 || p.queues.kind(1<<40).work != 1000 || p.queues.kind(1<<29).work != 0 {
		t.Errorf("%d pages, %+v", s.Queues(), p.queues.kind(1<<40))
	}
	s.Forget(p)
	if s.Queues() != 0 {
		t.Errorf("%d pages are left", s.Queues())
	}
}
