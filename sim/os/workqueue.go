package os

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim/rule"
)

// Work is a work item: a function that a worker thread runs. It does not run twice at once.
type Work struct {
	Run     func(t *Thread)
	pending bool
	on      *Worker // that runs it
}

// Pool is a pool of worker threads: of a CPU, or unbound on a set of CPUs. That of a CPU wakes
// another worker only when none of its workers runs; an unbound one with every item
// (kernel/workqueue.c).
type Pool struct {
	m       *Machine
	cpu     int // -1: unbound
	allowed Set
	nice    int
	lock    *SpinLock
	list    []*Work
	idle    []*Worker // the one that became idle last is woken first
	running int
	workers int
	most    int
}

// Worker is a thread of a pool.
type Worker struct {
	pool    *Pool
	t       *Thread
	item    *Work
	again   []*Work // items that were queued elsewhere while this worker ran them
	counted bool    // in running
}

// highpri is the nice value of the workers of WQ_HIGHPRI.
const highpri = -20

// mostWorkers bounds a pool: max_active of a workqueue by default is 256, and each item has one
// worker at most.
const mostWorkers = 256

// BoundPool is the pool of WQ_HIGHPRI of a CPU. All workqueues share it. It starts with two
// workers, as many as an idle pool keeps.
func (m *Machine) BoundPool(cpu int) *Pool {
	if m.bound[cpu] == nil {
		only := make(Set, len(m.cpus))
		only[cpu] = true
		m.bound[cpu] = m.newPool(cpu, only, highpri, 2)
	}
	return m.bound[cpu]
}

// UnboundPool makes an unbound pool on a set of CPUs (nil: all), with a worker for each CPU, and
// two at least.
func (m *Machine) UnboundPool(allowed Set) *Pool {
	n := 0
	for i := range m.cpus {
		if allowed.has(i) {
			n++
		}
	}
	return m.newPool(-1, allowed, highpri, max(n, 2))
}

func (m *Machine) newPool(cpu int, allowed Set, nice, workers int) *Pool {
	p := &Pool{m: m, cpu: cpu, allowed: allowed, nice: nice, lock: m.NewSpinLock(), most: mostWorkers}
	p.lock.pool = true
	for range workers {
		w := p.newWorker()
		p.idle = append(p.idle, w)
	}
	return p
}

func (p *Pool) newWorker() *Worker {
	name, last := fmt.Sprintf("kworker/u:%d", p.workers), p.cpu
	if p.cpu >= 0 {
		name = fmt.Sprintf("kworker/%d:%dH", p.cpu, p.workers)
	}
	for i := range p.m.cpus { // an unbound worker ran anywhere in the set: they start spread over it
		if c := (i + p.workers) % len(p.m.cpus); last < 0 && p.allowed.has(c) {
			last = c
		}
	}
	w := &Worker{pool: p}
	w.t = p.m.newThread(name, p.allowed, last, w.loop)
	w.t.worker = w
	w.t.SetNice(p.nice)
	w.t.proc.SetDaemon()
	p.workers++
	return w
}

// Queue queues a work item on a pool, unless it waits already.
func (c *Context) Queue(p *Pool, w *Work) bool {
	c.Sync()
	if w.pending {
		return false
	}
	w.pending = true
	if w.on != nil { // it runs: its pool keeps it from running twice
		p = w.on.pool
	}
	p.lock.Lock(c)
	p.list = append(p.list, w)
	p.kick(c)
	p.lock.Unlock(c)
	return true
}

// kick wakes a worker if one is needed.
func (p *Pool) kick(c *Context) {
	if len(p.list) > 0 && (p.running == 0 || p.cpu < 0) {
		p.wakeIdle(c)
	}
}

func (p *Pool) wakeIdle(c *Context) {
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		if p.m.broken.Has(rule.WorkersAreLIFO) {
			w = p.idle[0]
		}
		p.m.WorkerWakes++
		c.Wake(w.t)
	}
}

// loop is a worker's life, from its first wake-up on.
func (w *Worker) loop(t *Thread) {
	p := w.pool
	for {
		p.lock.Lock(&t.Context)
		w.leaveIdle()
		for {
			if len(p.list) == 0 || p.cpu >= 0 && p.running > 1 {
				break
			}
			w.grow(t)
			if len(p.list) == 0 {
				break
			}
			w.process(t)
			for len(w.again) > 0 {
				item := w.again[0]
				w.again = w.again[:copy(w.again, w.again[1:])]
				w.run(t, item)
			}
		}
		p.idle = append(p.idle, w)
		w.uncount()
		t.Prepare()
		p.lock.Unlock(&t.Context)
		t.Schedule("work items")
	}
}

func (w *Worker) leaveIdle() {
	p := w.pool
	for i, x := range p.idle {
		if x == w {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			break
		}
	}
	w.counted = true
	p.running++
}

func (w *Worker) uncount() {
	if w.counted {
		w.counted = false
		w.pool.running--
	}
}

// grow makes a worker when none is idle: there is always one that can take over.
func (w *Worker) grow(t *Thread) {
	p := w.pool
	if len(p.idle) > 0 || p.workers >= p.most || p.m.broken.Has(rule.PoolsGrow) {
		return
	}
	p.lock.Unlock(&t.Context)
	t.Run(p.m.par.WorkerCreation)
	p.lock.Lock(&t.Context)
	p.m.WorkersMade++
	p.idle = append(p.idle, p.newWorker())
}

// process takes the first item and runs it.
func (w *Worker) process(t *Thread) {
	p := w.pool
	item := p.list[0]
	p.list = p.list[:copy(p.list, p.list[1:])]
	if item.on != nil && item.on != w && !p.m.broken.Has(rule.WorkIsNotReentrant) {
		item.on.again = append(item.on.again, item)
		return
	}
	t.Spend(p.m.par.WorkItem)
	w.run(t, item)
}

// run runs an item, without the lock of the pool.
func (w *Worker) run(t *Thread, item *Work) {
	p := w.pool
	item.on, w.item = w, item
	if !p.m.broken.Has(rule.PendingIsClearedFirst) {
		item.pending = false
	}
	if p.cpu < 0 {
		p.kick(&t.Context)
	}
	p.lock.Unlock(&t.Context)
	item.Run(t)
	t.Resched()
	p.lock.Lock(&t.Context)
	item.on, w.item = nil, nil
	if p.m.broken.Has(rule.PendingIsClearedFirst) {
		item.pending = false
	}
}

// blocks is the sleep of a worker inside an item: another one takes the items that wait.
func (w *Worker) blocks() {
	if !w.counted {
		return
	}
	w.uncount()
	if p := w.pool; p.running == 0 && len(p.list) > 0 && len(p.idle) > 0 && !p.m.broken.Has(rule.BlockedWorkersAreReplaced) {
		p.m.WorkerWakes++
		p.m.Wakeups++
		n := p.idle[len(p.idle)-1].t
		if n.asleep && !n.waking {
			n.Wakeups++
			p.m.arrive(n, n.choose(nil))
		}
	}
}

func (w *Worker) unblocks() {
	if w.item != nil {
		w.counted = true
		w.pool.running++
	}
}
