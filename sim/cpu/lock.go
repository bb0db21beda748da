package cpu

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Spinlock is a lock on its own line. Within a socket it is fair in the order of arrival; over two,
// Params.LockNear says how far it favours the socket where it is. The zero value is free.
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
	stays   int      // times in a row that it passed within a socket while a thread of the other waited longer
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

// far is what a second socket adds when the lock passes to core c. Each core on which a thread
// spins there asks for its line across the sockets, that which gets it included. Two threads of one
// core have one cache, and so one request.
func (l *Spinlock) far(c *Core) (d sim.Time) {
	if c.p.SocketCores == 0 {
		return 0
	}
	c.host.handOvers++
	d = l.ask(c)
	for i := range l.waiters {
		d += l.ask(l.waiters[i].c)
	}
	return d
}

// ask is what the request of core c for the line costs in this hand-over: nothing if it is near, or
// has been made.
func (l *Spinlock) ask(c *Core) sim.Time {
	first := &c.host.cores[c.id%int32(2*c.p.SocketCores)]
	if !c.p.apart(c.id, l.from) || first.asked == c.host.handOvers {
		return 0
	}
	first.asked = c.host.handOvers
	return c.p.LineFar
}

// apart says whether two cores are of different sockets.
func (p *Params) apart(a, b int32) bool {
	n := int32(p.SocketCores)
	return n > 0 && a/n%2 != b/n%2
}

// Unlock releases it at p's local time, after its cost, and does not yield, unless there are two
// sockets: what the lock costs the next thread depends on who spins then.
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

// handOver gives a lock that is released to the thread that waits longest, or to a nearer one.
//
//go:noinline
func (l *Spinlock) handOver() {
	for len(l.waiters) > 0 {
		i := l.next()
		w := l.waiters[i]
		l.waiters = append(l.waiters[:i], l.waiters[i+1:]...)
		if w.p.Done() { // killed while it spun
			continue
		}
		w.p.Wake(l.grant(w.p, w.c))
		return
	}
}

// next is the place of the waiter that gets the lock: the first, unless it is of the other socket
// and one of this is allowed to go before it.
func (l *Spinlock) next() int {
	p := l.waiters[0].c.p
	if l.stays < p.LockNear && p.apart(l.waiters[0].c.id, l.from) {
		for i := 1; i < len(l.waiters); i++ {
			if w := &l.waiters[i]; !p.apart(w.c.id, l.from) && !w.p.Done() {
				l.stays++
				return i
			}
		}
	}
	l.stays = 0
	return 0
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
