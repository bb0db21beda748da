package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// Selective repeat: the responder keeps packets that came before the one it expects, and executes
// them in order once the gap is closed; RepeatScheme says what it asks for.

// keep takes a request packet that came early, if the device does so. The list is in the
// order of PSNs.
func (q *responder) keep(f *roce.Frame) bool {
	u := q.u
	if !u.p.SelectiveRepeat || !q.reliable() || q.nak == rnrNAK {
		return false
	}
	psn := f.BTH().PSN()
	switch ahead := roce.CmpPSN(psn, q.epsn); {
	case ahead <= 0:
		return false
	case ahead > int32(u.p.RepeatWindow) || !q.keepsClass(f.Info()):
		u.c.EarlyDiscarded++
		return false
	}
	q.qs.add(prm.QCOutOfSequence)
	if q.sacks() {
		q.sendSelectiveNAK(psn)
	} else {
		q.sendSequenceNAK()
	}
	before, at := int32(-1), q.ahead.head
	for at >= 0 {
		other := u.packet(at)
		diff := roce.CmpPSN(other.BTH().PSN(), psn)
		if diff == 0 { // it is here already
			f.Release()
			return true
		}
		if diff > 0 {
			break
		}
		before, at = at, u.slot(at).next
	}
	i := u.getSlot(f)
	switch {
	case at < 0:
		u.pushSlot(&q.ahead, i)
	case before < 0:
		u.pushFront(&q.ahead, i)
	default:
		u.slot(i).next, u.slot(before).next = at, i
	}
	return true
}

// catchUp executes packets that were kept, up to the next gap, for which it asks.
func (q *responder) catchUp() {
	u := q.u
	for q.ahead.head >= 0 && !q.busy {
		i := q.ahead.head
		p := u.packet(i)
		diff := roce.CmpPSN(p.BTH().PSN(), q.epsn)
		if diff > 0 {
			if !q.sacks() { // otherwise each of them has had its NAK
				q.sendSequenceNAK()
			}
			return
		}
		u.popSlot(&q.ahead)
		switch {
		case diff < 0 || !q.takesRequests():
			u.dropSlot(i)
		case q.execute(p):
			q.busy = true
			u.pushFront(&q.hold, i)
		default:
			u.dropSlot(i)
		}
	}
}

// dropAhead forgets the packets that were kept.
func (q *responder) dropAhead() {
	for q.ahead.head >= 0 {
		q.u.dropSlot(q.u.popSlot(&q.ahead))
	}
}
