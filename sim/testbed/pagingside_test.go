package testbed

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// gap is a time in which the device cannot use pages of a side, so that a request of them may fail.
type gap struct {
	first, last int // pages
	explicit    bool
	from, to    time.Duration
}

// pagingSide is one process of the programs, with its arena and the regions on it.
type pagingSide struct {
	w    *pagingWorld
	side int
	proc verbs.Process

	ctx      verbs.Context
	pd       verbs.PD
	cq       verbs.CQ
	gid      verbs.GIDEntry
	qps      [2]verbs.QP // the second with an SRQ, on the peer's side
	srq      verbs.SRQ
	explicit verbs.MR
	implicit verbs.MR
	mirror   verbs.Buffer // pinned
	pinned   verbs.MR

	blocks   [arenaBlocks]pagingBlock
	anchors  [2]verbs.PagedBuffer
	anchored bool
	ballast  verbs.PagedBuffer
	round    uint64 // of the ballast's bytes

	h        history
	past     []pastObject
	gaps     []gap
	lostKeys uint64  // faults of keys that were no more, before the program
	others   *worker // who changes memory while requests are under way
}

// pagingBlock is a mapping of the arena.
type pagingBlock struct {
	verbs.PagedBuffer
	how    backing
	base   uint64 // salt of the bytes of a private mapping's file
	object verbs.MemObject
}

const (
	arenaAddr    = 64<<30 - 3*4096
	ballastPages = 24
	residentMost = 36 // pages of the host
)

// open makes what the programs of a testbed share.
func (s *pagingSide) open(t verbs.Thread) {
	x := &rig{TB: s.w.TB, bed: s.w.bed, t: t}
	s.ctx = x.open(t)
	s.gid = x.gid(t, s.ctx)
	var err error
	s.pd, err = s.ctx.AllocPD(t)
	x.ok("pd", err)
	s.cq, err = s.ctx.CreateCQ(t, verbs.CQAttr{CQE: 255})
	x.ok("cq", err)
	s.mirror, err = s.proc.Map(t, 2*arenaBytes, verbs.MapOptions{})
	x.ok("map", err)
	s.pinned, err = s.pd.RegMR(t, s.mirror.Addr(), s.mirror.Len(), everything)
	x.ok("mr", err)
	for b := range s.blocks {
		s.mapBlock(t, upset{block: b})
	}
	s.note(t, span{0, arenaWords}, 0)
	lazily := func(at uint64, pages uint64) verbs.PagedBuffer {
		m, err := s.proc.Map(t, pages*4096, verbs.MapOptions{Lazy: true, At: at})
		x.ok("map", err)
		return m.(verbs.PagedBuffer)
	}
	s.ballast = lazily(0, ballastPages)
	s.anchors = [2]verbs.PagedBuffer{lazily(arenaAddr-16*4096, 1), lazily(arenaAddr+16*4096, 1)}
	s.register(t)
	if s.w.whole {
		s.implicit, err = s.pd.RegMR(t, 0, math.MaxUint64, everything|verbs.AccessOnDemand)
		x.ok("mr", err)
	}
	for i := range s.qps {
		s.makeQP(t, i)
	}
}

// anchor has the device have a page of each child of the implicit region, outside the arena: to
// make a child is dear.
func (s *pagingSide) anchor(t verbs.Thread) {
	s.anchored = true
	for _, a := range s.anchors {
		sge := verbs.SGE{Addr: a.Addr(), Length: 4096, LKey: s.implicit.LKey()}
		s.w.must("prefetch", s.pd.AdviseMR(t, verbs.AdvisePrefetchWrite, verbs.AdviseFlush, []verbs.SGE{sge}))
	}
}

// register makes the explicit region.
func (s *pagingSide) register(t verbs.Thread) {
	var err error
	s.explicit, err = s.pd.RegMR(t, arenaAddr, arenaBytes, everything|verbs.AccessOnDemand)
	s.w.must("register", err)
}

// makeQP makes a QP, and on the peer's side the SRQ of the second.
func (s *pagingSide) makeQP(t verbs.Thread, i int) {
	a := verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 2}}
	var err error
	if i == 1 && s.side == 1 {
		s.srq, err = s.pd.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: 16, MaxSGE: 2})
		s.w.must("create the SRQ", err)
		a.SRQ = s.srq
	}
	s.qps[i], err = s.pd.CreateQP(t, a)
	s.w.must("create the QP", err)
}

// dropQP destroys a QP, if it is there, with what is in its CQ.
func (s *pagingSide) dropQP(t verbs.Thread, i int) {
	if s.qps[i] != nil {
		s.w.must("destroy the QP", s.qps[i].Destroy(t))
	}
	if s.qps[i] = nil; i == 1 && s.side == 1 {
		s.w.must("destroy the SRQ", s.srq.Destroy(t))
	}
	var wc [16]verbs.WC
	for n := 1; n > 0; {
		var err error
		n, err = s.cq.Poll(t, wc[:])
		s.w.must("poll", err)
	}
}

// connect takes a QP to RTS.
func (s *pagingSide) connect(t verbs.Thread, i int, psn uint32) {
	peer, q := s.w.sides[1-s.side], s.qps[i]
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic}
	s.w.must("INIT", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
	a = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: verbs.MTU4096, DestQPN: peer.qps[i].QPN(), RQPSN: psn, MaxDestRdAtomic: 16, MinRNRTimer: 10,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: peer.gid.GID, SGIDIndex: uint8(s.gid.Index), HopLimit: 64}}}
	s.w.must("RTR", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|
		verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
	a = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: psn, Timeout: 10, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 16}
	s.w.must("RTS", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|
		verbs.QPMaskRNRRetry|verbs.QPMaskMaxQPRdAtomic))
}

// kernel are the driver's counters.
func (s *pagingSide) kernel() kernel.PagingCounters {
	return s.w.bed.hosts[s.side].devices[0].kern.Counters().Paging
}

// key is the region that a program uses.
func (s *pagingSide) key(implicit bool) verbs.MR {
	if implicit {
		return s.implicit
	}
	return s.explicit
}

// note enters what the process does now to words.
func (s *pagingSide) note(t verbs.Thread, at span, salt uint64) time.Duration {
	provider.Of(t).P.Sync()
	s.h = append(s.h, change{t.Now(), at, salt})
	return t.Now()
}

// begin makes the arena what a program starts with.
func (s *pagingSide) begin(t verbs.Thread, p *pagingProgram) {
	s.gaps, s.lostKeys = s.gaps[:0], s.kernel().UnknownKeys
	if s.w.whole && !s.anchored {
		s.anchor(t)
	}
	for _, u := range p.start[s.side] {
		if u.how == backKept {
			continue
		}
		s.mapBlock(t, u)
		if u.filled && u.how == backAnonymous {
			s.write(t, span{u.block * blockWords, blockWords})
		}
	}
}

// mapBlock maps something in the place of a block.
func (s *pagingSide) mapBlock(t verbs.Thread, u upset) {
	b := &s.blocks[u.block]
	o := verbs.MapOptions{Lazy: true, At: uint64(arenaAddr + u.block*blockWords*8)}
	before := b.object
	words, salt := span{u.block * blockWords, blockWords}, uint64(0)
	if u.how != backAnonymous {
		var err error
		make := s.proc.(verbs.MemObjects).NewShared
		if u.how != backShared {
			make = s.proc.(verbs.MemObjects).NewFile
		}
		o.Object, err = make(t, blockWords*8)
		s.w.must("make an object", err)
		o.Private = u.how == backPrivate
		if u.filled {
			salt = s.w.salt()
			data := make8(blockWords)
			fill(data, words.at, salt)
			_, err = o.Object.WriteAt(t, data, 0)
			s.w.must("write an object", err)
		}
	}
	s.note(t, words, salt)
	m, err := s.proc.Map(t, blockWords*8, o)
	s.w.must("map", err)
	b.PagedBuffer, b.how, b.base, b.object = m.(verbs.PagedBuffer), u.how, salt, o.Object
	s.leave(t, before)
}

func make8(words int) []byte { return make([]byte, 8*words) }

// pastObject is an object that a block has shown, with its bytes when something else had taken its
// place.
type pastObject struct {
	verbs.MemObject
	bytes []byte
}

// leave notes the bytes of an object that the arena does not show any more.
func (s *pagingSide) leave(t verbs.Thread, o verbs.MemObject) {
	if o != nil {
		s.past = append(s.past, pastObject{o, s.objectBytes(t, o)})
	}
}

func (s *pagingSide) objectBytes(t verbs.Thread, o verbs.MemObject) []byte {
	b := make8(blockWords)
	_, err := o.ReadAt(t, b, 0)
	s.w.must("read an object", err)
	return b
}

// forget closes the objects that the arena has shown. Nothing has reached them since.
func (s *pagingSide) forget(t verbs.Thread) {
	for _, o := range s.past {
		if !bytes.Equal(s.objectBytes(t, o.MemObject), o.bytes) {
			s.w.fail("side %d: an object has changed after it was unmapped", s.side)
		}
		s.w.must("close", o.Close(t))
	}
	s.past = s.past[:0]
}

// write has the process write words that lie in one block.
func (s *pagingSide) write(t verbs.Thread, at span) {
	salt := s.w.salt()
	data := make8(at.n)
	fill(data, at.at, salt)
	s.note(t, at, salt)
	_, err := s.blocks[at.at/blockWords].WriteAt(t, data, int64(at.at%blockWords*8))
	s.w.must("write memory", err)
}

// press writes to more pages than the host has left, and finds there what it has written before.
func (s *pagingSide) press(t verbs.Thread) {
	s.round++
	for i := range ballastPages {
		var got [8]byte
		_, err := s.ballast.ReadAt(t, got[:], int64(i*4096))
		s.w.must("read memory", err)
		want := bytes.Repeat([]byte{byte(s.round - 1)}, 8)
		if !bytes.Equal(got[:], want) {
			s.w.fail("memory without a region has % x, not % x", got, want)
		}
		_, err = s.ballast.WriteAt(t, bytes.Repeat([]byte{byte(s.round)}, 8), int64(i*4096))
		s.w.must("write memory", err)
	}
}

// contents are the arena's bytes as the process sees them.
func (s *pagingSide) contents(t verbs.Thread) []byte {
	all := make8(arenaWords)
	for b := range s.blocks {
		_, err := s.blocks[b].ReadAt(t, all[b*blockWords*8:(b+1)*blockWords*8], 0)
		s.w.must("read memory", err)
	}
	return all
}

// worker is a thread that does one job after another for another one.
type worker struct {
	th      *provider.Thread
	boss    *provider.Thread
	waiting bool // the boss
	job     func(t verbs.Thread)
}

func newWorker(t verbs.Thread, p verbs.Process, name string) *worker {
	w := &worker{}
	w.th = p.Start(t, name, -1, func(t verbs.Thread) {
		th := provider.Of(t)
		for {
			for w.job == nil {
				th.ParkUntil("a job", sim.Never)
			}
			w.job(t)
			th.P.Sync()
			if w.job = nil; w.waiting {
				w.boss.Wake(th.P.Now())
			}
		}
	}).(*provider.Thread)
	return w
}

// start has the worker do a job from now on.
func (w *worker) start(t verbs.Thread, job func(t verbs.Thread)) {
	w.boss = provider.Of(t)
	w.boss.P.Sync()
	w.job = job
	w.th.Wake(w.boss.P.Now())
}

// wait waits for the end of its job.
func (w *worker) wait(t verbs.Thread) {
	th := provider.Of(t)
	th.P.Sync()
	for w.waiting = true; w.job != nil; {
		th.ParkUntil(fmt.Sprint("the job of ", w.th.Name()), sim.Never)
	}
	w.waiting = false
}

// do has the worker do a job now.
func (w *worker) do(t verbs.Thread, job func(t verbs.Thread)) {
	w.start(t, job)
	w.wait(t)
}
