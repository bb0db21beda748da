package cpu

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Spinlock is a lock on its own line, fair in the order of arrival. The zero
// value is free.
//
// Spinning makes no events. A holder that ran ahead may have released the lock at
// a time that is still to come (freeAt): who arrives before it knows how long to
// spin. When the release is not known yet, the thread parks until it is.
type Spinlock struct {
	line    Line
	holder  *sim.Proc
	last    *sim.Proc // who released it last
	from    int32     // the core where that was
	freeAt  sim.Time
	since   sim.Time // it is held, or was when it was released last
	held    sim.Time // in all, with the time that it takes to pass from one thread to the next that waits
	listed  bool     // in Host.contended
	waiters []waiter
}

type waiter struct {
	p *sim.Proc
	c *Core
}

// SetPrivate promises that only one program takes the lock, so that it needs no
// synchronisation. Share takes the promise back.
func (l *Spinlock) SetPrivate() { l.line.private = true }

// Share says that from now on several programs take the lock. The one that did so far
// has synchronised since it last held it, or will be seen to hold it.
func (l *Spinlock) Share() { l.line.private = false }

// Lock takes the lock for p on core c, spinning while it is held. It reports
// how long p waited for others; the cost of a free lock is not in it.
func (l *Spinlock) Lock(p *sim.Proc, c *Core) sim.Time {
	wait, cost := l.Take(p, c)
	c.Run(p, cost)
	return wait
}

// Take is Lock that leaves the cost of taking the lock for the caller to spend, with
// what it does next: so p is still in order when Take returns, and may look at
// what the lock protects without another synchronisation.
func (l *Spinlock) Take(p *sim.Proc, c *Core) (wait, cost sim.Time) {
	if !l.line.private {
		p.Sync()
	}
	c.c.LockAcquired++
	if !l.HeldAt(p) {
		l.holder, l.since = p, p.Now()
		return 0, c.Claim(p, &l.line) + c.p.LockFree
	}
	return l.spin(p, c), c.p.LockFree
}

// spin waits for a lock that another thread has, and returns how long.
//
//go:noinline
func (l *Spinlock) spin(p *sim.Proc, c *Core) (wait sim.Time) {
	now := p.Now()
	if !l.listed {
		l.list(c.host)
	}
	if l.holder == p {
		panic(fmt.Sprintf("cpu: at %v %s takes a lock that it holds", now, p.Name()))
	}
	if l.holder == nil { // released, but only later than now
		at := l.grant(p, c)
		p.Sleep(at - now)
	} else {
		l.waiters = append(l.waiters, waiter{p, c})
		p.Spin("spinlock held by " + l.holder.Name())
	}
	wait = p.Now() - now
	c.span("lock wait", now, p.Now(), 0)
	c.c.LockWaited++
	c.c.LockWait += wait
	return wait
}

// grant gives the lock to a thread that waited until its release, and returns when
// the thread knows: always later than the release, so that the order of threads at
// that instant does not depend on how far ahead the releasing one ran.
func (l *Spinlock) grant(p *sim.Proc, c *Core) sim.Time {
	at := l.freeAt + max(c.p.LockHandover+l.far(c), sim.Picosecond)
	l.holder, l.since = p, l.freeAt
	if l.line.owner != c.id+1 {
		l.line.owner = c.id + 1
		l.line.free = at
		c.c.LineMisses++
	}
	return at
}

// far is what a second socket adds when the lock passes to core c. Threads that spin there ask for its line across the
// sockets, also when it is written to be released.
func (l *Spinlock) far(c *Core) (d sim.Time) {
	if c.p.SocketCores == 0 {
		return 0
	}
	if c.p.apart(c.id, l.from) {
		d = 2 * c.p.LineFar // its own request, and the line
	}
	for i := range l.waiters {
		if c.p.apart(l.waiters[i].c.id, l.from) {
			d += c.p.LineFar
		}
	}
	return d
}

// apart says whether two cores are of different sockets.
func (p *Params) apart(a, b int32) bool {
	n := int32(p.SocketCores)
	return n > 0 && a/n%2 != b/n%2
}

// Unlock releases it at p's local time, after its cost, and does not yield, unless there are two sockets: what the lock costs
// the next thread depends on who spins then.
func (l *Spinlock) Unlock(p *sim.Proc, c *Core) {
	if l.holder != p {
		panic(fmt.Sprintf("cpu: at %v %s releases a lock that it does not hold", p.Now(), p.Name()))
	}
	c.Run(p, c.p.Unlock)
	if c.p.SocketCores > 0 && !l.line.private {
		p.Sync()
	}
	l.holder, l.last, l.from, l.freeAt = nil, p, c.id, p.Now()
	l.held += l.freeAt - l.since
	if len(l.waiters) > 0 {
		l.handOver()
	}
}

// handOver gives a lock that is released to the thread that waits longest.
//
//go:noinline
func (l *Spinlock) handOver() {
	for len(l.waiters) > 0 {
		w := l.waiters[0]
		l.waiters = l.waiters[:copy(l.waiters, l.waiters[1:])]
		if w.p.Done() { // killed while it spun
			continue
		}
		w.p.Wake(l.grant(w.p, w.c))
		return
	}
}

// Held reports whether a thread holds the lock and has not released it, for the
// in-use check of a single-threaded program.
func (l *Spinlock) Held() bool { return l.holder != nil }

// HeldAt reports whether another thread holds the lock at p's local time. At the
// very instant of a release the order of programs decides, as the engine's does.
func (l *Spinlock) HeldAt(p *sim.Proc) bool {
	if l.holder != nil {
		return true
	}
	if l.last == nil || l.last == p {
		return false
	}
	return l.freeAt > p.Now() || l.freeAt == p.Now() && l.last.ID() > p.ID()
}
