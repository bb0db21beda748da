package verbs

import "time"

// DeliveryMeter is implemented by simulated testbeds, which can see how much of a message has
// arrived, packet by packet. A program learns only of whole messages, by their completions, which
// come later.
type DeliveryMeter interface {
	// DeliveriesAt calls read when the threads' clock reaches at, which must not be past. The
	// function of returns what has arrived by then at QP qpn of the host's first device; ok is
	// false if there is no such QP.
	DeliveriesAt(at time.Duration, read func(of func(host int, qpn uint32) (d Delivered, ok bool)))
}

// Delivered counts the payload bytes that a QP has taken, each once however often it was sent, and
// those that it has sent.
type Delivered struct {
	Received uint64 // of SENDs and WRITEs of its peer
	Read     uint64 // of responses to its READs
	Sent     uint64 // of SENDs and WRITEs, lost or not; retransmissions count again
	// FailedSent is how often the QP sent the request that ended it with an error; 0: no request
	// did.
	FailedSent int
}
