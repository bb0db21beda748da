// Package peer is a simulated host as the peer of real ones: its programs are the simulator's own, and in place of a cable its adapter has
// a UDP socket or an Ethernet (package wire). Time is the wall's: what the host does takes as long as the simulator computes, and timers go by real time.
package peer

import (
	"io"
	"net/netip"

	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Config says what the host is.
type Config struct {
	Place   wire.Place // where the adapter's cable leads, and the adapter's address
	MTU     int        // of an Ethernet; 0: that of the interface, or 1500
	Allow   []netip.Prefix
	Profile *profile.Profile
	Seed    uint64
	// Faults are of the ports mlx5_0, by which frames leave, and wire/mlx5_0, by which they come; nil: none.
	Faults *fault.Plan
	// Pcap gets the frames of both ports, up to PcapLimit bytes of them (0: all); nil: nobody does.
	Pcap      io.Writer
	PcapLimit uint64
	// Say gets a sentence for the user.
	Say func(format string, a ...any)
}
