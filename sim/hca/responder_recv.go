package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

func (q *responder) onRQRecord() {
	if q.rq.recordRead(q.busy) {
		q.resumeRecv()
	}
}

func (q *responder) onRQFetch(n int) {
	q.rq.fetched(n)
	q.resumeRecv()
}

// resumeRecv goes on with a packet that waits for a receive WQE.
func (q *responder) resumeRecv() {
	if q.busy && !q.atomicBusy && q.takesRequests() {
		q.unhold(true)
	}
	if q.takesRequests() {
		q.rq.looked = false
	}
}

// takeRecv consumes a receive WQE for a SEND.
func (q *responder) takeRecv() {
	idx, wqe, first := q.rq.take(q.recvWQE[:0])
	q.recvIdx, q.recvWQE = idx, wqe
	q.openRecv(first)
}

// openRecv begins to fill the receive WQE that was taken, whose scatter list begins at
// byte at.
func (q *responder) openRecv(at int) {
	q.recvOpen, q.recvGot, q.recvAt, q.recvCap = true, 0, cursor{at: at}, 0
	for s, next, ok := prm.RecvSGE(q.recvWQE, at); ok; s, next, ok = prm.RecvSGE(q.recvWQE, next) {
		q.recvCap += uint64(s.Len)
	}
}

// rewindRecv goes to the beginning of the receive WQE that was taken.
func (q *responder) rewindRecv() { q.openRecv(q.rq.listAt()) }

// skipRecv leaves n bytes of the receive WQE's scatter list out; the list has them.
func (q *responder) skipRecv(n int) {
	for n > 0 {
		s, next, ok := prm.RecvSGE(q.recvWQE, q.recvAt.at)
		if !ok {
			q.u.bug("QP %#x: a receive WQE ended early", q.num)
		}
		k := min(n, int(s.Len-q.recvAt.pos))
		n -= k
		if q.recvAt.pos += uint32(k); q.recvAt.pos == s.Len {
			q.recvAt = cursor{at: next}
		}
	}
}

// scatter writes payload to the receive WQE's scatter list.
func (q *responder) scatter(data []byte) bool {
	for len(data) > 0 {
		s, next, ok := prm.RecvSGE(q.recvWQE, q.recvAt.at)
		if !ok && q.breaks(rule.SendFitsTheReceive) {
			return true
		}
		if !ok {
			q.u.bug("QP %#x: a receive WQE ended early", q.num)
		}
		n := int(min(uint32(len(data)), s.Len-q.recvAt.pos))
		if r := q.u.dma.writeTo(q.rq.scatterUser(), s.LKey, q.sum(rule.ScatterAddressesHave64Bits, s.Addr, q.recvAt.pos), data[:n], mkey.LocalWrite); r != mkey.OK {
			q.u.dma.result = r
			return false
		}
		data = data[n:]
		if q.recvAt.pos += uint32(n); q.recvAt.pos == s.Len {
			q.recvAt = cursor{at: next}
		}
	}
	return true
}
