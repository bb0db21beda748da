package provider

import (
	"math/bits"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// CQ is a completion queue.
type CQ struct {
	verbs.UnimplementedCQ
	ctx    *Context
	user   any     // cq_context
	ex     *exPoll // of the extended call
	h      kernel.Handle
	cqn    uint32
	cookie uint64
	ring   *ring
	parent *PD // whose allocator made the memory
	esize  int
	comp   uint8  // format of compressed entries, 0: there are none
	n      uint32 // entries, a power of two
	ci     uint32 // consumer index, not reduced
	db     *dbrec
	lock   lock
	line   cpu.Line // consumer index and what goes with it
	entry  cpu.Line // stands for the entry being read, which the device wrote last
	watch  []int
	wakeup func(uint64)
	// Threads that spin in PollWait are parked here.
	pollers []*Thread

	channel   *CompChannel
	armSN     uint32
	compAcks  acks
	asyncAcks acks

	times []uint64 // of what the last poll gave, in cycles of the device's clock (KeepTimes)
}

// KeepTimes implements verbs.TimedCQ. Compressed entries have one time for many.
func (q *CQ) KeepTimes(n int) bool {
	if q.comp != 0 {
		return false
	}
	q.times = make([]uint64, n)
	return true
}

// CompletedAt implements verbs.TimedCQ.
func (q *CQ) CompletedAt(i int) time.Duration {
	hi, lo := bits.Mul64(q.times[i], uint64(time.Millisecond))
	at, _ := bits.Div64(hi, lo, q.ctx.u.ClockKHz())
	return time.Duration(at)
}

// newRing makes a ring of n entries that the device owns.
func (q *CQ) newRing(t *Thread, n uint32) (*ring, error) {
	r, err := allocator{q.ctx.proc, q.parent}.newRing(t, int(n)*q.esize, resCQ)
	if err != nil {
		return nil, err
	}
	invalid := make([]byte, q.esize)
	prm.CQE64(invalid[q.esize-prm.CQE64Size:]).SetOpOwn(prm.CQEInvalid, prm.CQEFormatPlain, false, 0)
	if r.custom == nil { // the rest of fresh memory is zero
		r.fill(invalid)
		return r, nil
	}
	for i := range n {
		q.slot(r, i).SetOpOwn(prm.CQEInvalid, prm.CQEFormatPlain, false, 0)
	}
	return r, nil
}

// slot is entry i (reduced) of a ring: the second half of one of 128 bytes.
func (q *CQ) slot(r *ring, i uint32) prm.CQE64 {
	b := r.at(int(i) * q.esize)
	return prm.CQE64(b[q.esize-prm.CQE64Size : q.esize])
}

// at is the entry of an index that is not reduced.
func (q *CQ) at(ci uint32) prm.CQE64 { return q.slot(q.ring, ci&(q.n-1)) }

// Cap is cq->cqe.
func (q *CQ) Cap() int { return int(q.n) - 1 }

// Context is the cq_context given at creation.
func (q *CQ) Context() any { return q.user }

// CQN is the number of the CQ.
func (q *CQ) CQN() uint32 { return q.cqn }

// LockStats counts the CQ's lock.
func (q *CQ) LockStats() verbs.LockStats {
	return verbs.LockStats{CQ: q.lock.taken, Waits: q.lock.waits, WaitTime: Duration(q.lock.waited)}
}

// release gives the memory back.
func (q *CQ) release(t *Thread) {
	q.unwatch(q.watch)
	q.watch = nil
	q.ctx.freeDBRec(t, q.parent, q.db)
	allocator{q.ctx.proc, q.parent}.freeRing(t, q.ring, resCQ)
}

func (q *CQ) unwatch(ids []int) {
	for _, id := range ids {
		q.ctx.proc.Mem.Unwatch(id)
	}
}

// exPoll is the state of the extended way to poll (struct ibv_cq_ex).
type exPoll struct {
	unlocked bool     // by one thread alone, as was promised
	flags    uint64   // wc_flags of creation
	cur      verbs.WC // the completion that was found last
	ts       uint64
}
