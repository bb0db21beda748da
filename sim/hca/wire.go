package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// Wire is where the port's frames go. Send takes over the frame's reference.
type Wire interface {
	Send(f *roce.Frame)
}

// Looper is a Wire that also carries what the device sends to itself, so that whoever
// watches or disturbs the wire does so there too: the frame comes back by Receive
// after the given time.
type Looper interface {
	Loopback(f *roce.Frame, after sim.Time)
}

// Pauser is a Wire with priority flow control: it learns how many bytes of each class
// came by it and wait for the receive engine, and pauses the other end.
type Pauser interface {
	// Lossless are the classes that it loses nothing of, a bit each; 0 without flow control.
	Lossless() uint8
	// Buffered tells that bytes of a class wait for the receive engine, fewer if negative.
	Buffered(class uint8, bytes int)
	// Queued is the bytes that wait for the line; Relieved is called when they get fewer.
	Queued() int
}

// CountingWire is a Wire that counts as PortCounters does.
type CountingWire interface {
	PerformanceCounters() mgmt.Counters
}

// RetrainingWire is a Wire whose link a subnet manager can take down and, with up, up again.
type RetrainingWire interface {
	Retrain(up bool)
}

// LateWire is a Wire that lets frames arrive when the device looks (link.Planner).
type LateWire interface {
	// Arrived is called for each planned frame when it has arrived. It leaves the port's buffer at
	// out.
	Arrived(f *roce.Frame, out sim.Time)
	// Recall has frames that are planned, and have not arrived, come by Receive.
	Recall()
}
