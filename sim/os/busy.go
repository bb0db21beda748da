package os

import "github.com/rdmasim/rdmasim/sim"

// BusyNow is the time that the CPU has been busy until now, by all levels. Busy has a run of
// instructions when it ends, or, where nothing can come between, when it begins; of a run in
// progress this has the part that is over.
func (c *CPU) BusyNow() sim.Time {
	now := c.m.eng.Now()
	all := c.Busy[LevelThread] + c.Busy[LevelSoftirq] + c.Busy[LevelIRQ]
	if c.ahead > now {
		return all - (c.ahead - now)
	}
	if x := c.top(); x != nil && (x.state == runs || x.state == spins) {
		all += now - c.started
	}
	return all
}
