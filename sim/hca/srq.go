package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// sharedQueues are the SRQs of a device.
type sharedQueues struct {
	*core
	events    *eventQueues
	receivers receivers
	srqs      []*srq
	numbers   numbers
	made      uint64 // as that of completionQueues
}

// receivers are the QPs that take from SRQs, by their event words, as an SRQ sees them.
type receivers interface {
	// resumeRecv has a QP that waits for a receive WQE of s look again.
	resumeRecv(qp uint64, s *srq)
	// lookedInVain says that nothing was posted when the QP had begun to wait.
	lookedInVain(qp uint64, s *srq)
}

// newSharedQueues makes an empty table. made is how many SRQs there were before.
func newSharedQueues(k *core, events *eventQueues, r receivers, made uint64) sharedQueues {
	return sharedQueues{core: k, events: events, receivers: r, made: made, numbers: numbers{next: 1, limit: 1 << k.p.LogMaxSRQ}}
}

// add puts in an SRQ that has its number and its ring.
func (v *sharedQueues) add(s *srq) {
	v.made++
	s.core, s.all, s.arg = v.core, v, v.made<<24|uint64(s.num)
	hold := 1
	for 2*hold <= min(v.p.RQPrefetch, int(s.size)) {
		hold *= 2
	}
	n := hold * int(s.stride)
	s.index, s.ahead, s.land = make([]uint16, hold), make([]byte, n), make([]byte, n)
	v.srqs = put(v.srqs, s.num, s)
}

func (v *sharedQueues) remove(s *srq) {
	v.srqs[s.num] = nil
	v.numbers.release(s.num)
}

// at is the SRQ with a number, or nil.
func (v *sharedQueues) at(n uint32) *srq {
	if uint64(n) >= uint64(len(v.srqs)) {
		return nil
	}
	return v.srqs[n]
}

// xrc is the XRC SRQ with a number, or nil.
func (v *sharedQueues) xrc(n uint32) *srq {
	if s := v.at(n); s != nil && s.xrc != nil {
		return s
	}
	return nil
}

// named is the SRQ of an event word, or nil when it is gone.
func (v *sharedQueues) named(arg uint64) *srq {
	s := v.at(uint32(arg & queueIndexMask))
	if s == nil || s.arg != arg {
		return nil
	}
	return s
}

func (v *sharedQueues) onRecord(arg uint64) {
	if s := v.named(arg); s != nil {
		s.onRecord()
	}
}

func (v *sharedQueues) onFetch(x uint64) {
	if s := v.named(x & (1<<fetchShift - 1)); s != nil {
		s.onFetch(int(x >> fetchShift))
	}
}

// srq is a shared receive queue, an RMP or an XRC SRQ, whose WQEs form a linked list. The
// device follows next_wqe_index from WQE 0 on; the doorbell record counts how many
// were posted. Counters are modulo 2^16. Like an RQ it has no doorbell: the record is
// read when a packet finds no WQE at hand, or to see whether the limit is reached.
type srq struct {
	*core
	all    *sharedQueues
	num    uint32
	arg    uint64             // generation << 24 | number: the event word
	ctx    [prm.RMPCSize]byte // of an RMP
	xrc    *xrcSRQ            // nil: it is an RMP
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

// xrcSRQ is what an XRC SRQ has beside its list: the domain whose QPs may use it, and the CQ of
// what they receive.
type xrcSRQ struct {
	ctx  [prm.XRCSRQCSize]byte
	xrcd uint32
	cq   *cq
}

// exists says whether an SRQ has not been destroyed.
func (s *srq) exists() bool { return s.all.at(s.num) == s }

// cqeIndex is what the completions of an XRC SRQ carry to find it by: version 1 its user index,
// version 0 its number. So does version 1 for a queue whose context asks for it by its index
// (mlx5_ib srq.c, MLX5_IB_DEFAULT_UIDX).
func (s *srq) cqeIndex() uint32 {
	c := prm.XRCSRQC(s.xrc.ctx[:])
	if s.p.CQEVersion == 0 || c.UserIndexEqualXRCSRQN() || c.UserIndex() == prm.NoUserIndex {
		return s.num
	}
	return c.UserIndex()
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

// want has a QP wait for a WQE. It reports false when none will come.
func (s *srq) want(qp uint64) bool {
	if s.failed {
		return false
	}
	s.waiters = append(s.waiters, qp)
	s.refill()
	return true
}

// refill reads WQEs ahead, or the record when all that it named are here or the limit
// asks for it.
func (s *srq) refill() {
	if s.reading || s.failed {
		return
	}
	if s.posted == s.got || s.check {
		s.reading, s.asked = true, len(s.waiters)
		s.checking, s.check = s.check, false
		s.c.RecvRecordReads++
		s.bus.ReadDMA(s.dbr, s.rec[:], s.h.srqRecord, s.arg)
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
	s.c.RecvWQEFetches++
	s.bus.ReadDMA(pa, s.land[:n*stride], s.h.srqFetch, s.arg|uint64(n)<<fetchShift)
}

func (s *srq) onRecord() {
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
		s.all.receivers.lookedInVain(w, s)
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
		if s.breaks(rule.SRQFollowsItsList) {
			next = uint16(uint32(s.next+1) % s.size)
		}
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
		s.all.receivers.resumeRecv(w, s)
	}
	s.spare = list[:0]
}

// fail ends an SRQ whose list leads out of its ring (inferred: the catastrophic error
// of the event table). What was read can still be used.
func (s *srq) fail() {
	s.failed = true
	if s.xrc != nil {
		prm.XRCSRQC(s.xrc.ctx[:]).SetState(prm.XRCSRQError)
	} else {
		prm.RMPC(s.ctx[:]).SetState(prm.RMPStateErr)
	}
	s.event(prm.EventSRQCatasError)
}

// checkLimit reports once that fewer WQEs are posted than the limit, and disarms.
func (s *srq) checkLimit() {
	if s.limit == 0 || s.posted-s.taken >= s.limit {
		return
	}
	if !s.breaks(rule.LimitIsReportedOnce) {
		s.limit = 0
	}
	s.event(prm.EventSRQRQLimit)
}

func (s *srq) event(t prm.EventType) {
	e := s.all.events.event(t)
	e.SetQPSRQN(s.num)
	s.all.events.report(e)
}

// arm sets the limit. Inferred: a limit above what is posted is reported at once.
func (s *srq) arm(limit uint16) {
	s.limit = limit
	if limit != 0 {
		s.check = true
		s.refill()
	}
}
