package os

import "github.com/rdmasim/rdmasim/sim"

// SpinLock is a queued spinlock that is taken with interrupts off (spin_lock_irqsave): who waits
// keeps its CPU, first come first served.
type SpinLock struct {
	Acquired, Waited uint64
	Wait             sim.Time // of all that waited
	Lines            uint64   // how often the line came from another CPU

	Guarded int // lines of data that come with it

	m       *Machine
	owner   *Context
	last    int // CPU that has the line
	waiters []waiter
	pool    bool
}

type waiter struct {
	c     *Context
	since sim.Time
}

// NewSpinLock makes a free lock whose line no CPU has yet.
func (m *Machine) NewSpinLock() *SpinLock { return &SpinLock{m: m, last: -1} }

// Lock takes the lock.
func (l *SpinLock) Lock(c *Context) {
	c.disableIRQs()
	c.Sync()
	l.Acquired++
	if l.pool {
		l.m.LocksOfPools++
	}
	if l.owner == nil {
		l.own(c)
		c.stall(l.move(c))
		c.Run(l.m.par.Lock)
		return
	}
	l.Waited++
	l.m.LockWaits++
	l.waiters = append(l.waiters, waiter{c, l.m.eng.Now()})
	c.state = spins
	c.cpu.started = l.m.eng.Now()
	c.proc.Park("a spinlock")
	c.Sync()
}

func (l *SpinLock) own(c *Context) { l.owner = c }

// move is how long the line takes to the CPU of c.
func (l *SpinLock) move(c *Context) sim.Time {
	from := l.last
	l.last = c.cpu.id
	if from < 0 || from == c.cpu.id {
		return 0
	}
	l.Lines++
	l.m.LineMoves++
	return l.m.line(from, c.cpu.id) * sim.Time(1+l.Guarded)
}

// Unlock frees the lock, or hands it to who waits longest.
func (l *SpinLock) Unlock(c *Context) {
	c.Sync()
	l.owner = nil
	if len(l.waiters) > 0 {
		w := l.waiters[0]
		l.waiters = l.waiters[:copy(l.waiters, l.waiters[1:])]
		now := l.m.eng.Now()
		l.own(w.c)
		l.Wait += now - w.since
		l.m.LockWait += now - w.since
		w.c.cpu.span("lock", w.since, now, 0)
		w.c.cpu.account(w.c.level, now-w.since)
		w.c.left = l.move(w.c) + (l.m.par.LockHandover+l.m.par.Lock)*l.m.slower/100
		w.c.state = runs
		w.c.cpu.start()
	}
	c.enableIRQs()
}

// WaitQueue is where threads sleep of which one is woken at a time: the one that has slept longest
// (exclusive waiters).
type WaitQueue struct{ sleepers []*Thread }

// Sleepers says whether anybody sleeps there.
func (q *WaitQueue) Sleepers() bool { return len(q.sleepers) > 0 }

// Add puts a thread that is about to sleep at the tail.
func (q *WaitQueue) Add(t *Thread) {
	q.sleepers = append(q.sleepers, t)
	t.Prepare()
}

// Remove takes it out again.
func (q *WaitQueue) Remove(t *Thread) {
	t.Running()
	for i, s := range q.sleepers {
		if s == t {
			q.sleepers = append(q.sleepers[:i], q.sleepers[i+1:]...)
			return
		}
	}
}

// WakeOne wakes the first that sleeps.
func (q *WaitQueue) WakeOne(c *Context) {
	for i, t := range q.sleepers {
		if t.prepare || t.asleep && !t.waking {
			q.sleepers = append(q.sleepers[:i], q.sleepers[i+1:]...)
			c.Wake(t)
			return
		}
	}
}
