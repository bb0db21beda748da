package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// srq is a basic shared receive queue: an RMP whose WQEs form a linked list. The
// device follows next_wqe_index from WQE 0 on; the doorbell record counts how many
// were posted. Counters are modulo 2^16. Like an RQ it has no doorbell: the record is
// read when a packet finds no WQE at hand, or to see whether the limit is reached.
type srq struct {
	d      *Device
	num    uint32
	arg    uint64 // generation << 24 | number: the event word
	ctx    [prm.RMPCSize]byte
	pd     uint32
	ring   ring
	stride uint32
	size   uint32 // WQEs
	dbr    mem.PA
	refs   int
	failed bool

	next   uint16 // index of the WQE after the last that was read
	taken  uint16 // WQEs given to QPs
	got    uint16 // WQEs read: got-taken are in ahead
	posted uint16 // as the record last said
	limit  uint16 // 0: disarmed
	ahead  []byte // WQEs read and not yet given away, by count modulo their number
	index  []uint16
	land   []byte // where a fetch arrives

	reading  bool     // the record or WQEs are being read
	asked    int      // of the waiting QPs, how many came before the read of the record
	check    bool     // the limit asks for a look at the record
	checking bool     // the read under way began after that
	waiters  []uint64 // QPs whose first packet needs a WQE, by event word
	spare    []uint64
	rec      [prm.DBRecSize]byte
}

// srqn is the SRQ with a number, or nil.
func (d *tables) srqn(n uint32) *srq {
	if uint64(n) >= uint64(len(d.srqs)) {
		return nil
	}
	return d.srqs[n]
}

// has says whether a WQE is at hand.
func (s *srq) has() bool { return s.taken != s.got }

// slot is the place of the WQE with count n in the buffer.
func (s *srq) slot(n uint16) int { return int(n) & (len(s.index) - 1) }

// take gives the next WQE to a QP: its index and its scatter list.
func (s *srq) take() (idx uint16, wqe []byte) {
	i := s.slot(s.taken)
	idx, wqe = s.index[i], s.ahead[i*int(s.stride):(i+1)*int(s.stride)]
	s.taken++
	if s.limit != 0 && s.posted-s.taken < s.limit {
		s.check = true
	}
	if s.check || int(s.got-s.taken) <= len(s.index)/2 {
		s.refill()
	}
	return idx, wqe[prm.SRQNextSegmentSize:]
}

// want has q wait for a WQE. It reports false when a look at the record has just
// shown that there is none.
func (s *srq) want(q *responder) bool {
	if q.rqLooked || s.failed {
		q.rqLooked = false
		return false
	}
	s.waiters = append(s.waiters, q.arg)
	s.refill()
	return true
}

// refill reads WQEs ahead, or the record when all that it named are here or the limit
// asks for it.
func (s *srq) refill() {
	if s.reading || s.failed {
		return
	}
	d := s.d
	if s.posted == s.got || s.check {
		s.reading, s.asked = true, len(s.waiters)
		s.checking, s.check = s.check, false
		d.c.RecvRecordReads++
		d.bus.ReadDMA(s.dbr, s.rec[:], d.h.srqRecord, s.arg)
		return
	}
	room := len(s.index) - int(s.got-s.taken)
	// Software links WQEs in the order of the ring until they are used again: those
	// behind the next are read with it, and dropped if the list goes elsewhere.
	stride := int(s.stride)
	n := min(int(s.posted-s.got), room, int(s.size)-int(s.next))
	if n <= 0 {
		return
	}
	pa, bytes := s.ring.at(uint64(s.next)*uint64(stride), n*stride)
	n = bytes / stride
	s.reading = true
	d.c.RecvWQEFetches++
	d.bus.ReadDMA(pa, s.land[:n*stride], d.h.srqFetch, s.arg|uint64(n)<<fetchShift)
}

func (s *srq) onRecord() {
	d := s.d
	s.reading = false
	pi := prm.SRQDBRec(s.rec[:]).Count()
	if n := uint32(pi - s.taken); n <= s.size && n >= uint32(s.got-s.taken) {
		s.posted = pi
	}
	if s.checking {
		s.checkLimit()
	}
	if s.posted != s.got || s.has() {
		if s.has() {
			s.wake(len(s.waiters))
		}
		if s.posted != s.got || s.check {
			s.refill()
		}
		return
	}
	for _, w := range s.waiters[:s.asked] {
		if q := d.responderArg(w); q != nil {
			q.rqLooked = true
		}
	}
	s.wake(s.asked)
	if len(s.waiters) > 0 || s.check {
		s.refill()
	}
}

func (s *srq) onFetch(n int) {
	s.reading = false
	stride := int(s.stride)
	for i := range n {
		wqe := s.land[i*stride : (i+1)*stride]
		next := prm.SRQNextSegment(wqe).NextWQEIndex()
		at := s.slot(s.got)
		s.index[at] = s.next
		copy(s.ahead[at*stride:], wqe)
		s.got++
		if uint32(next) >= s.size {
			s.fail()
			break
		}
		follows := next == s.next+1
		s.next = next
		if !follows {
			break
		}
	}
	s.wake(len(s.waiters))
	if len(s.waiters) > 0 || s.check {
		s.refill()
	}
}

// wake lets the first n waiting QPs look again.
func (s *srq) wake(n int) {
	list := append(s.spare[:0], s.waiters[:n]...)
	s.waiters = s.waiters[:copy(s.waiters, s.waiters[n:])]
	for _, w := range list {
		if q := s.d.responderArg(w); q != nil {
			q.resumeRecv()
		}
	}
	s.spare = list[:0]
}

// fail ends an SRQ whose list leads out of its ring (inferred: the catastrophic error
// of the event table). What was read can still be used.
func (s *srq) fail() {
	s.failed = true
	prm.RMPC(s.ctx[:]).SetState(prm.RMPStateErr)
	s.event(prm.EventSRQCatasError)
}

// checkLimit reports once that fewer WQEs are posted than the limit, and disarms.
func (s *srq) checkLimit() {
	if s.limit == 0 || s.posted-s.taken >= s.limit {
		return
	}
	if !s.d.breaks(rule.LimitIsReportedOnce) {
		s.limit = 0
	}
	s.event(prm.EventSRQRQLimit)
}

func (s *srq) event(t prm.EventType) {
	e := s.d.newEQE(t)
	e.SetQPSRQN(s.num)
	s.d.asyncEvent(e)
}

// arm sets the limit. Inferred: a limit above what is posted is reported at once.
func (s *srq) arm(limit uint16) {
	s.limit = limit
	if limit != 0 {
		s.check = true
		s.refill()
	}
}

// recvUser is who scatters into a receive WQE: keys of an SRQ's WQEs are of its PD.
func (q *responder) recvUser() mkey.User {
	if q.srq != nil {
		return mkey.User{PD: q.srq.pd, QPN: q.num}
	}
	return q.user()
}

func cmdCreateRMP(d *Device, in, out []byte) prm.Status {
	m := prm.CreateRMPIn(in)
	c := m.RMPC()
	w := c.WQ()
	log, stride := w.LogWQSz(), w.LogWQStride()
	if c.State() != prm.RMPStateReady || c.BasicCyclicRcvWQE() || w.WQType() != prm.WQTypeLinkedList || w.WQSignature() ||
		!d.hasPD(w.PD()) || w.DBRUmemValid() || w.WQUmemValid() || w.DBRAddr()%prm.DBRecSize != 0 ||
		log > uint32(d.p.LogMaxSRQSz) || stride < 5 || 1<<stride > d.p.MaxWQESizeRQ || w.LWM() >= 1<<log && w.LWM() != 0 {
		return prm.StatusBadParam
	}
	r, ok := newRing(m.PAS(), w.LogWQPgSz(), w.PageOffset(), 1<<stride<<log)
	if !ok {
		return prm.StatusBadParam
	}
	n, ok := d.srqNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.gen.qps++
	s := &srq{d: d, num: n, arg: d.gen.qps<<24 | uint64(n), pd: w.PD(), ring: r, stride: 1 << stride, size: 1 << log,
		dbr: mem.PA(w.DBRAddr())}
	copy(s.ctx[:], c)
	hold := 1
	for 2*hold <= min(d.p.RQPrefetch, int(s.size)) {
		hold *= 2
	}
	s.index, s.ahead, s.land = make([]uint16, hold), make([]byte, hold<<stride), make([]byte, hold<<stride)
	d.srqs = put(d.srqs, n, s)
	d.pds[s.pd]++
	s.arm(uint16(w.LWM()))
	prm.CreateRMPOut(out).SetRMPN(n)
	return prm.StatusOK
}

func cmdModifyRMP(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyRMPIn(in)
	s := d.srqn(m.RMPN())
	switch {
	case s == nil, s.failed:
		return prm.StatusBadResState
	case m.RMPState() != prm.RMPStateReady || m.RMPC().State() != prm.RMPStateReady:
		return prm.StatusBadParam
	case m.SelectLWM() && m.RMPC().WQ().LWM() >= s.size && m.RMPC().WQ().LWM() != 0:
		return prm.StatusBadParam
	}
	if m.SelectLWM() {
		s.arm(uint16(m.RMPC().WQ().LWM()))
	}
	return prm.StatusOK
}

func cmdDestroyRMP(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyRMPIn(in).RMPN()
	s := d.srqn(n)
	if s == nil || s.refs > 0 {
		return prm.StatusBadResState
	}
	d.pds[s.pd]--
	d.srqs[n] = nil
	d.srqNums.release(n)
	return prm.StatusOK
}

func cmdQueryRMP(d *Device, in, out []byte) prm.Status {
	s := d.srqn(prm.QueryRMPIn(in).RMPN())
	if s == nil {
		return prm.StatusBadResState
	}
	c := prm.QueryRMPOut(out).RMPC()
	copy(c, s.ctx[:])
	c.WQ().SetLWM(uint32(s.limit))
	c.WQ().SetHWCounter(uint32(s.taken))
	c.WQ().SetSWCounter(uint32(s.posted))
	return prm.StatusOK
}
