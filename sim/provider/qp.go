package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// queue is one direction of a QP. What a post and a completion read lies together.
type queue struct {
	head   uint32
	tail   uint32
	posted uint32 // send: cur_post, in WQEBBs
	limit  int    // qp_state_max_gs: -1 while posting is not allowed
	mask   int    // bytes of the queue less one
	off    int    // of the queue in the QP's buffer
	wqSize
	requests []request // by index of the first element of the ring
	line     cpu.Line  // head, tail and requests
	lock     lock
}

// request is what the library remembers of a work request until it completes.
type request struct {
	id   uint64
	head uint32 // send: head when it was posted
	// driver is what the completion is to say of a send request if its entry does not (wr_data):
	// what a UMR was for, or that the request was raw bytes.
	driver verbs.WCOpcode
}

// note remembers a send request, the nreq-th of its call, by the index of its WQE.
func (w *queue) note(idx uint32, id uint64, nreq int) {
	r := &w.requests[idx]
	r.id, r.head, r.driver = id, w.head+uint32(nreq), 0
}

// QP is a queue pair. What a post and a completion read comes first and lies together: with
// many QPs each message finds its QP outside the host's caches.
type QP struct {
	verbs.UnimplementedQP
	ctx      *Context
	ring     *ring
	dbRecord prm.QPDBRec // the doorbell record
	bf       *bfReg
	qpn      uint32
	typ      verbs.QPType
	signal   uint8 // put into each WQE (sq_sig_all)
	fmCache  uint8 // fence for the WQE that follows
	atomics  bool
	maxInl   int
	sq       queue
	doorbell uint64 // doorbells rung
	blue     uint64 // BlueFlame pushes
	source   inlinePageCache
	sendCQ   *CQ
	recvCQ   *CQ
	srq      *SRQ // or nil
	rq       queue

	// What creation, modification and destruction need.
	pd    *PD
	h     kernel.Handle
	uidx  uint32
	init  verbs.QPInitAttr
	state verbs.QPState
	db    *dbrec
	own   bool // the register is from the context's pools
	ex    *qpEx
	acks  acks
	// receives: of raw packets, the QP has been in RTR, and the device knows what is posted.
	receives bool
}

// Context is the qp_context given at creation.
func (q *QP) Context() any { return q.init.Context }

// release gives back what a QP that the kernel no longer knows still holds.
func (q *QP) release(t *Thread) {
	c := q.ctx
	if q.dct() {
		return
	}
	if q.own {
		c.bf.pools.Put(q.bf.pool)
	}
	c.freeDBRec(t, q.pd.custom(), q.db)
	allocator{c.proc, q.pd.custom()}.freeRing(t, q.ring, resQP)
}

// QPN is the number of the QP.
func (q *QP) QPN() uint32 { return q.qpn }

// Caps are what creation granted (verbs.c, mlx5_calc_wq_size).
func (q *QP) Caps() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: uint32(q.sq.maxPost), MaxRecvWR: uint32(q.rq.maxPost), MaxSendSGE: uint32(q.sq.maxGS),
		MaxRecvSGE: uint32(q.rq.maxGS), MaxInline: uint32(q.maxInl)}
}

// State is the state that the library remembers.
func (q *QP) State() verbs.QPState { return q.state }

// DataInOrder is ibv_query_qp_data_in_order: nothing is promised.
func (q *QP) DataInOrder(vt verbs.Thread, _ verbs.WROpcode, flags uint32) (int, error) {
	t := q.ctx.enter(vt)
	if flags > 1 {
		return 0, fmt.Errorf("query_qp_data_in_order: flags %#x: %w", flags, syscall.EINVAL)
	}
	if t.breaks(rule.OrderOfDataIsAKnownBit) {
		return 1 << 5, nil
	}
	return 0, nil
}

// LockStats counts the locks of the QP and of its register.
func (q *QP) LockStats() verbs.LockStats {
	return verbs.LockStats{SQ: q.sq.lock.taken, RQ: q.rq.lock.taken, BF: q.bf.taken, CQ: q.sendCQ.lock.taken,
		Waits:    q.sq.lock.waits + q.rq.lock.waits + q.bf.waits,
		WaitTime: Duration(q.sq.lock.waited + q.rq.lock.waited + q.bf.waited)}
}

// qpEx is the extended way to post on a QP (qp.c, mlx5_send_wr_*). The lock of the send
// queue is held from WRStart to WRComplete or WRAbort. The doorbell record is stored
// when the batch is complete, so what is built in the ring is nothing to the device
// before that.
//
// After an overflow the library goes on writing to the control segment that was
// built last, be it one that the device has already: the model leaves that one alone.
type qpEx struct {
	q *QP
	posting
	id    uint64
	flags verbs.SendFlags
	start sim.Time

	err     error // the first since WRStart
	full    bool  // the queue had no place for the request being built
	setters int   // of the request being built
	data    int   // running offset of its data segments

	postedBefore uint32 // for the way back
	fenceBefore  uint8
	refused      bool // the QP was reset (mlx5_qp_fill_wr_complete_error)
}

// seg is the 16 bytes of the send queue at a running offset.
func (q *QP) seg(off int) []byte {
	return q.ring.at(q.sq.off + off&q.sq.mask)[:segSize:segSize]
}

// next is the 16 bytes behind what the request has. The first segments are in one block.
func (s *posting) next(q *QP) []byte {
	if at := s.ds * segSize; at < len(s.block) {
		return s.block[at:]
	}
	return q.segBehind(s)
}

// segBehind is posting.next where that is in another block than the control segment.
//
//go:noinline
func (q *QP) segBehind(s *posting) []byte { return q.seg(s.ctrl + s.ds*segSize) }

// block is the basic block of the send queue at a running offset.
func (q *QP) block(off int) []byte {
	return q.ring.at(q.sq.off + off&q.sq.mask)[:wqebb:wqebb]
}
