package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// recvQueue is what the device holds of an RQ. Software rings no doorbell for
// receives: the device reads the doorbell record when it runs low, and the WQEs
// behind it.
type recvQueue struct {
	rqStride  uint32
	rqSize    uint32
	rqCI      uint16 // next to consume
	rqGot     uint16 // rqCI..rqGot-1 are in rqBuf
	rqPI      uint16 // posted, as the record last said
	rqBuf     []byte
	rqReading bool  // the record or WQEs are being read
	rqStale   bool  // the result must not be used
	rqFresh   bool  // the read of the record began after the packet that waits had come
	rqLooked  bool  // such a read found nothing
	rqKept    int32 // place in the cache of receive WQEs
	rqHeld    bool  // has been there
	record    [prm.DBRecSize]byte
}

// hasRecv says whether a receive WQE is at hand.
func (q *responder) hasRecv() bool { return q.rqCI != q.rqGot || q.srq != nil && q.srq.has() }

// wantRecv starts reading for a packet that needs a receive WQE. It reports false
// when a look at the record has just shown that there is none.
func (q *responder) wantRecv() bool {
	if q.rqLooked || q.srq == nil && q.rqSize == 0 {
		q.rqLooked = false
		return false
	}
	if q.srq != nil {
		return q.srq.want(q.arg)
	}
	q.refill(true)
	return true
}

// refill reads receive WQEs ahead, or the record when all that it named are here.
func (q *responder) refill(waited bool) {
	if q.rqReading || q.rqSize == 0 {
		return
	}
	q.rqReading = true
	u := q.u
	if q.rqPI == q.rqGot {
		q.rqFresh = waited
		u.c.RecvRecordReads++
		u.bus.ReadDMA(q.dbr, q.record[:], u.h.rqRecord, q.arg)
		return
	}
	if q.rqBuf == nil {
		q.rqBuf = make([]byte, q.prefetch()*int(q.rqStride))
	}
	slot := uint32(q.rqGot) & (q.rqSize - 1)
	at := int(q.rqGot) % q.prefetch()
	n := min(int(q.rqPI-q.rqGot), q.prefetch()-int(q.rqGot-q.rqCI), q.prefetch()-at, int(q.rqSize-slot))
	if n <= 0 {
		q.rqReading = false
		return
	}
	stride := int(q.rqStride)
	pa, bytes := q.ring.at(uint64(slot)*uint64(stride), n*stride)
	n = bytes / stride
	q.keepRecv()
	u.c.RecvWQEFetches++
	u.bus.ReadDMA(pa, q.rqBuf[at*stride:(at+n)*stride], u.h.rqFetch, q.arg|uint64(n)<<fetchShift)
}

// prefetch is how many receive WQEs are held, a power of two, so that the place of
// an index modulo 2^16 does not jump.
func (q *responder) prefetch() int {
	n := 1
	for 2*n <= min(q.u.p.RQPrefetch, int(q.rqSize)) {
		n *= 2
	}
	return n
}

func (q *responder) onRQRecord() {
	q.rqReading = false
	if q.rqStale {
		q.rqStale = false
		q.resumeRecv()
		return
	}
	pi := prm.QPDBRec(q.record[:]).Recv()
	if n := uint32(pi - q.rqCI); n <= q.rqSize && n > uint32(q.rqGot-q.rqCI) {
		q.rqPI = pi
	}
	if q.rqPI != q.rqGot || q.busy && !q.rqFresh {
		q.refill(q.busy)
		return
	}
	q.rqLooked = true
	q.resumeRecv()
}

func (q *responder) onRQFetch(n int) {
	q.rqReading = false
	if q.rqStale {
		q.rqStale = false
	} else {
		q.rqGot += uint16(n)
	}
	q.resumeRecv()
}

// resumeRecv goes on with a packet that waits for a receive WQE.
func (q *responder) resumeRecv() {
	if q.busy && !q.atomicBusy && q.takesRequests() {
		q.unhold(true)
	}
	if q.takesRequests() {
		q.rqLooked = false
	}
}

// passRecv consumes a receive WQE and reads ahead when few are left.
func (q *responder) passRecv() uint16 {
	if q.srq != nil {
		idx, _ := q.srq.take()
		return idx
	}
	idx := q.rqCI
	q.rqCI++
	q.rqLooked = false
	if int(q.rqGot-q.rqCI) <= q.prefetch()/2 {
		q.refill(false)
	}
	return idx
}

// takeRecv consumes a receive WQE for a SEND.
func (q *responder) takeRecv() {
	if q.srq != nil {
		idx, wqe := q.srq.take()
		q.recvIdx, q.recvWQE = idx, append(q.recvWQE[:0], wqe...)
		q.openRecv(0)
		return
	}
	at := int(q.rqCI) % q.prefetch() * int(q.rqStride)
	q.recvWQE = append(q.recvWQE[:0], q.rqBuf[at:at+int(q.rqStride)]...)
	first := 0
	if q.context().WQSignature() {
		first = prm.DSSize
	}
	q.openRecv(first)
	q.recvIdx = q.passRecv()
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
func (q *responder) rewindRecv() {
	first := 0
	if q.srq == nil && q.context().WQSignature() {
		first = prm.DSSize
	}
	q.openRecv(first)
}

// flushRQ completes with a flush error the receive WQEs up to the record's counter.
func (q *responder) flushRQ(posted uint16) bool {
	if q.u.breaks(rule.PostedReceivesAreFlushed) {
		return false
	}
	n := min(uint32(posted-q.rqCI), q.rqSize)
	for range n {
		q.errorCQE(prm.CQERespErr, q.rqCI, 0, prm.SyndromeWRFlush)
		q.rqCI++
	}
	return n > 0
}

// keepRecv notes that a QP reads receive WQEs ahead. Those of the queue that has done so
// least lately go, unless it reads right now: it is then about to use them.
func (q *responder) keepRecv() {
	u := q.u
	if len(u.caches.recvWQEs.nodes) == 0 {
		return
	}
	u.c.RecvWQELookups++
	hit, gone := u.caches.recvWQEs.touch(&q.rqKept, uint64(q.num))
	if hit {
		return
	}
	if q.rqHeld {
		u.c.RecvWQEMisses++
	}
	q.rqHeld = true
	if uint32(gone) != q.num {
		u.caches.holders.loseRecv(uint32(gone))
	}
}

// loseRecv drops the receive WQEs that were read ahead, for others.
func (q *responder) loseRecv() {
	if !q.rqReading && q.srq == nil {
		q.rqGot = q.rqCI
	}
}

// recvUser is who scatters into a receive WQE: keys of an SRQ's WQEs are of its PD.
func (q *responder) recvUser() mkey.User {
	if q.srq != nil {
		return mkey.User{PD: q.srq.pd, QPN: q.num}
	}
	return q.user()
}
