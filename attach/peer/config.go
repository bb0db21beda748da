// Package peer runs a simulated host as the peer of real ones: its programs are the simulator's
// own, and in place of a cable its adapter has a UDP socket or an Ethernet (package wire). It runs
// in real time: an action takes as long as its simulation, and timers run in real time.
package peer

import (
	"io"
	"net/netip"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Config describes the host.
type Config struct {
	Place   wire.Place // where the adapter's cable leads, and the adapter's address
	MTU     int        // of an Ethernet; 0: that of the interface, or 1500
	Allow   []netip.Prefix
	Profile *profile.Profile
	Seed    uint64
	// Faults acts on the ports mlx5_0, where frames leave, and wire/mlx5_0, where they arrive; nil:
	// no faults.
	Faults *fault.Plan
	// Pcap receives the frames of both ports, up to PcapLimit bytes of them (0: all); nil: no
	// capture.
	Pcap      io.Writer
	PcapLimit uint64
	// Say gets a sentence for the user.
	Say func(format string, a ...any)
}
