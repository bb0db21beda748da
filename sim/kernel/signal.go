package kernel

import "github.com/rdmasim/rdmasim/sim"

// Signal lets one thread interrupt another.
type Signal struct {
	sleeper *sim.Proc // the thread, while it sleeps in a call that a signal ends
	wakeup  sim.Time
	raised  bool
}

// Raise ends the call in which the thread sleeps. A thread that does not sleep runs its handler and
// goes on.
func (s *Signal) Raise() {
	if s.sleeper != nil {
		s.raised = true
		s.sleeper.Wake(s.sleeper.Engine().Now() + s.wakeup)
	}
}

// Sleep parks the calling thread until something wakes it, until deadline, or until a signal, which
// takes effect after wakeup. It reports whether there was a signal.
func (c Caller) Sleep(why string, deadline, wakeup sim.Time) (interrupted bool) {
	if s := c.Signal; s != nil {
		*s = Signal{sleeper: c.P, wakeup: wakeup}
		defer func() { interrupted, *s = s.raised, Signal{} }()
	}
	c.P.ParkUntil(why, deadline)
	return false
}
