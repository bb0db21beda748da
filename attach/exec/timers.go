//go:build linux && amd64

package exec

import (
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// timers are the connection manager's (cm.Timers). They belong to the host, and go by the time of
// the programs, which is real: a device that has much to do lets virtual time run ahead of it.
type timers struct {
	eng *engine // of the session, before a program runs
}

// picosecondsPerNanosecond converts virtual to real time.
const picosecondsPerNanosecond = 1000

// After implements cm.Timers.
func (t *timers) After(d sim.Time, f func()) (cancel func()) {
	live := true // of the engine's thread
	timer := time.AfterFunc(time.Duration(d/picosecondsPerNanosecond), func() {
		t.eng.do(func() {
			if live && !t.eng.ending {
				live = false
				f()
			}
		})
	})
	return func() {
		live = false
		timer.Stop()
	}
}
