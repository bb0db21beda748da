package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// packetQueues is what the SQs and RQs of a function share. Their numbers are those of QPs: one
// space.
type packetQueues struct {
	*units
	numbers *numbers
	made    uint64 // queues and their resets: it tells the reads of one from those of another
	entry   [2 * prm.CQE64Size]byte
	c       nicCounters
}

// nicCounters are those of the network interface.
type nicCounters struct {
	rx, tx     [castKinds]traffic
	rxOversize uint64 // longer than the port takes
	txOversize uint64
	rxDropped  uint64 // that no flow table entry leads to an RQ
	rxNoBuffer uint64 // for which an RQ had no WQE
}

// traffic is packets and octets.
type traffic struct{ packets, octets uint64 }

func (t *traffic) add(n int) {
	t.packets++
	t.octets += uint64(n)
}

// Kinds of addresses.
const (
	unicast = iota
	multicast
	broadcast
	castKinds
)

// word is a new event word for the queue with a number.
func (v *packetQueues) word(num uint32) uint64 {
	v.made++
	return v.made<<24 | uint64(num)
}

// packetQueue is what an SQ and an RQ have in common. Indexes count its WQEs, of an SQ the basic
// blocks, modulo 2^16.
type packetQueue struct {
	all    *packetQueues
	num    uint32
	arg    uint64
	ring   ring
	size   uint32 // WQEs or basic blocks
	unit   uint32 // bytes of one
	dbr    mem.PA
	cq     *cq
	uidx   uint32
	user   mkey.User
	state  uint32
	flush  bool // WQEs complete with an error in state ERR
	pi, ci uint16

	busy  bool   // a WQE is being read or carried out
	reads int    // of DMA that are under way
	wqe   []byte // that is being carried out, and what was read behind it
}

// forget has nothing that is under way find the queue any more.
func (q *packetQueue) forget() {
	q.arg = q.all.word(q.num)
	q.busy, q.reads, q.wqe = false, 0, nil // what is still read goes into memory that is no longer looked at
}

// restart is the transition to RST.
func (q *packetQueue) restart() {
	q.forget()
	q.state, q.pi, q.ci = prm.PacketQueueRST, 0, 0
}

// fetch reads n units of the ring from the consumer index on; each read ends with the queue's event
// word.
func (q *packetQueue) fetch(n int, done func(uint64)) {
	want := n * int(q.unit)
	if len(q.wqe) < want {
		q.wqe = make([]byte, want)
	}
	for at := 0; at < want; {
		off := (uint64(q.ci)*uint64(q.unit) + uint64(at)) % (uint64(q.size) * uint64(q.unit))
		pa, k := q.ring.at(off, min(want-at, int(uint64(q.size)*uint64(q.unit)-off)))
		q.reads++
		q.all.bus.ReadDMA(pa, q.wqe[at:at+k], done, q.arg)
		at += k
	}
}

// read counts the end of a read, and says whether it was the last.
func (q *packetQueue) read() bool {
	q.reads--
	return q.reads == 0
}

// completion is the scratch for an entry of the queue's CQ, cleared, and its CQE64 with what all
// entries have.
func (q *packetQueue) completion(idx uint16) (all []byte, e prm.CQE64) {
	v := q.all
	all = v.entry[:q.cq.cqe]
	clear(all)
	e = prm.CQE64(all[q.cq.cqe-prm.CQE64Size:])
	e.SetSRQNUIdx(q.uidx)
	e.SetTimestamp(v.timestamp(v.e.Now()))
	e.SetWQECounter(idx)
	return all, e
}

// errorCQE reports a WQE that failed or was flushed.
func (q *packetQueue) errorCQE(op prm.CQEOpcode, idx uint16, s prm.Syndrome) {
	b, e := q.completion(idx)
	e.SetQPN(q.num)
	e.SetSyndrome(s)
	e.SetVendorErrSynd(vendorSyndromes[s])
	e.SetOpOwn(op, prm.CQEFormatPlain, false, 0)
	q.cq.push(b)
}
