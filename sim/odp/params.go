package odp

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// Params say for which operations a device pages on demand, and what its firmware takes for it. RC
// to DC hold bits prm.ODPSend to prm.ODPSRQReceive; with all of them 0 the device does not page on
// demand.
type Params struct {
	RC, UD, XRC, DC uint32 `unit:"hex"`
	// Implicit: the device can do what a region over a whole address space needs of it.
	Implicit bool
	// MemoryScheme: the device offers page faults of memory keys beside those of queues, and a
	// driver that knows them chooses them.
	MemoryScheme bool
	// SRQFault is what becomes of a receive WQE of an SRQ that meets an absent page.
	SRQFault   SRQFault `words:"event completion"`
	Report     sim.Time `bounds:"0.."` // from an access that finds no page to the event about it
	ReportPage sim.Time `bounds:"0.."` // more, for each further page of 4 KiB that the operation names; may be 0
	Resume     sim.Time `bounds:"0.."` // from the driver's answer until the queue goes on
	// AskAgain: a requester that waits for pages in which a response lands asks for it again each
	// time that so much has gone by, a microsecond or more. 0: it asks once, when they are there.
	AskAgain sim.Time `bounds:"0.."`
	// Learn is how long the firmware needs to tell one such requester that its pages are there, one
	// requester after the other. 0: all learn when the driver has answered.
	Learn sim.Time `bounds:"0.."`
}

// SRQFault is what a device does with a receive WQE of an SRQ of which a page is absent. In both
// forms the driver is told of the fault.
type SRQFault uint8

// Forms of faults of SRQs.
const (
	SRQFaultEvent      SRQFault = iota // the queue pair keeps the WQE
	SRQFaultCompletion                 // the WQE comes back by an error completion (prm.VendorSyndODPFault), for the library to post again
)

// operations are the bits of RC to DC.
const operations = prm.ODPSend | prm.ODPReceive | prm.ODPWrite | prm.ODPRead | prm.ODPAtomic | prm.ODPSRQReceive

// On says whether the device pages on demand.
func (p *Params) On() bool { return p.RC|p.UD|p.XRC|p.DC != 0 }

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	errs := sim.OutOfBounds("odp", p)
	for _, x := range []struct {
		name string
		v    uint32
	}{{"RC", p.RC}, {"UD", p.UD}, {"XRC", p.XRC}, {"DC", p.DC}} {
		if x.v&^operations != 0 {
			errs = append(errs, fmt.Errorf("odp: %s is %#x, and %#x are not operations", x.name, x.v, x.v&^operations))
		}
	}
	if p.AskAgain > 0 && p.AskAgain < sim.Microsecond { // a flood that no run would end
		errs = append(errs, fmt.Errorf("odp: AskAgain is %v: want 0, or at least %v", p.AskAgain, sim.Microsecond))
	}
	return errors.Join(errs...)
}
