package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// lock is mlx5_spinlock: a spinlock, or, where the user has promised one thread, a
// check that the promise is kept.
type lock struct {
	spin   cpu.Spinlock
	single bool
	what   string

	// Of a single-threaded object: the last stay inside, from enter to leave, in the
	// local times of its thread. Two stays of different threads that overlap end the
	// process.
	holder       *Thread
	inside       bool
	enter, leave sim.Time

	taken, waits uint64
	waited       sim.Time
}

// acquire takes a real lock, or notes when t came in. It may yield.
func (l *lock) acquire(t *Thread, p *Params) {
	if l.single {
		t.Core.Run(t.P, p.InUseCheck)
		return
	}
	l.taken++
	if w := l.spin.Lock(t.P, t.Core); w > 0 {
		l.waits++
		l.waited += w
	}
}

// check is called once t has synchronised inside the lock, with the time at which it
// came in.
func (l *lock) check(t *Thread, came sim.Time) {
	if !l.single {
		return
	}
	if l.holder != t && l.holder != nil && (l.inside || came < l.leave) {
		panic(Abort{fmt.Sprintf("*** ERROR: multithreading violation ***\n"+
			"threads %q and %q are inside %s at once, which was promised to be used by one thread at a time",
			l.holder.name, t.name, l.what)})
	}
	l.holder, l.inside, l.enter = t, true, came
}

func (l *lock) release(t *Thread) {
	if l.single {
		l.inside, l.leave = false, t.P.Now()
		return
	}
	l.spin.Unlock(t.P, t.Core)
}
