package verbs

import "time"

// DeliveryMeter is a testbed that can see how much of a message has arrived, packet by packet. A program learns only of whole
// messages, by their completions, which come later; simulated testbeds implement it.
type DeliveryMeter interface {
	// DeliveriesAt has read called at a time, by the clock of threads, which is not before now. of is what has arrived by then at
	// the QP with that number of a host's first device; ok is false if there is none.
	DeliveriesAt(at time.Duration, read func(of func(host int, qpn uint32) (d Delivered, ok bool)))
}

// Delivered are bytes of payload that a QP has taken, each once however often it was sent, and those that it has sent.
type Delivered struct {
	Received uint64 // of SENDs and WRITEs of its peer
	Read     uint64 // of responses to its READs
	Sent     uint64 // of SENDs and WRITEs, lost or not; those that are sent again count again
	// FailedSent is how often the request was sent that has ended the QP with an error; 0: none has.
	FailedSent int
}
