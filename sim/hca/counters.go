package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// Counters of a device beside its Q counters.
type Counters struct {
	// Register writes.
	MMIODropped      uint64 // to what is not an allocated UAR page
	DoorbellsForeign uint64 // named a queue that is not there, or of another page
	DoorbellsState   uint64 // named a QP that does not send
	DoorbellsOdd     uint64 // named an index that cannot be: the doorbell record was read

	// Send engine.
	WQEs             uint64 // taken
	WQEsPushed       uint64 // whose bytes came by BlueFlame and were used
	WQEFetches       uint64 // DMA reads of WQEs
	WQEBlocksFetched uint64 // 64-byte blocks read
	TxStalls         uint64 // a packet waited for room in preparation
	CreditWaits      uint64 // times that a queue looked at its next message and lacked a credit
	RequestsDammed   uint64 // that counted as sent, and were not put on the wire
	// RequestsAskedAgain counts READs and atomics sent again while the pages in which they land
	// were absent.
	RequestsAskedAgain uint64
	PUBusy             sim.Time

	// Port.
	TxPackets, TxOctets uint64
	TxRequests          uint64
	TxPadBytes          uint64 // by which payloads were padded to words
	TxNoWire            uint64 // dropped: no wire
	Loopback            uint64
	RxPackets, RxOctets uint64
	RxDropped           [roce.DropReasons]uint64
	RxNoQP              uint64 // for no QP that admits it
	RxAddress, RxPKey   uint64 // part of RxNoQP: wrong addresses, wrong partition
	RxQKey              uint64 // part of RxNoQP: datagrams with a wrong Q_Key
	RNRStalls           uint64 // times that the engines stood still
	RxGhosts            uint64 // responses to what is not outstanding

	// Congestion control, by mlx5's names.
	NpECNMarkedRocePackets uint64 // data packets that came marked, with DCQCN on
	NpCNPSent              uint64
	RpCNPHandled           uint64
	RpCNPIgnored           uint64

	// Receive engine.
	AcksSent, NaksSent uint64
	RnrNaksSent        uint64 // of them
	SelectiveNaksSent  uint64 // of them: with the PSN of a packet that came early
	EarlyDiscarded     uint64 // early packets that a device with selective repeat did not keep: beyond its window, or of an operation that goes back
	RepeatTimeouts     uint64 // waits of RepeatTimeout in vain
	RecvRecordReads    uint64
	RecvWQEFetches     uint64
	AtomicWaits        uint64 // atomics that waited for another on the same slot
	AtomicEntryWaits   uint64 // atomics that waited at the entry, for a slot that was full or behind one that did
	ReadsBehindAtomics uint64 // READ requests that waited behind those

	// Caches.
	QPCLookups, QPCMisses uint64
	MPTLookups, MPTMisses uint64
	MTTLookups, MTTMisses uint64
	KeyFlushes            uint64 // of both, when a key was destroyed

	WQELookups, WQEMisses         uint64 // send WQEs of READs and atomics when their answer came; of misses the WQE was read again
	RecvWQELookups, RecvWQEMisses uint64 // receive queues that read ahead; misses had lost what they held to others

	// Completions and events.
	CQEs           uint64
	CQEsLost       uint64
	CQRecordReads  uint64
	CQOverruns     uint64
	CQResizes      uint64
	CQESessions    uint64 // written compressed
	MiniCQEs       uint64 // completions in them
	CQEBytesSaved  uint64 // that their entries would have taken on the bus
	ArmsStale      uint64
	EQEs           uint64
	EQEsLost       uint64
	EventsUnwanted uint64 // of a type that no EQ asked for

	Commands, CommandsFailed uint64

	UARPast uar.Counters // of UAR pages that were freed
}

// qset is a Q counter set: 32-bit counters that wrap, by their offset in the answer.
type qset struct {
	c    [prm.QueryQCounterOutSize / 4]uint32
	refs int
}

// add counts one. QPs without a set count nothing.
func (s *qset) add(c prm.QCounter) {
	if s != nil {
		s.c[c>>2]++
	}
}
