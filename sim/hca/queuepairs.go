package hca

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// queuePairs are the QPs of a device by their numbers.
type queuePairs struct {
	*units
	bySlot   []*qp // see qpSlot
	qpNums   numbers
	reserved []uint32           // first numbers of the objects that reserve some
	made     uint64             // QPs: it tells those of the same number apart, in the words of their events
	groups   map[roce.GID][]*qp // multicast groups; looked up, never walked
	special  [2]*qp             // QP0 and QP1 of the port; nil: none
	targets  map[uint32]*dct    // of the dynamically connected transport; looked up, never walked
}

// reset forgets all QPs.
func (v *queuePairs) reset() {
	v.bySlot, v.groups, v.special, v.targets = nil, map[roce.GID][]*qp{}, [2]*qp{}, map[uint32]*dct{}
	v.limitQPs(uint32(v.p.LogMaxQP))
}

// limitQPs has the numbers of QPs, of which none was handed out, have so many bits. Devices of one
// network begin far from each other, as those of cards with different histories do: at halves,
// quarters and so on of the range, in the order of Identity.Number. They differ in high bits only,
// so that what a model takes from the low ones (hca.pu_choice) is the same on all.
func (v *queuePairs) limitQPs(log uint32) {
	const least = 2*firstQPN - 1 // low bits that no device has inverted
	v.qpNums = numbers{next: firstQPN, limit: 1 << log, first: firstQPN, flip: bits.Reverse32(uint32(v.id.Number)) >> (32 - log) &^ least, late: true}
}

// qpSlot is the place of a QP number in bySlot, which the numbers handed out fill from the
// beginning.
func (v *queuePairs) qpSlot(n uint32) uint32 { return n ^ v.qpNums.flip }

// qpn is the QP with a number, or nil.
func (v *queuePairs) qpn(n uint32) *qp {
	s := v.qpSlot(n)
	if uint64(s) >= uint64(len(v.bySlot)) {
		return nil
	}
	return v.bySlot[s]
}

// newQP makes a QP in state RST of a context that was checked.
func (v *queuePairs) newQP(num uint32, c prm.QPC, r ring, with partners) *qp {
	v.made++
	q := &qp{connection: connection{u: v.units, partners: with, sender: sender{arg: v.made<<24 | uint64(num)}, cachedQP: cachedQP{num, v.caches.qpc.place(uint64(v.qpSlot(num)))}, setup: &setup{ring: r}}}
	q.requester.sendRare, q.requester.sq.ringRare, q.responder.recvRare = new(sendRare), new(ringRare), new(recvRare)
	q.owner = q
	q.requester.connection, q.requester.sq.connection = &q.connection, &q.connection
	q.responder.connection, q.responder.rq.connection = &q.connection, &q.connection
	copy(q.ctx[:], c)
	q.st, q.pd, q.uar, q.uidx, q.wireQPN = uint8(c.ST()), c.PD(), c.UARPage(), c.UserIndex(), num
	switch c.ST() {
	case prm.STQP0:
		q.st, q.wireQPN = prm.STUD, 0
	case prm.STQP1:
		q.st, q.wireQPN = prm.STUD, gsiQPN
	case prm.STRegUMR:
		q.transport = noTransport
	}
	switch q.st {
	case prm.STXRC:
		q.transport = roce.XRC
	case prm.STUC:
		q.transport = roce.UC
	case prm.STDCI:
		q.transport = roce.DC
		q.requester.paths, q.requester.dci, q.requester.streams = new(avPaths), new(initiator), newStreams(c)
	case prm.STDCT:
		q.transport = roce.DC
	case prm.STUD:
		q.transport = roce.UD
		q.requester.paths, q.responder.grh = new(avPaths), new([roce.GRHSize]byte)
	}
	q.dbr = mem.PA(c.DBRAddr())
	q.requester.txq, q.requester.puGroup = emptyList, v.groupOf(num)
	q.responder.rtx, q.responder.hold, q.responder.ahead = emptyList, emptyList, emptyList
	rq := q.responder.setQueue(c)
	if !c.NoSQ() {
		q.requester.sq.off, q.requester.sq.size = rq, 1<<c.LogSQSize()
	}
	q.reset()
	return q
}

// gsiQPN is the number of QP1 in packets, the QP of the general services interface.
const gsiQPN = 1

// noTransport is that of a QP that neither sends nor receives packets.
const noTransport = ^roce.Transport(0)

// cqFailed moves the QPs of a CQ that has failed to ERR.
func (v *queuePairs) cqFailed(c *cq) {
	for _, q := range v.bySlot {
		if q != nil && (q.scq == c || q.rcq == c || q.recvCQ() == c) && q.state != prm.QPStateRST {
			q.qs.add(prm.QCCQOverflow)
			q.abort()
		}
	}
}

// rebuildPaths makes the headers of connected QPs again, after a change of the port.
func (v *queuePairs) rebuildPaths() {
	for _, q := range v.bySlot {
		if q != nil && q.state != prm.QPStateRST && q.state != prm.QPStateINIT {
			q.repath()
		}
	}
}
