package hca

import (
	"github.com/rdmasim/rdmasim/roce"
)

// Packet damming, a hypothesis (Params.RNRDamming): what a requester takes up while it waits out an
// RNR NAK counts as sent, and nothing of it reaches the wire. That a card does so is inferred from
// what Fukuoka et al. (ISPASS 2021) call by that name; only the abstract was at hand. What brings a
// dammed request onto the wire is the ordinary repair of a loss: the ACK timeout, or the NAK that a
// later request draws. A further RNR NAK does not, since it has sent again what was sent.
//
// A requester cannot tell a page fault from a queue without receives: any RNR NAK dams.

// beginDamming has the requester take up what is posted, though it waits.
func (q *requester) beginDamming() {
	if !q.u.p.RNRDamming || q.head == q.tail {
		return
	}
	last := q.msg(q.tail - 1)
	q.dams = true
	q.cur = q.tail
	q.sq.moveTo(last.idx + uint16(last.nbb))
	q.kick()
}

// endDamming is the end of the wait: what was sent before is sent again.
func (q *requester) endDamming() {
	q.dams = false
	q.rewind()
}

// takesUp says whether a requester that waits takes new WQEs up all the same. One that has moved
// its cursor back meanwhile has something to send first.
func (q *requester) takesUp() bool { return q.dams && q.cur == q.tail }

// dam counts a message as sent that was just begun. It reports false when so many PSNs cannot be
// outstanding: that message is sent after the wait.
func (q *requester) dam(m *msg) bool {
	if int64(roce.CmpPSN(m.first, q.una))+int64(m.n) > roce.MaxOutstandingPSN {
		return false
	}
	m.dammed, q.dammed = true, true
	q.u.c.RequestsDammed++
	q.noteSent(roce.AddPSN(m.first, int32(m.n)))
	q.passWQE(m)
	return true
}

// undam has the repair of a loss send everything.
func (q *requester) undam() {
	if !q.dammed {
		return
	}
	for i := q.head; i != q.tail; i++ {
		q.msg(i).dammed = false
	}
	q.dammed = false
}
