package kernel

import "github.com/rdmasim/rdmasim/sim"

// Signal is how one thread is interrupted by another.
type Signal struct {
	sleeper *sim.Proc // the thread, while it sleeps in a call that a signal ends
	wakeup  sim.Time
	raised  bool
}

// Raise ends the call that the thread sleeps in. A thread that does not sleep runs its
// handler and goes on.
func (s *Signal) Raise() {
	if s.sleeper != nil {
		s.raised = true
		s.sleeper.Wake(s.sleeper.Engine().Now() + s.wakeup)
	}
}

// Sleep parks the thread that makes a call until somebody wakes it, until deadline, or until a signal, which it hears
// after wakeup. It reports whether there was a signal.
func (c Caller) Sleep(why string, deadline, wakeup sim.Time) (interrupted bool) {
	if s := c.Signal; s != nil {
		*s = Signal{sleeper: c.P, wakeup: wakeup}
		defer func() { interrupted, *s = s.raised, Signal{} }()
	}
	c.P.ParkUntil(why, deadline)
	return false
}
