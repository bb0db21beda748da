package odp

import "github.com/rdmasim/rdmasim/prm"

// Side is what a queue was about when it met an absent page. On each side one fault of a queue is
// out at most: four in all (Lesokhin et al., ASPLOS 2017, section 4).
type Side uint8

// Sides.
const (
	GatherSide     Side = iota // the data of a SEND or a WRITE
	LandingSide                // where the response of a READ or an atomic goes
	WriteSide                  // a receive buffer, the target of a WRITE or an atomic
	ReadSide                   // the source of a READ
	Sides          int  = iota
	firstResponder      = WriteSide
)

// Remote says whether the access was asked for by the peer.
func (s Side) Remote() bool { return s >= firstResponder }

// Kind is what an access was for, finer than its side.
type Kind uint8

// Kinds.
const (
	GatherKind        Kind = iota // the data of a SEND or a WRITE
	LandingKind                   // the response of a READ or an atomic
	ReceiveKind                   // a receive buffer of a QP
	SharedReceiveKind             // and of an SRQ
	WriteKind                     // the target of a WRITE
	ReadKind                      // the source of a READ
	AtomicKind                    // the target of an atomic
	Kinds             int  = iota
)

// Fault is an access that has met an absent page.
type Fault struct {
	Queue uint64 // the event word of the queue that waits
	Side  Side

	// Of a work request: the QP, or the SRQ that it was taken from, with its index.
	WQE    bool
	Number uint32
	SRQ    bool
	Index  uint16

	// Of a remote operation: what it names.
	RKey   uint32
	VA     uint64
	Length uint32
	Atomic bool

	Committed uint32 // bytes of the operation that are done with
	Packet    uint16 // bytes of the packet that met the page

	// What is missing, as the key has it in which an entry is absent.
	MKey   uint32
	At     uint64
	Demand uint32 // bytes from At on that the access needs
	Bytes  uint32 // and the rest of the operation, as far as it may go on there
}

// Kind is what the access was for.
func (f *Fault) Kind() Kind {
	switch {
	case f.Side == GatherSide:
		return GatherKind
	case f.Side == LandingSide:
		return LandingKind
	case f.WQE && f.SRQ:
		return SharedReceiveKind
	case f.WQE:
		return ReceiveKind
	case f.Side == ReadSide:
		return ReadKind
	case f.Atomic:
		return AtomicKind
	}
	return WriteKind
}

// lastPage is the number of the page that holds the last of n bytes.
func lastPage(at uint64, n uint32) uint64 { return (at + uint64(max(n, 1)) - 1) / prm.PageSize }

// wqeType is the type of a fault of a work request.
func (f *Fault) wqeType() uint32 {
	switch {
	case f.Side == GatherSide:
		return prm.FaultSendOrWrite
	case f.Side == LandingSide:
		return prm.FaultReadOrAtomic
	case f.SRQ:
		return prm.FaultRMP
	}
	return prm.FaultReceive
}

// rdmaType is that of a remote operation. An atomic's is taken to be a WRITE's.
func (f *Fault) rdmaType() uint32 {
	if f.Side == WriteSide {
		return prm.FaultRDMA | prm.FaultWrite
	}
	return prm.FaultRDMA
}
