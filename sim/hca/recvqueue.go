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
	*connection
	stride  uint32
	size    uint32
	ci      uint16 // next to consume
	got     uint16 // ci..got-1 are in buf
	pi      uint16 // posted, as the record last said
	reading bool   // the record or WQEs are being read
	stale   bool   // the result must not be used
	buf     []byte
	fresh   bool  // the read of the record began after the packet that waits had come
	looked  bool  // such a read found nothing
	held    bool  // has been at kept
	kept    int32 // place in the cache of receive WQEs
	record  [prm.DBRecSize]byte
}

// has says whether a receive WQE is at hand.
func (r *recvQueue) has() bool { return r.ci != r.got || r.srq != nil && r.srq.has() }

// want starts reading for a packet that needs a receive WQE. It reports false
// when a look at the record has just shown that there is none.
func (r *recvQueue) want() bool {
	if r.looked || r.srq == nil && r.size == 0 {
		r.looked = false
		return false
	}
	if r.srq != nil {
		return r.srq.want(r.arg)
	}
	r.refill(true)
	return true
}

// refill reads receive WQEs ahead, or the record when all that it named are here.
func (r *recvQueue) refill(waited bool) {
	if r.reading || r.size == 0 {
		return
	}
	r.reading = true
	u := r.u
	if r.pi == r.got {
		r.fresh = waited
		u.c.RecvRecordReads++
		u.bus.ReadDMA(r.dbr, r.record[:], u.h.rqRecord, r.arg)
		return
	}
	if r.buf == nil {
		r.buf = make([]byte, r.prefetch()*int(r.stride))
	}
	slot := uint32(r.got) & (r.size - 1)
	at := int(r.got) % r.prefetch()
	n := min(int(r.pi-r.got), r.prefetch()-int(r.got-r.ci), r.prefetch()-at, int(r.size-slot))
	if n <= 0 {
		r.reading = false
		return
	}
	stride := int(r.stride)
	pa, bytes := r.ring.at(uint64(slot)*uint64(stride), n*stride)
	n = bytes / stride
	r.keep()
	u.c.RecvWQEFetches++
	u.bus.ReadDMA(pa, r.buf[at*stride:(at+n)*stride], u.h.rqFetch, r.arg|uint64(n)<<fetchShift)
}

// prefetch is how many receive WQEs are held, a power of two, so that the place of
// an index modulo 2^16 does not jump.
func (r *recvQueue) prefetch() int {
	n := 1
	for 2*n <= min(r.u.p.RQPrefetch, int(r.size)) {
		n *= 2
	}
	return n
}

// recordRead takes what the doorbell record says. It reports false when WQEs are being read;
// waited says that a packet waits for one.
func (r *recvQueue) recordRead(waited bool) bool {
	r.reading = false
	if r.stale {
		r.stale = false
		return true
	}
	pi := prm.QPDBRec(r.record[:]).Recv()
	if n := uint32(pi - r.ci); n <= r.size && n > uint32(r.got-r.ci) && (r.pi == 0 || !r.u.breaks(rule.DoorbellRecordIsReadAgain)) {
		r.pi = pi
	}
	if r.pi != r.got || waited && !r.fresh {
		r.refill(waited)
		return false
	}
	r.looked = true
	return true
}

// fetched is n WQEs that have come.
func (r *recvQueue) fetched(n int) {
	r.reading = false
	if r.stale {
		r.stale = false
	} else {
		r.got += uint16(n)
	}
}

// pass consumes a receive WQE and reads ahead when few are left.
func (r *recvQueue) pass() uint16 {
	if r.srq != nil {
		idx, _ := r.srq.take()
		return idx
	}
	idx := r.ci
	r.ci++
	r.looked = false
	if int(r.got-r.ci) <= r.prefetch()/2 {
		r.refill(false)
	}
	return idx
}

// take consumes a WQE for a SEND: its index, the WQE appended to into, and where its scatter list
// begins.
func (r *recvQueue) take(into []byte) (idx uint16, wqe []byte, first int) {
	if r.srq != nil {
		idx, w := r.srq.take()
		return idx, append(into, w...), 0
	}
	at := int(r.ci) % r.prefetch() * int(r.stride)
	wqe = append(into, r.buf[at:at+int(r.stride)]...)
	return r.pass(), wqe, r.listAt()
}

// listAt is where the scatter list of a WQE begins.
func (r *recvQueue) listAt() int {
	if r.srq == nil && r.context().WQSignature() {
		return prm.DSSize
	}
	return 0
}

// flush completes with a flush error the receive WQEs up to the record's counter.
func (r *recvQueue) flush(posted uint16) bool {
	if r.u.breaks(rule.PostedReceivesAreFlushed) {
		return false
	}
	n := min(uint32(posted-r.ci), r.size)
	for range n {
		r.errorCQE(prm.CQERespErr, r.ci, 0, prm.SyndromeWRFlush)
		r.ci++
	}
	return n > 0
}

// keep notes that a QP reads receive WQEs ahead. Those of the queue that has done so
// least lately go, unless it reads right now: it is then about to use them.
func (r *recvQueue) keep() {
	u := r.u
	if len(u.caches.recvWQEs.nodes) == 0 {
		return
	}
	u.c.RecvWQELookups++
	hit, gone := u.caches.recvWQEs.touch(&r.kept, uint64(r.num))
	if hit {
		return
	}
	if r.held {
		u.c.RecvWQEMisses++
	}
	r.held = true
	if uint32(gone) != r.num {
		u.caches.holders.loseRecv(uint32(gone))
	}
}

// dropReadAhead drops the receive WQEs that were read ahead, for others.
func (r *recvQueue) dropReadAhead() {
	if !r.reading && r.srq == nil {
		r.got = r.ci
	}
}

// scatterUser is who scatters into a receive WQE: keys of an SRQ's WQEs are of its PD.
func (r *recvQueue) scatterUser() mkey.User {
	switch {
	case r.srq == nil:
		return r.user()
	case r.srq.xrc != nil && r.breaks(rule.ReceiveKeysAreOfTheSRQsPD):
		return mkey.User{PD: r.context().PD(), QPN: r.num}
	}
	return mkey.User{PD: r.srq.pd, QPN: r.num}
}
