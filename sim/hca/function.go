package hca

import "github.com/rdmasim/rdmasim/prm"

// Reset is a function-level reset: the device is as after power-on, without a word to its driver.
// What it had under way on the bus still ends there.
func (d *Device) Reset() {
	d.settle()
	d.teardown()
	d.fw.phase = phaseReset
}

// WantsCommandEvents reports whether an EQ asks for the completions of commands. What carries
// commands to the device asks before it has one carried out: the command that makes this EQ is
// itself not reported there.
func (d *Device) WantsCommandEvents() bool { return d.events.wanted(prm.EventCmd) != nil }

// CommandsDone reports to that EQ which entries of the command queue, a bit for each, have been
// carried out.
func (d *Device) CommandsDone(entries uint32) {
	e := d.events.event(prm.EventCmd)
	e.SetCmdVector(entries)
	d.events.report(e)
}
