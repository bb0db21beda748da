// Package uar is a UAR page as the device sees it: it turns the TLPs that arrive
// at a page into doorbells, BlueFlame pushes, CQ arms and EQ updates, notices torn
// pushes, and models what concurrent pushes on one page cost.
package uar

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Conflict is the hypothesis on what concurrent BlueFlame pushes to different
// registers of one page do to each other. Published measurements show a loss;
// its mechanism is not public.
type Conflict uint8

// Hypotheses.
const (
	// ConflictNone: registers of a page do not disturb each other.
	ConflictNone Conflict = iota
	// ConflictSerialize: a push that finds the page busy with another register's waits
	// until the page is free and pays Cost.
	ConflictSerialize
	// ConflictRefetch: such a push is dropped as if torn, and the WQE is fetched from
	// the ring.
	ConflictRefetch
)

// Params of the UAR pages of a device.
type Params struct {
	BFConflict     Conflict `words:"none serialize refetch"`
	BFBusy         sim.Time // a push keeps its page busy this long
	BFConflictCost sim.Time // what a conflicting push pays under ConflictSerialize
	BFTimeout      sim.Time // a push whose later lines have not come by then counts as torn
	// BFLines is how many 64-byte lines of a push the device takes: a longer WQE is
	// fetched once they are there, its header and its inline data apart. 4 takes all.
	// Fewer is a hypothesis, the byte account of Husky (NSDI 2023, appendix A).
	BFLines int
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	switch {
	case p.BFConflict > ConflictRefetch:
		return fmt.Errorf("uar: BFConflict is %d", p.BFConflict)
	case p.BFBusy <= 0:
		return fmt.Errorf("uar: BFBusy is %v: want a time above 0", p.BFBusy)
	case p.BFTimeout <= 0:
		return fmt.Errorf("uar: BFTimeout is %v: want a time above 0", p.BFTimeout)
	case p.BFLines < 1 || p.BFLines > maxHalf/block:
		return fmt.Errorf("uar: BFLines is %d, not 1 to %d", p.BFLines, maxHalf/block)
	case p.BFConflictCost < 0 || p.BFConflict == ConflictSerialize && p.BFConflictCost == 0:
		return fmt.Errorf("uar: BFConflictCost is %v: want a time above 0 for serialize", p.BFConflictCost)
	case sim.TooLong(p, nil) != "":
		return fmt.Errorf("uar: %s", sim.TooLong(p, nil))
	}
	return nil
}
