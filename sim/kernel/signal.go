package kernel

import "github.com/rdmasim/rdmasim/sim"

// Signal is how one thread is interrupted by another.
type Signal struct {
	sleeper *sim.Proc // the thread, while it sleeps in a call that a signal ends
	dev     *Device
	raised  bool
}

// Raise ends the call that the thread sleeps in. A thread that does not sleep runs its
// handler and goes on.
func (s *Signal) Raise() {
	if s.sleeper != nil {
		s.raised = true
		s.sleeper.Wake(s.dev.eng.Now() + s.dev.p.Wakeup)
	}
}
