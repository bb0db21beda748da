package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// sackState is what a requester with RepeatSACK knows of what has arrived beyond the oldest packet
// that is not acknowledged, and of the recovery under way. It follows the modules receiveAck and
// txFree of github.com/NetSys/irn-vivado-hls.
type sackState struct {
	bits       []uint64 // PSNs that were named in NAKs, at the PSN modulo their number
	count      int      // how many
	base       uint32   // all before it are clear
	high       uint32   // behind the highest of them
	recovering bool
	next       uint32   // what is missing before it was sent again in this recovery
	target     uint32   // what is being sent again
	recover    uint32   // behind what was sent before the last repair: when that has arrived, so has this, or is lost
	stalled    uint32   // oldest packet without an acknowledgement when a wait ended in vain,
	waited     sim.Time // and for how long the requester has waited for it
}

func (s *sackState) slot(psn uint32) (word *uint64, bit uint64) {
	i := psn & uint32(64*len(s.bits)-1)
	return &s.bits[i>>6], 1 << (i & 63)
}

func (s *sackState) has(psn uint32) bool {
	w, bit := s.slot(psn)
	return *w&bit != 0
}

// set notes that a PSN has arrived.
func (s *sackState) set(psn uint32) {
	if w, bit := s.slot(psn); *w&bit == 0 {
		*w |= bit
		s.count++
	}
	if roce.CmpPSN(roce.AddPSN(psn, 1), s.high) > 0 {
		s.high = roce.AddPSN(psn, 1)
	}
}

// passed forgets the PSNs before una.
func (s *sackState) passed(una uint32) {
	for ; s.count > 0 && roce.CmpPSN(s.base, una) < 0; s.base = roce.AddPSN(s.base, 1) {
		if w, bit := s.slot(s.base); *w&bit != 0 {
			*w &^= bit
			s.count--
		}
	}
	s.base = una
	if roce.CmpPSN(s.high, una) < 0 {
		s.high = una
	}
}

// forget is a requester that sends all again.
func (s *sackState) forget(una uint32) {
	clear(s.bits)
	s.count, s.base, s.high, s.recovering = 0, una, una, false
	s.next, s.target = una, una
}

// sacked is the requester's state, which is made when it is first needed.
func (q *requester) sacked() *sackState {
	if q.sack == nil {
		n := 1
		for 64*n <= q.u.p.RepeatWindow {
			n *= 2
		}
		q.sack = &sackState{bits: make([]uint64, n)}
		q.sack.forget(q.una)
	}
	return q.sack
}

// onSelectiveNAK is a NAK with SACK. The first one of a recovery takes a retry and the time of a
// reaction.
func (q *requester) onSelectiveNAK(p *roce.Packet, psn uint32) {
	if !q.sacks() || p.AETH().Syndrome() != roce.NAKSequence {
		return
	}
	q.acked(roce.AddPSN(psn, -1))
	got := p.SACKETH().PSN()
	if q.state == prm.QPStateERR || q.outOfReach(got) || !q.repairing && !q.passed() { // the cursor comes to all of them by itself
		return
	}
	s := q.sacked()
	s.passed(q.una)
	s.set(got)
	if s.recovering {
		q.repairNext()
		return
	}
	q.qs.add(prm.QCPacketSeqErr)
	if !q.useRetry() {
		return
	}
	s.recovering, s.next, s.recover = true, q.una, q.sent
	q.undam()
	q.repairNext()
	q.pause(q.u.p.NackReact[0])
}

// outOfReach says whether a PSN is none that may have arrived behind the oldest that is not
// acknowledged.
func (q *requester) outOfReach(psn uint32) bool {
	ahead := roce.CmpPSN(psn, q.una)
	return ahead <= 0 || ahead >= q.u.window() || roce.CmpPSN(psn, q.sent) >= 0
}

// returnsTo is the PSN at which new packets go on.
func (q *requester) returnsTo() uint32 {
	if q.repairing {
		return q.after
	}
	return q.nextPSN()
}

// repairNext has the next packet sent again that is missing, if none is about to be.
func (q *requester) repairNext() {
	if q.repairing {
		return
	}
	if psn, ok := q.nextHole(); ok {
		q.jump(psn)
	}
}

// nextHole finds what is missing below the highest PSN that has arrived and was not sent again in
// this recovery.
func (q *requester) nextHole() (psn uint32, ok bool) {
	s, to := q.sack, q.returnsTo()
	if roce.CmpPSN(s.high, to) < 0 {
		to = s.high
	}
	from := s.next
	if roce.CmpPSN(from, q.una) < 0 {
		from = q.una
	}
	for roce.CmpPSN(from, to) < 0 && s.has(from) {
		from = roce.AddPSN(from, 1)
	}
	for i := q.head; i != q.tail && roce.CmpPSN(from, to) < 0; i++ {
		m := q.msg(i)
		behind := roce.AddPSN(m.first, int32(m.n))
		if m.n == 0 || roce.CmpPSN(behind, from) <= 0 {
			continue
		}
		if m.kind != msgPush { // one packet asks for it, with the first of its PSNs
			if from == m.first && !s.has(from) {
				return from, true
			}
			from = behind
			continue
		}
		for ; roce.CmpPSN(from, behind) < 0 && roce.CmpPSN(from, to) < 0; from = roce.AddPSN(from, 1) {
			if !s.has(from) {
				return from, true
			}
		}
	}
	s.next = from
	return 0, false
}

// jump moves the cursor to a packet that is sent again, and asks for an ACK of it.
func (q *requester) jump(psn uint32) {
	back := q.returnsTo()
	q.seek(psn)
	q.sack.target, q.sinceAR = psn, int32(q.u.p.AckReqPackets)
	q.repairing, q.after = true, back
}

// repaired is the cursor behind a packet that was sent again: it goes to the next one that is
// missing, or back to where it was.
//
//go:noinline
func (q *requester) repaired() {
	s := q.sack
	if s == nil || !s.recovering {
		q.resume()
		return
	}
	s.recover = q.sent
	if at := s.target; roce.CmpPSN(s.next, at) <= 0 {
		s.next = roce.AddPSN(at, 1)
	}
	if psn, ok := q.nextHole(); ok {
		q.jump(psn)
		return
	}
	q.resume()
}

// followAck is what an acknowledgement in a recovery shows: the oldest packet is missing if it was
// sent before a repair that has arrived.
func (q *requester) followAck() {
	s := q.sack
	if s == nil || q.state == prm.QPStateERR {
		return
	}
	s.passed(q.una)
	if s.waited != 0 && s.stalled != q.una {
		s.waited = 0
	}
	if !s.recovering {
		return
	}
	if roce.CmpPSN(q.una, s.recover) >= 0 && s.high == q.una {
		s.recovering = false
		return
	}
	if roce.CmpPSN(q.una, s.next) >= 0 && roce.CmpPSN(q.una, s.recover) < 0 {
		s.next = q.una
		// The answer of a READ or an atomic may be on its way.
		if i := q.unanswered(); s.high == q.una && i != q.tail && q.msg(i).kind == msgPush {
			s.high = roce.AddPSN(q.una, 1)
		}
	}
	if q.repairing && roce.CmpPSN(s.target, q.una) < 0 && !q.exact { // it has arrived before it was sent again
		q.resume()
	}
	q.repairNext()
}

// repeatTimedOut has the oldest packet sent again after RepeatTimeout. It reports false when that
// was the connection's ACK timer, which goes by its own rule: then all is sent again.
func (q *requester) repeatTimedOut() bool {
	if q.backoff != 0 || !q.sacks() {
		return false
	}
	s := q.sacked()
	if s.stalled != q.una {
		s.stalled, s.waited = q.una, 0
	}
	if s.waited += q.timeout; s.waited >= q.ack.wait(0) || !q.repairing && !q.passed() {
		s.waited = 0
		return false
	}
	q.u.c.RepeatTimeouts++
	s.passed(q.una)
	s.recovering, s.next, s.recover = true, q.una, q.sent
	if s.high == q.una {
		s.high = roce.AddPSN(q.una, 1)
	}
	if i := q.unanswered(); i != q.tail && q.msg(i).kind != msgPush {
		q.repair()
	} else if !q.repairing { // whether it has arrived, or its ACK is lost
		q.undam()
		q.jump(q.una)
	}
	q.setDeadline()
	q.kick()
	return true
}
