package os

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// queueWork is the kernel's own benchmark of queue_work (lib/test_workqueue.c): a thread on each
// CPU queues an item on the pool of its CPU, and waits until it has run. It gives the items in a
// second, and the median time of the call.
func queueWork(t *testing.T, cpus int, pool func(m *Machine, cpu int) *Pool) (rate float64, median sim.Time) {
	e, m := machine(t, Config{Params: params(), CPUs: cpus})
	const items = 200
	var calls []sim.Time
	last := sim.Time(0)
	for i := range cpus {
		set, err := m.CPUSet(i, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := pool(m, i)
		m.NewThread(fmt.Sprint("bench", i), set, i, func(th *Thread) {
			done := false
			w := &Work{Run: func(k *Thread) { done = true; k.Wake(th) }}
			for range items {
				done = false
				th.Sync()
				began := th.Now()
				th.Queue(p, w)
				th.Sync()
				calls = append(calls, th.Now()-began)
				for th.Prepare(); !done; th.Prepare() {
					th.Schedule("its item")
				}
				th.Running()
			}
			last = max(last, th.Now())
		}).Start()
	}
	run(t, e, sim.Second)
	if len(calls) != cpus*items {
		t.Fatalf("%d of %d items", len(calls), cpus*items)
	}
	slices.Sort(calls)
	return float64(len(calls)) / (float64(last) / float64(sim.Second)), calls[len(calls)/2]
}

// Published for 50 threads (Linux, commit 24b2e73f9700): 6.8 million items/s and 2.6 us with a pool
// for each CPU, and 0.29 million and 72.5 us with one pool for all that share a cache. The model
// misses these sizes (docs/fidelity.md); the shape holds: one lock for all costs most of the rate,
// and its waiters wait for each other in the call.
func TestOnePoolForManyCPUs(t *testing.T) {
	own, ownCall := queueWork(t, 50, func(m *Machine, cpu int) *Pool {
		set, err := m.CPUSet(cpu, 1)
		if err != nil {
			t.Fatal(err)
		}
		return m.UnboundPool(set)
	})
	var all *Pool
	one, oneCall := queueWork(t, 50, func(m *Machine, _ int) *Pool {
		if all == nil {
			all = m.UnboundPool(nil)
		}
		return all
	})
	t.Logf("a pool for each CPU has %.2g times the rate of one for all (published 23.8); the call takes %.2g times as long with one (published 28)", own/one, float64(oneCall)/float64(ownCall))
	if own < 2*one || oneCall < 2*ownCall {
		t.Errorf("a pool for each CPU: %.3g items/s, the call %v; one: %.3g, %v", own, ownCall, one, oneCall)
	}
}
