// Package hardware is the machine's own RDMA devices, under libibverbs, as a target of the
// conformance suite. It does its work where it is built with the tag hw, which needs cgo
// and the headers of rdma-core; built without, it can be imported and New says what is
// missing.
//
// Cases use other processes: this program started again. So a program that uses this
// target calls Player first of all, in a test from TestMain.
package hardware

import (
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
)

// Config chooses the devices. GIDIndex -1 and the zero values of the others leave the
// choice to the target.
type Config struct {
	// Device as ibv_devices names it, its port and the index of the GID that connections use.
	Device   string
	Port     int
	GIDIndex int
	// Wire names the interfaces behind the two nodes ("w0,w1"), through which frames can be
	// watched and disturbed.
	Wire string
	// Peer is the address of the conform agent whose device is the second node, and
	// PeerKey the file of its key; empty: another device of this machine.
	Peer, PeerKey string
	// Wall is how long a case may take in real time (0: as long as its own deadline): a
	// little before, it is ended with an error that names the call in which it hangs.
	Wall time.Duration
	// Faults is what goes wrong in every case (nil: nothing).
	Faults *fault.Plan
	// Record has the frames on a simulated wire recorded during cases that do not watch it themselves.
	Record bool
}

// PlayerArg is the argument with which this program is started again as another process
// of a case.
const PlayerArg = "player"
