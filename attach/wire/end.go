//go:build linux

package wire

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
)

// End is what a device's cable leads to in place of another device: a UDP socket (Port) or an
// Ethernet (LAN). It is the Receiver at the far end of the cable. Only one goroutine uses it, the
// one that runs the simulation.
type End interface {
	link.Receiver
	// Attach puts it at the far end of a device's cable: Deliver sends frames of the pool there.
	// Whoever is attached to that end hands it what the device sends (Receive).
	Attach(end *link.Port, pool *roce.Pool)
	// Name is its place as a flag says it, such as udp:192.0.2.1.
	Name() string
	// Address is the device's.
	Address() netip.Addr
	// MTU is that of the way out, in bytes.
	MTU() int
	// Allows says whether packets go to an address, and are taken from there.
	Allows(netip.Addr) bool
	// Neighbour is the Ethernet address of frames to an IP address; false: nobody there answers. It
	// may wait for an answer.
	Neighbour(netip.Addr) (roce.MAC, bool)
	// Identity is that of device k, of at most so many, which has the address.
	Identity(k, most int) hca.Identity
	// Alone has frames sent one by one, as a capture has them.
	Alone()
	// FD is the descriptor that is readable when something has come.
	FD() int
	// Fetch takes what has come, without waiting, and reports whether there was any. Deliver gives
	// it to the device, and reports whether a peer asks for memory that programs may have written
	// since the device last looked: by a READ or an atomic.
	Fetch() bool
	Deliver() (reads bool)
	// Queued is how many frames wait for Flush, which sends them.
	Queued() int
	Flush()
	// Counts are the end's counters, and Unit the word for what they count.
	Counts() *Counters
	Unit() string
	// Close gives the way out back. What is queued is not sent.
	Close() error
}

// Open opens an end at the place that cfg names. Its errors say what to do.
func Open(cfg Config) (End, error) {
	if cfg.Kind != KindUDP {
		return OpenLAN(cfg)
	}
	return OpenPort(cfg)
}
