package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// eq is an event queue in kernel memory.
type eq struct {
	eqn     uint8
	pa      mem.PA
	n       uint32 // entries, a power of two
	ci      uint32 // not reduced
	pending bool   // the handler is on its way
	entry   [prm.EQESize]byte
}
