package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// lock is mlx5_spinlock: a spinlock, or, where the user has promised one thread, a
// check that the promise is kept.
type lock struct {
	single bool
	taken  uint64
	spin   cpu.Spinlock

	// Of a single-threaded object: the last stay inside, until leave, in the
	// local time of its thread. Two stays of different threads that overlap end the
	// process.
	holder *Thread
	inside bool
	leave  sim.Time

	waits  uint64
	waited sim.Time
	what   string
}

// acquire takes the lock, or makes sure that no other thread is inside. t spends work
// before: all of it when there is no lock, so that it synchronises once; what is
// left, with the cost of the lock, is for the caller to spend inside. t is in order
// when acquire returns.
func (l *lock) acquire(t *Thread, p *Params, work sim.Time) (left sim.Time) {
	if l.single {
		l.enter(t, p.InUseCheck+work)
		return 0
	}
	l.taken++
	wait, cost := l.spin.Take(t.P, t.Core)
	if wait > 0 {
		l.waits++
		l.waited += wait
	}
	return cost + work
}

// enter is acquire of a single-threaded object.
//
//go:noinline
func (l *lock) enter(t *Thread, work sim.Time) {
	came := t.P.Now()
	t.Core.Run(t.P, work)
	t.P.Sync()
	l.check(t, came)
}

// check compares the stays of two threads; t came in at the given time.
func (l *lock) check(t *Thread, came sim.Time) {
	if !t.breaks(rule.SingleThreadedIsChecked) && l.holder != t && l.holder != nil && (l.inside || came < l.leave) {
		panic(Abort{fmt.Sprintf("*** ERROR: multithreading violation ***\n"+
			"threads %q and %q are inside %s at once, which was promised to be used by one thread at a time",
			l.holder.name, t.name, l.what)})
	}
	l.holder, l.inside = t, true
}

func (l *lock) release(t *Thread) {
	if l.single {
		l.inside, l.leave = false, t.P.Now()
	} else {
		l.spin.Unlock(t.P, t.Core)
	}
}
