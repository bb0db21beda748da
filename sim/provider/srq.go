package provider

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// SRQ is a shared receive queue, a basic one or one of XRC (4.3). Its ring is a linked list: head
// is the WQE to be posted next, tail the last that is linked; a WQE that completes is only marked
// free, and linked again when the list has run out.
type SRQ struct {
	verbs.UnimplementedSRQ
	ctx    *Context
	pd     *PD
	h      kernel.Handle
	srqn   uint32
	cookie uint64
	uidx   uint32 // of an XRC SRQ, whose completions name it; else 0
	ring   *ring
	db     *dbrec
	lock   lock
	line   cpu.Line // list, tables and record
	shift  uint
	max    int // WQEs of the ring, those of the wait queue included
	nwqes  int // of the list
	most   int // requests that the owner may have posted
	// The wait queue: WQEs that are not posted before others have been, the last that came at its
	// end. Empty: -1.
	waitHead, waitTail int
	maxGS              int
	head               int
	tail               int
	counter            uint16
	wrid               []uint64
	free               []uint64 // a set bit is a WQE that has completed
	asyncs             acks
}

// CreateSRQ is ibv_create_srq.
func (p *PD) CreateSRQ(vt verbs.Thread, a verbs.SRQInitAttr) (_ verbs.SRQ, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	if err := p.ctx.noQueues(); err != nil {
		return nil, err
	}
	s, err := p.makeSRQ(t, &a, kernel.SRQReq{})
	if err != nil {
		return nil, fmt.Errorf("create_srq: %w", err)
	}
	return s, nil
}

// makeSRQ makes an SRQ of the type that r names, with its objects.
func (p *PD) makeSRQ(t *Thread, a *verbs.SRQInitAttr, r kernel.SRQReq) (*SRQ, error) {
	s, err := p.newSRQ(a)
	if err != nil {
		return nil, err
	}
	if err := s.build(t, r); err != nil {
		s.release(t)
		return nil, err
	}
	return s, nil
}

// newSRQ checks the attributes and sizes the ring as mlx5_create_srq and
// mlx5_alloc_srq_buf do. The WQEs beyond the list are for those that a page fault
// makes unusable for a while.
func (p *PD) newSRQ(a *verbs.SRQInitAttr) (*SRQ, error) {
	c := p.ctx
	most := c.resp.MaxSRQRecvWR
	if a.MaxWR > most {
		return nil, fmt.Errorf("max_wr %d, above %d: %w", a.MaxWR, most, syscall.EINVAL)
	}
	if limit := c.resp.MaxRQDescSz / segSize; a.MaxSGE > limit {
		return nil, fmt.Errorf("max_sge %d, above %d: %w", a.MaxSGE, limit, syscall.EINVAL)
	}
	if c.env.signature {
		return nil, fmt.Errorf("a signature is asked for, and signatures are not modelled: %w", syscall.EOPNOTSUPP)
	}
	size := roundupPow2(max(32, prm.SRQNextSegmentSize+segSize*int(a.MaxSGE)))
	if size > int(c.resp.MaxRQDescSz) {
		return nil, fmt.Errorf("receive WQEs of %d bytes, above %d: %w", size, c.resp.MaxRQDescSz, syscall.EINVAL)
	}
	n := int(a.MaxWR)*2 + 1
	if n > int(most) {
		n = int(a.MaxWR) + 1
	}
	s := &SRQ{ctx: c, pd: p, shift: log2(size), max: roundupPow2(n), nwqes: roundupPow2(int(a.MaxWR) + 1),
		maxGS: (size - prm.SRQNextSegmentSize) / segSize}
	s.tail, s.most = s.nwqes-1, s.nwqes-1
	if s.waitHead, s.waitTail = s.nwqes, s.max-1; s.nwqes == s.max {
		s.waitHead, s.waitTail = -1, -1
	}
	s.wrid, s.free = make([]uint64, s.max), make([]uint64, (s.max+63)/64)
	s.lock = lock{single: c.env.SingleThreaded || p.td != nil, what: "a shared receive queue"}
	return s, nil
}

// build allocates the memory, links the list and makes the SRQ in the kernel.
func (s *SRQ) build(t *Thread, r kernel.SRQReq) error {
	c := s.ctx
	var err error
	if s.ring, err = (allocator{c.proc, s.pd.custom()}).newRing(t, s.max<<s.shift, resSRQ); err != nil {
		return err
	}
	s.link(0, s.tail)
	s.link(s.nwqes, s.max-1)
	if s.db, err = c.newDBRec(t, s.pd.custom()); err != nil {
		return err
	}
	s.cookie = c.newSRQCookie(s)
	r.PD, r.MaxWR, r.MaxSGE, r.Cookie = s.pd.h, uint32(s.max-1), uint32(s.maxGS), s.cookie
	r.BufAddr, r.DBAddr = uint64(s.ring.va), uint64(s.db.va)
	if r.Type == verbs.SRQXRC {
		s.uidx = c.uidx.take(s)
		r.UIDX = s.uidx
	}
	h, resp, err := c.u.CreateSRQ(t.caller, r)
	if err != nil {
		s.forget()
		return err
	}
	s.h, s.srqn = h, resp.SRQN
	s.pd.hold()
	return nil
}

// forget takes the SRQ out of the context's tables.
func (s *SRQ) forget() {
	s.ctx.srqs[s.cookie] = nil
	if s.uidx != 0 {
		s.ctx.uidx.put(s.uidx)
	}
}

func (s *SRQ) release(t *Thread) {
	s.ctx.freeDBRec(t, s.pd.custom(), s.db)
	allocator{s.ctx.proc, s.pd.custom()}.freeRing(t, s.ring, resSRQ)
}

// wqe is WQE i of the ring.
func (s *SRQ) wqe(i int) []byte { return s.ring.at(i << s.shift)[: 1<<s.shift : 1<<s.shift] }

// link chains WQEs first to last in the order of the ring.
func (s *SRQ) link(first, last int) {
	for i := first; i < last; i++ {
		prm.SRQNextSegment(s.wqe(i)).SetNextWQEIndex(uint16(i + 1))
	}
}

// Num is ibv_get_srq_num: libmlx5 answers for a basic SRQ, too.
func (s *SRQ) Num(vt verbs.Thread) (uint32, error) {
	if s.ctx.enter(vt).breaks(rule.SRQNumbersHave24Bits) {
		return s.srqn | 1<<24, nil
	}
	return s.srqn, nil
}

// Caps are what creation granted.
func (s *SRQ) Caps() verbs.SRQAttr {
	return verbs.SRQAttr{MaxWR: uint32(s.most), MaxSGE: uint32(s.maxGS)}
}

// PostRecv is ibv_post_srq_recv: the record counts, and no register is written.
func (s *SRQ) PostRecv(vt verbs.Thread, wrs []verbs.RecvWR) (bad int, err error) {
	t := Of(vt)
	p := s.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	cost := p.Bookkeeping
	for i := range wrs {
		cost += p.BuildRecv + sim.Time(1+len(wrs[i].SGEs))*p.BuildSegment
	}
	left := s.lock.acquire(t, p, cost)
	left += t.Core.Claim(t.P, &s.line)
	n := 0
	for bad = range wrs {
		if err = s.put(&wrs[bad]); err != nil {
			err = fmt.Errorf("post_srq_recv: request %d: %w", bad, err)
			t.answers(&err)
			break
		}
		n++
	}
	if err == nil {
		bad = len(wrs)
	}
	if n > 0 {
		s.ctx.proc.C.RecvCalls++
		s.ctx.proc.C.RecvWRs += uint64(n)
		s.counter += uint16(n)
		prm.SRQDBRec(s.db.b).SetCount(s.counter)
		left += p.DoorbellRecord
		t.Core.DMABarrier(t.P)
	}
	t.Core.Run(t.P, left)
	s.lock.release(t)
	t.span("post_srq_recv", start, uint64(s.srqn))
	return bad, err
}

// put writes one request into the WQE at the head of the list. Unlike in a QP's queue,
// entries of length 0 are not skipped.
func (s *SRQ) put(w *verbs.RecvWR) error {
	if len(w.SGEs) > s.maxGS {
		return fmt.Errorf("%d SGEs, limit %d: %w", len(w.SGEs), s.maxGS, syscall.EINVAL)
	}
	if s.head == s.tail && !s.extend() {
		return fmt.Errorf("the queue holds %d: %w", s.most, syscall.ENOMEM)
	}
	wqe := s.wqe(s.head)
	for i := range w.SGEs {
		g := &w.SGEs[i]
		prm.DataSegment(wqe[(1+i)*segSize:]).Set(g.Length, g.LKey, g.Addr)
	}
	if n := len(w.SGEs); n < s.maxGS {
		prm.DataSegment(wqe[(1+n)*segSize:]).Set(0, prm.InvalidLKey, 0)
	}
	s.wrid[s.head] = w.ID
	s.head = int(prm.SRQNextSegment(wqe).NextWQEIndex())
	return nil
}

// extend links free WQEs behind the tail: the one that follows it in the ring, or else
// the first run of free ones after the head, or before it.
func (s *SRQ) extend() bool {
	first := (s.tail + 1) % s.nwqes
	last := first
	if !s.isFree(first) {
		end := s.nwqes
		if first = s.firstFree(s.head+1, end); first < 0 {
			if end = s.head; s.firstFree(0, end) < 0 {
				return false
			}
			first = s.firstFree(0, end)
		}
		for last = first; last+1 < end && s.isFree(last+1); last++ {
		}
		s.link(first, last)
	}
	for i := first; i <= last; i++ {
		s.free[i/64] &^= 1 << (i % 64)
	}
	prm.SRQNextSegment(s.wqe(s.tail)).SetNextWQEIndex(uint16(first))
	s.tail = last
	return true
}

func (s *SRQ) isFree(i int) bool { return s.free[i/64]>>(i%64)&1 != 0 }

// firstFree is the first free WQE of from..end-1, or -1.
func (s *SRQ) firstFree(from, end int) int {
	for i := from; i < end; i++ {
		if w := s.free[i/64] >> (i % 64); w == 0 {
			i |= 63
		} else if i += bits.TrailingZeros64(w); i < end {
			return i
		}
	}
	return -1
}

// retire marks a WQE free (mlx5_free_srq_wqe) and returns its request's ID.
func (s *SRQ) retire(t *Thread, idx uint16) uint64 {
	left := s.lock.acquire(t, s.ctx.proc.Params, 0)
	t.unspent += left + t.Core.Claim(t.P, &s.line)
	i := int(idx) & (s.max - 1)
	s.free[i/64] |= 1 << (i % 64)
	id := s.wrid[i]
	s.lock.release(t)
	return id
}

// repost posts the request of a WQE again whose page was absent (mlx5_complete_odp_fault). The
// device may still look at that WQE, so another one takes the request, and the WQE itself waits
// until as many others as wait have been posted.
func (s *SRQ) repost(t *Thread, idx uint16) {
	left := s.lock.acquire(t, s.ctx.proc.Params, 0)
	t.unspent += left + t.Core.Claim(t.P, &s.line)
	for s.firstFree(0, s.nwqes) >= 0 && s.extend() { // all that is free is linked before the WQEs that waited
	}
	s.nwqes = s.max
	i := int(idx) & (s.max - 1)
	next := i
	if s.waitHead >= 0 {
		prm.SRQNextSegment(s.wqe(s.waitTail)).SetNextWQEIndex(uint16(i))
		next, s.waitHead, s.waitTail = s.waitHead, int(prm.SRQNextSegment(s.wqe(s.waitHead)).NextWQEIndex()), i
	}
	prm.SRQNextSegment(s.wqe(s.tail)).SetNextWQEIndex(uint16(next))
	s.tail = next
	to := s.wqe(s.head)
	copy(to[prm.SRQNextSegmentSize:], s.wqe(i)[prm.SRQNextSegmentSize:])
	s.wrid[s.head] = s.wrid[i]
	s.head = int(prm.SRQNextSegment(to).NextWQEIndex())
	s.counter++
	prm.SRQDBRec(s.db.b).SetCount(s.counter)
	t.unspent += s.ctx.proc.Params.DoorbellRecord
	t.Core.DMABarrier(t.P)
	s.lock.release(t)
}

// Modify is ibv_modify_srq.
func (s *SRQ) Modify(vt verbs.Thread, a verbs.SRQAttr, mask verbs.SRQAttrMask) (err error) {
	defer Of(vt).answers(&err)
	t := s.ctx.enter(vt)
	if err := s.ctx.u.ModifySRQ(t.caller, s.h, a, mask); err != nil {
		return fmt.Errorf("modify_srq: %w", err)
	}
	return nil
}

// Query is ibv_query_srq. Its max_wr is the kernel's, which counts the wait queue.
func (s *SRQ) Query(vt verbs.Thread) (verbs.SRQAttr, error) {
	t := s.ctx.enter(vt)
	a, err := s.ctx.u.QuerySRQ(t.caller, s.h)
	if err != nil {
		return verbs.SRQAttr{}, fmt.Errorf("query_srq: %w", err)
	}
	return a, nil
}

// Destroy is ibv_destroy_srq.
func (s *SRQ) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := s.ctx.enter(vt)
	async, err := s.ctx.u.DestroySRQ(t.caller, s.h)
	if err != nil {
		return fmt.Errorf("destroy_srq: %w", err)
	}
	s.asyncs.wait(t, async, "an SRQ")
	s.forget()
	s.pd.drop()
	s.release(t)
	return nil
}

func (c *Context) newSRQCookie(s *SRQ) uint64 {
	for i, x := range c.srqs {
		if x == nil {
			c.srqs[i] = s
			return uint64(i)
		}
	}
	c.srqs = append(c.srqs, s)
	return uint64(len(c.srqs) - 1)
}

func (c *Context) srqOf(cookie uint64) *SRQ {
	if cookie >= uint64(len(c.srqs)) {
		return nil
	}
	s, _ := c.srqs[cookie].(*SRQ)
	return s
}

// LockStats counts the lock of the queue.
func (s *SRQ) LockStats() verbs.LockStats {
	return verbs.LockStats{RQ: s.lock.taken, Waits: s.lock.waits, WaitTime: Duration(s.lock.waited)}
}
