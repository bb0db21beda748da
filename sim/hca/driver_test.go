package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca/dcqcn"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// The kit below is a driver that lays real bytes into memory and rings doorbells.

func testParams() Params {
	ns := sim.Nanosecond
	return Params{
		LogMaxQP: 18, LogMaxQPSize: 15, LogMaxCQ: 18, LogMaxCQSize: 22, LogMaxEQ: 7, LogMaxEQSize: 22,
		LogMaxMkey: 20, LogMaxPD: 16, LogMaxXRCD: 8, LogMaxMsg: 30, LogMaxRAReq: 4, LogMaxRARes: 4, LogMaxKLMList: 16, LogMaxSRQ: 10, LogMaxSRQSz: 12, LogMaxMCG: 10, MaxQPMCG: 6, PortCapMask: 0x2651e848,
		MaxWQESizeSQ: 1024, MaxWQESizeRQ: 512, MaxQCounters: 128, GIDTableSize: 16, LocalCAAckDelay: 16, Vectors: 8,
		BFRegSize: 512, BARSize: 1 << 24, DCT: true, DCTurn: 900 * ns, Atomics: true, ScatterToCQE: true, CQECompMax: 64, CQECompTimeout: 2 * sim.Microsecond, CQEVersion: 1, CoreClockKHz: 156250,
		PUs: 16, PUService: 100 * ns, PUPacket: 20 * ns, RequesterLatency: 140 * ns, IssueInterval: 5 * ns,
		WQEBuffer: 64, FetchLimit: 32, TxBuffer: 32 << 10, Quantum: 16,
		ResponderLatency: 140 * ns, AckHandling: 50 * ns, ReadHandling: 50 * ns, RxInterval: 5 * ns, RxAckInterval: 3 * ns, ReadInterval: 16 * ns,
		RQPrefetch: 8, AckDelay: 20 * ns, AtomicService: 450 * ns, AtomicSlots: 4096,
		NackGenerate: [2]sim.Time{1200 * ns, 2000 * ns}, NackReact: [2]sim.Time{3000 * ns, 2200 * ns},
		AckReqPackets: 16, RepeatWindow: 64, RepeatTimeout: 100 * sim.Microsecond, FlushPoll: 10 * sim.Microsecond,
		QPCCache: 1024, MPTCache: 1024, MTTCache: 1024, QPCMiss: 600 * ns, MPTMiss: 900 * ns, MTTMiss: 450 * ns, QPCWays: 1, MPTWays: 1, MTTWays: 4, QPCOverlap: 6, MPTOverlap: 6, MTTOverlap: 6,
		WireRate: 100e9, WireOverhead: 24, LoopbackLatency: 100 * ns,
		Congestion: dcqcn.Params{
			MinTimeBetweenCNPs: 4 * sim.Microsecond, CNPDSCP: 48, ClampAfterTimeInc: true, RPGTimeReset: 300 * sim.Microsecond, RPGByteReset: 2 << 20,
			RPGThreshold: 1, RPGMinRate: 1e6, RPGAIRate: 5e6, RPGHAIRate: 50e6, RPGGd: 11, RPGMinDecFac: 50, DCETCPG: 1019, DCETCPRTT: sim.Microsecond,
			RateReducePeriod: 4 * sim.Microsecond, InitialAlpha: 1023,
		},
		UAR: uar.Params{BFBusy: 10 * ns, BFTimeout: sim.Microsecond, BFLines: 4},
		Commands: CommandTimes{Base: sim.Microsecond, CreateQP: 30 * sim.Microsecond, ModifyQP: 10 * sim.Microsecond, DestroyQP: 10 * sim.Microsecond,
			CreateCQ: 10 * sim.Microsecond, CreateMkey: 10 * sim.Microsecond, CreateMkeyEntry: 10 * ns, DestroyMkey: 5 * sim.Microsecond},
	}
}

func linkParams() pcie.Params {
	ns := sim.Nanosecond
	return pcie.Params{Bandwidth: 113_700_000_000, PostedLatency: 120 * ns, ReadLatency: 400 * ns, MPS: 256, MRRS: 512, RCB: 128,
		WriteHeader: 26, ReadHeader: 26, CplHeader: 22, ReadsInFlight: 64, MemoryLatency: 50 * ns}
}

// host is a host with one device and a minimal driver.
type host struct {
	t    testing.TB
	e    *sim.Engine
	m    *mem.Memory
	l    *pcie.Link
	d    *Device
	id   Identity
	uar  uint32
	pd   uint32
	eqn  uint32 // completions
	aeqn uint32 // asynchronous events
	ceq  *hostEQ
	aeq  *hostEQ
	ints [8]int
	gid  roce.GID
	qset uint32
}

type hostEQ struct {
	pa   mem.PA
	size uint32
	ci   uint32
}

const tUARs = 4

func newHost(t testing.TB, e *sim.Engine, p Params, n byte) *host {
	return newHostOf(t, e, p, Identity{GUID: 0x1000 + uint64(n), MAC: [6]byte{2, 0, 0, 0, 0, n}, IPv4: [4]byte{10, 0, 0, n}, BoardID: "TEST0000000001"})
}

func newHostOf(t testing.TB, e *sim.Engine, p Params, id Identity) *host {
	h := &host{t: t, e: e, m: mem.New(1 << 30), id: id}
	h.l = pcie.NewLink(e, h.m, linkParams())
	h.d = New(e, "mlx5_0", h.l, p, h.id)
	h.l.Attach(h.d, func(v int) { h.ints[v]++ })
	h.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	h.cmd(prm.NewIn(prm.OpInitHCA, 0))
	h.uar = prm.AllocUAROut(h.cmd(prm.NewIn(prm.OpAllocUAR, 0))).UAR()
	for range tUARs - 1 {
		h.cmd(prm.NewIn(prm.OpAllocUAR, 0))
	}
	h.pd = prm.AllocPDOut(h.cmd(prm.NewIn(prm.OpAllocPD, 0))).PD()
	h.qset = prm.AllocQCounterOut(h.cmd(prm.NewIn(prm.OpAllocQCounter, 0))).CounterSetID()
	h.ceq, h.eqn = h.newEQ(0, 0)
	h.aeq, h.aeqn = h.newEQ(1, 1<<prm.EventCommEst|1<<prm.EventSQDrained|1<<prm.EventCQError|1<<prm.EventWQCatasError|1<<prm.EventWQInvalReqError|1<<prm.EventWQAccessError)
	if p.LinkLayer == InfiniBand { // a subnet manager gives the port its addresses
		return h
	}
	h.gid = roce.GIDFromIPv4(h.id.IPv4)
	in := prm.NewIn(prm.OpSetRoCEAddress, 0)
	a := prm.SetRoCEAddressIn(in).Addr()
	copy(a.SourceL3(), h.gid[:])
	copy(a.MAC(), h.id.MAC[:])
	a.SetRoCEVersion(prm.RoCEVersion2)
	h.cmd(in)
	return h
}

func (h *host) try(in []byte) ([]byte, prm.Status) {
	out := prm.NewOut(prm.CmdIn(in).Opcode(), 0)
	if h.d.Command(in, out) <= 0 {
		h.t.Fatalf("%v took no time", prm.CmdIn(in).Opcode())
	}
	return out, prm.CmdOut(out).Status()
}

func (h *host) cmd(in []byte) []byte {
	h.t.Helper()
	out, st := h.try(in)
	if st != prm.StatusOK {
		h.t.Fatalf("%v: status %v", prm.CmdIn(in).Opcode(), st)
	}
	return out
}

func (h *host) alloc(n uint64) mem.PA {
	pa, err := h.m.Alloc(max(n, 4096), 4096)
	if err != nil {
		h.t.Fatal(err)
	}
	return pa
}

func (h *host) newEQ(vector uint32, mask uint64) (*hostEQ, uint32) {
	const size = 128
	q := &hostEQ{pa: h.alloc(size * prm.EQESize), size: size}
	for i := range uint64(size) {
		h.m.Write(q.pa+mem.PA(i*prm.EQESize+prm.EQESize-1), []byte{prm.EQEOwnerInit})
	}
	in := prm.NewIn(prm.OpCreateEQ, 2*8)
	m := prm.CreateEQIn(in)
	m.EQC().SetLogEQSize(7)
	m.EQC().SetUARPage(h.uar)
	m.EQC().SetIntr(vector)
	m.SetEventBitmask(0, mask)
	m.PAS().Set(0, uint64(q.pa))
	m.PAS().Set(1, uint64(q.pa)+4096)
	n := prm.CreateEQOut(h.cmd(in)).EQNumber()
	h.armEQ(q, n)
	return q, n
}

func (h *host) armEQ(q *hostEQ, n uint32) {
	db := make(prm.EQDoorbell, prm.EQDoorbellSize)
	db.Set(uint8(n), q.ci)
	h.d.MMIOWrite(uint64(h.uar)*4096+prm.UAREQArm, db)
}

func (h *host) nextEQE(q *hostEQ) prm.EQE {
	b := make([]byte, prm.EQESize)
	h.m.Read(q.pa+mem.PA(q.ci&(q.size-1)*prm.EQESize), b)
	if !prm.EQE(b).Ready(q.ci, q.size) {
		return nil
	}
	q.ci++
	return b
}

// tCQ is a completion queue of the driver.
type tCQ struct {
	h    *host
	n    uint32
	pa   mem.PA
	size uint32
	cqe  int
	ci   uint32
	db   mem.PA
	sn   uint32
}

func (h *host) newCQ(log uint32, cqe int) *tCQ { return h.newCQOf(log, cqe, func(prm.CQC) {}) }

func (h *host) newCQOf(log uint32, cqe int, edit func(c prm.CQC)) *tCQ {
	size := uint32(1) << log
	q := &tCQ{h: h, size: size, cqe: cqe, db: h.alloc(8)}
	n := uint64(size) * uint64(cqe)
	q.pa = h.alloc(n)
	for i := range uint64(size) {
		h.m.Write(q.pa+mem.PA((i+1)*uint64(cqe)-1), []byte{prm.CQEOpOwnInit})
	}
	pages := (n + 4095) / 4096
	in := prm.NewIn(prm.OpCreateCQ, int(pages)*8)
	m := prm.CreateCQIn(in)
	c := m.CQC()
	c.SetLogCQSize(log)
	c.SetUARPage(h.uar)
	c.SetEQN(h.eqn)
	c.SetDBRAddr(uint64(q.db))
	if cqe == 128 {
		c.SetCQESz(prm.CQESz128)
	}
	for i := range pages {
		m.PAS().Set(int(i), uint64(q.pa)+i*4096)
	}
	edit(c)
	q.n = prm.CreateCQOut(h.cmd(in)).CQN()
	return q
}

// poll takes the next entry, or returns nil.
func (q *tCQ) poll() prm.CQE64 {
	b := make([]byte, q.cqe)
	q.h.m.Read(q.pa+mem.PA(q.ci&(q.size-1))*mem.PA(q.cqe), b)
	e := prm.CQE64(b[q.cqe-64:])
	if !e.Ready(q.ci, q.size) {
		return nil
	}
	q.ci++
	var db [8]byte
	q.h.m.Read(q.db, db[:])
	prm.CQDBRec(db[:]).SetCI(q.ci)
	q.h.m.Write(q.db, db[:])
	return e
}

func (q *tCQ) arm(solicited bool) {
	db := make(prm.CQArmDoorbell, 8)
	db.Set(prm.MakeArmWord(q.sn, solicited, q.ci), q.n)
	q.h.d.MMIOWrite(uint64(q.h.uar)*4096+prm.UARCQArm, db)
}

// tQP is a queue pair of the driver: an SQ of 64 blocks, an RQ of 64 WQEs of 64 bytes.
type tQP struct {
	h        *host
	n        uint32
	uar      uint32
	scq, rcq *tCQ
	rq, sq   mem.PA
	db       mem.PA
	pi       uint16
	last     uint16 // index of the last WQE
	half     uint64
	rqPI     uint16
	psn      uint32
	xrc      bool
}

const tBlocks, tRecvs = 64, 64

func (h *host) newQP(scq, rcq *tCQ) *tQP { return h.newQPOn(scq, rcq, h.uar, nil) }

func (h *host) newQPOn(scq, rcq *tCQ, page uint32, edit func(c prm.QPC)) *tQP {
	q := &tQP{h: h, uar: page, scq: scq, rcq: rcq, db: h.alloc(8), psn: 0xfffffe}
	q.rq = h.alloc((tBlocks + tRecvs) * 64)
	q.sq = q.rq + tRecvs*64
	q.n = prm.CreateQPOut(h.cmd(q.create(edit))).QPN()
	return q
}

// create is CREATE_QP of a queue whose memory is there.
func (q *tQP) create(edit func(c prm.QPC)) []byte {
	in := prm.NewIn(prm.OpCreateQP, 2*8)
	m := prm.CreateQPIn(in)
	c := m.QPC()
	c.SetST(prm.STRC)
	c.SetPMState(prm.PMStateMigrated)
	c.SetPD(q.h.pd)
	c.SetUARPage(q.uar)
	c.SetLogSQSize(6)
	c.SetLogRQSize(6)
	c.SetLogRQStride(2)
	c.SetUserIndex(0xabc)
	c.SetCQNSnd(q.scq.n)
	c.SetCQNRcv(q.rcq.n)
	c.SetDBRAddr(uint64(q.db))
	if edit != nil {
		edit(c)
	}
	m.PAS().Set(0, uint64(q.rq))
	m.PAS().Set(1, uint64(q.rq)+4096)
	return in
}

// modify sends a transition with a fresh context.
func (q *tQP) modify(op prm.Opcode, f func(c prm.QPC)) {
	q.h.t.Helper()
	in := prm.NewIn(op, 0)
	m := prm.ModifyQPIn(in)
	m.SetQPN(q.n)
	f(m.QPC())
	q.h.cmd(in)
}

// opts of a connection.
type opts struct {
	mtu               roce.MTU
	timeout, retry    uint32
	rnr, rnrTimer     uint32
	logReads          uint32
	noWrite, noAtomic bool
	edit              func(c prm.QPC)
}

func defaults() opts {
	return opts{mtu: roce.MTU1024, timeout: 14, retry: 7, rnr: 7, rnrTimer: 1, logReads: 2}
}

// connect brings q to RTS with p as its peer.
func (q *tQP) connect(p *tQP, o opts) {
	q.h.t.Helper()
	q.modify(prm.OpRst2InitQP, func(c prm.QPC) {
		c.PrimaryPath().SetVHCAPortNum(1)
		c.SetRRE(true)
		c.SetRWE(!o.noWrite)
		c.SetRAE(!o.noAtomic)
		c.SetAtomicMode(prm.AtomicModeIBComp)
		c.SetCounterSetID(q.h.qset)
	})
	q.modify(prm.OpInit2RTRQP, func(c prm.QPC) {
		a := c.PrimaryPath()
		copy(a.RGID(), p.h.gid[:])
		copy(a.RMAC(), p.h.id.MAC[:])
		a.SetHopLimit(64)
		c.SetMTU(uint32(o.mtu))
		c.SetLogMsgMax(30)
		c.SetRemoteQPN(p.n)
		c.SetNextRcvPSN(p.psn)
		c.SetLogRRAMax(o.logReads)
		c.SetMinRNRNAK(o.rnrTimer)
		if o.edit != nil {
			o.edit(c)
		}
	})
	q.modify(prm.OpRTR2RTSQP, func(c prm.QPC) {
		c.SetNextSendPSN(q.psn)
		c.PrimaryPath().SetAckTimeout(o.timeout)
		c.SetRetryCount(o.retry)
		c.SetRNRRetry(o.rnr)
		c.SetLogSRAMax(o.logReads)
		if o.edit != nil {
			o.edit(c)
		}
	})
}

// mr is a registered buffer.
type mr struct {
	h          *host
	pa         mem.PA
	va         uint64
	n          uint64
	lkey, rkey uint32
	index      uint32
}

const (
	rightsAll  = 0x1f
	rightsRead = 0x01
)

// newMR registers n bytes at the odd VA with the rights a, rr, rw, lw, lr from bit 4.
func (h *host) newMR(n uint64, rights uint32) *mr {
	const va = 0x7f0000000000
	r := &mr{h: h, pa: h.alloc(n), va: va, n: n}
	pages := (n + 4095) / 4096
	in := prm.NewIn(prm.OpCreateMKey, int((pages+1)/2*16))
	m := prm.CreateMKeyIn(in)
	c := m.MKC()
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetA(rights&16 != 0)
	c.SetRR(rights&8 != 0)
	c.SetRW(rights&4 != 0)
	c.SetLW(rights&2 != 0)
	c.SetLR(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(0x5a)
	c.SetPD(h.pd)
	c.SetStartAddr(va)
	c.SetLen(n)
	c.SetLogPageSize(12)
	m.SetTranslationsOctwordActualSize(uint32((pages + 1) / 2))
	for i := range pages {
		prm.MTT(m.Entries()).Set(int(i), uint64(r.pa)+i*4096, 0)
	}
	r.index = prm.CreateMKeyOut(h.cmd(in)).MKeyIndex()
	r.lkey = prm.MKeyOf(r.index, 0x5a)
	r.rkey = r.lkey
	return r
}

func (r *mr) fill(f func(i int) byte) {
	b := make([]byte, r.n)
	for i := range b {
		b[i] = f(i)
	}
	r.h.m.Write(r.pa, b)
}

func (r *mr) bytes(off, n int) []byte {
	b := make([]byte, n)
	r.h.m.Read(r.pa+mem.PA(off), b)
	return b
}

// run runs the engine for t more.
func run(t testing.TB, e *sim.Engine, d sim.Time) {
	t.Helper()
	if err := e.Run(e.Now() + d); err != nil {
		t.Fatal(err)
	}
}

// expect polls one success of op and returns it.
func (q *tCQ) expect(op prm.CQEOpcode) prm.CQE64 {
	q.h.t.Helper()
	e := q.poll()
	if e == nil {
		q.h.t.Fatalf("at %v: no CQE, want opcode %d", q.h.e.Now(), op)
	}
	if e.Opcode() != op {
		q.h.t.Fatalf("at %v: CQE opcode %d (%v), want %d", q.h.e.Now(), e.Opcode(), e.Syndrome(), op)
	}
	return e
}

func (q *tCQ) expectError(op prm.CQEOpcode, s prm.Syndrome) prm.CQE64 {
	q.h.t.Helper()
	e := q.expect(op)
	if e.Syndrome() != s || e.VendorErrSynd() == 0 {
		q.h.t.Fatalf("syndrome %v vendor %#x, want %v", e.Syndrome(), e.VendorErrSynd(), s)
	}
	return e
}

func (q *tCQ) expectNone() {
	q.h.t.Helper()
	if e := q.poll(); e != nil {
		q.h.t.Fatalf("at %v: unexpected CQE opcode %d syndrome %v", q.h.e.Now(), e.Opcode(), e.Syndrome())
	}
}

// pair is two connected QPs on one device.
func pair(t testing.TB, o opts) (*host, *tQP, *tQP) {
	h := newHost(t, sim.New(sim.Options{MaxEvents: 1 << 24}), testParams(), 1)
	a, b := h.newQP(h.newCQ(7, 64), h.newCQ(7, 64)), h.newQP(h.newCQ(7, 64), h.newCQ(7, 64))
	a.connect(b, o)
	b.connect(a, o)
	return h, a, b
}
