// Package hca is the device: commands and contexts, WQE fetch, requester,
// responder, completions and events. It sees only bytes: register writes, mailboxes,
// DMA and frames.
//
// A QP is served by two engines. The requester (requester*.go) takes WQEs from
// BlueFlame pushes or by DMA from the ring, one processing unit at a time, and
// turns them into packets; it goes back to the oldest unacknowledged packet by
// moving its cursor back and fetching the WQEs again, as go-back-N needs no copy.
// The responder (responder*.go) executes request packets in PSN order; what it must
// wait for (a receive WQE, an atomic) holds the queue's later packets back.
//
// Events name queues by number and generation (qp.arg), so that one that fires
// after its queue was destroyed finds nothing.
package hca

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// Wire is where the port's frames go. Send takes over the frame's reference.
type Wire interface {
	Send(f *roce.Frame)
}

// Looper is a Wire that also carries what the device sends to itself, so that whoever
// watches or disturbs the wire does so there too: the frame comes back by Receive
// after the given time.
type Looper interface {
	Loopback(f *roce.Frame, after sim.Time)
}

// Pauser is a Wire with priority flow control: it is told of each class's bytes that came
// by it and wait for the receive engine, and pauses the other end.
type Pauser interface {
	Lossless() bool
	Buffered(class uint8, bytes int)
	// Queued is the bytes that wait for the line; Relieved is called when they get fewer.
	Queued() int
}

// Device is one mlx5 function. It implements pcie.Function.
type Device struct {
	e    *sim.Engine
	name string
	bus  pcie.Bus
	p    Params
	id   Identity
	h    handlers
	c    Counters

	// Control.
	fw       firmware
	uars     []*uar.Page // by index; nil: not allocated
	uarUsers []int32
	uarNums  numbers
	pds      []int32 // users, -1: not allocated
	pdNums   numbers
	xrcds    []bool
	xrcdNums numbers
	tds      []bool
	tdNums   numbers
	keys     *odp.Table
	memory   memory
	keyNums  numbers
	qps      []*qp
	qpNums   numbers
	qpGen    uint64
	srqs     []*srq
	srqNums  numbers
	cqs      []*cq
	cqNums   numbers
	cqGen    uint64
	eqs      []*eq
	eqNums   numbers
	qsets    []*qset
	qsetNums numbers
	ib       *ibPort // nil: an Ethernet port
	gids     []gidEntry
	gidGen   uint32             // counts changes of gids
	groups   map[roce.GID][]*qp // looked up, never walked

	// UAR pages.
	bfTimer bool
	partial []*uar.Page // with pushes that still arrive
	late    []latePush  // BlueFlame pushes that a conflict delays
	lateFre []uint32
	ahead   sim.Time // how far ahead of its instant a write is being taken

	// Send engine.
	idlePUs  int
	ready    argQueue // QPs that wait for a PU
	stalled  argQueue // QPs that wait for TxBuffer, with the engine in bit 63
	txBytes  int      // payload in preparation
	resuming bool     // a resume event is set
	issue    sim.Server
	port     sim.Time // when the port is free
	paced    int      // frames that wait for the port
	serN     int      // serialisation time of the last frame length
	serT     sim.Time

	// Frames.
	frames   roce.Pool
	slots    []*slot
	slotFre  []int32
	wire     Wire
	looper   Looper // wire, if it is one
	loops    bool   // it has sent to itself, or has a QP that will
	pauser   Pauser // wire, if it has priority flow control
	linkDown bool
	mute     bool     // an InfiniBand port that the subnet manager has not armed
	drained  sim.Time // the receive engine took the last packet out of the port's buffer then
	tap      func(t sim.Time, f *roce.Frame)

	// Receive engine.
	rxReq, rxRsp sim.Server
	rspAt        sim.Time // the last response takes effect then
	readEng      sim.Server
	atomics      []atomicSlot
	aops         []*atomicOp
	aopFre       []uint32

	// Caches.
	qpc, mpt, mtt cache
	lastMTT       uint64   // tag of the entry looked up last, which is in place with its key
	xlate         sim.Time // what misses of the last WQE's keys hold up the send engine
	reqAt         sim.Time // the last request takes effect then
	sendWQEs      lru      // by QP and index
	recvWQEs      lru      // by QP
	answers       bool     // READs and atomics that are answered cost something: time of a PU, or a look-up

	// Notification point: when the last CNP was sent, at all and by destination.
	cnpAt sim.Time
	cnpTo map[roce.GID]*sim.Time // looked up, never walked

	// Scratch of one event.
	wqe    [1024]byte // a WQE that wraps in a QP's buffer
	parsed prm.SendWQE
	runs   []odp.Run
	cqe    [128]byte
	again  [1024]byte // a WQE that is read again
	eqe    [64]byte
}

// handlers are the device's event handlers, bound once.
type handlers struct {
	pu, fetch, wait, timer, record, poll sim.Handler // of a QP's requester
	rqRecord, rqFetch, ack, nak, respond sim.Handler // of its responder
	srqRecord, srqFetch                  sim.Handler
	gather, send, rx                     sim.Handler // of a slot
	atomic, atomicFree                   sim.Handler
	cqRecord, cqModerate, cqSession      sim.Handler
	bfExpire, bfLate, none               sim.Handler
	resume                               sim.Handler
	raise, pace                          sim.Handler // of a QP's reaction point
}

// New makes a device in the state after reset. Params must pass Check.
func New(e *sim.Engine, name string, bus pcie.Bus, p Params, id Identity) *Device {
	if err := p.Check(); err != nil {
		panic("hca: " + name + ": " + err.Error())
	}
	d := &Device{e: e, name: name, bus: bus, p: p, id: id, idlePUs: p.PUs, runs: make([]odp.Run, 0, 64)}
	d.h = handlers{
		pu: d.onPU, fetch: d.onFetch, wait: d.onWait, timer: d.onTimer, record: d.onRecord, poll: d.onPoll,
		rqRecord: d.onRQRecord, rqFetch: d.onRQFetch, ack: d.onAck, nak: d.onNak, respond: d.onRespond,
		srqRecord: d.onSRQRecord, srqFetch: d.onSRQFetch,
		gather: d.onGather, send: d.onSend, rx: d.onRx,
		atomic: d.onAtomic, atomicFree: d.onAtomicFree,
		cqRecord: d.onCQRecord, cqModerate: d.onCQModerate, cqSession: d.onCQSession, bfExpire: d.onBFExpire, bfLate: d.onBFLate, none: func(uint64) {},
		resume: d.onResume, raise: d.onRaise, pace: d.onPace,
	}
	if p.LinkLayer == InfiniBand {
		d.ib, d.mute = new(ibPort), true
		d.ib.reset()
	}
	d.reset()
	return d
}

// reset puts the tables into the state after power-on.
func (d *Device) reset() {
	p := &d.p
	npages := uint32(p.BARSize / pageBytes)
	d.uars, d.uarUsers = make([]*uar.Page, npages), make([]int32, npages)
	d.memory = newMemory(p)
	d.uarNums = numbers{next: firstUAR, limit: uint32(d.memory.start / pageBytes)}
	d.pdNums = numbers{next: 1, limit: 1 << p.LogMaxPD}
	d.xrcdNums = numbers{next: 1, limit: 1 << p.LogMaxXRCD}
	d.tdNums = numbers{next: 1, limit: 1 << p.LogMaxPD}
	d.keys = odp.NewTable(1 << min(p.LogMaxMkey, 12))
	d.keys.SetChip(onChip)
	if p.DumpFillMkey {
		d.keys.SetDump(dumpFillKey)
	}
	d.keyNums = numbers{next: firstMkey, limit: 1 << p.LogMaxMkey}
	d.qpNums = numbers{next: firstQPN, limit: 1 << p.LogMaxQP, late: true}
	d.srqNums = numbers{next: 1, limit: 1 << p.LogMaxSRQ}
	d.cqNums = numbers{next: firstCQN, limit: 1 << p.LogMaxCQ}
	d.eqNums = numbers{next: 1, limit: 1 << p.LogMaxEQ}
	d.qsetNums = numbers{next: 1, limit: uint32(p.MaxQCounters) + 1}
	d.gids = make([]gidEntry, p.GIDTableSize)
	if d.ib != nil {
		d.gids = make([]gidEntry, ibGIDs)
		d.fillGIDs()
	}
	d.gidGen++
	d.groups = map[roce.GID][]*qp{}
	d.cnpAt, d.cnpTo = -sim.Second, map[roce.GID]*sim.Time{}
	d.atomics = make([]atomicSlot, p.AtomicSlots)
	d.qpc, d.mpt, d.mtt = newCache(p.QPCCache), newCache(p.MPTCache), newCache(p.MTTCache)
	d.sendWQEs, d.recvWQEs = newLRU(p.WQECache), newLRU(p.RecvCache)
	d.answers = p.PURead != 0 || p.WQECache > 0
	d.fw = newFirmware(p, &d.id)
}

// First numbers: the pages of the init segment, and numbers with a meaning of
// their own, are never handed out.
const (
	pageBytes = 4096
	firstUAR  = 4
	firstMkey = 8
	firstQPN  = 0x40
	firstCQN  = 1
)

// Name is the device's name in the run ("mlx5_0").
func (d *Device) Name() string { return d.name }

// Identity is what New was given.
func (d *Device) Identity() Identity { return d.id }

// Params are what New was given.
func (d *Device) Params() *Params { return &d.p }

// SetWire joins the port to a wire. Without one, frames to others are dropped and
// counted.
func (d *Device) SetWire(w Wire) {
	d.wire = w
	d.looper, _ = w.(Looper)
	if d.pauser, _ = w.(Pauser); d.pauser != nil && !d.pauser.Lossless() {
		d.pauser = nil
	}
}

// SetTap has f see every frame that the port sends, loopback included, when it
// leaves the engine; the frame is complete and f may not keep it without Retain.
func (d *Device) SetTap(f func(t sim.Time, fr *roce.Frame)) { d.tap = f }

// Frames is the pool that the device's frames come from.
func (d *Device) Frames() *roce.Pool { return &d.frames }

// BAR0Size is the size of the register window.
func (d *Device) BAR0Size() uint64 { return uint64(d.p.BARSize) }

// bug ends the run on a broken invariant of the model, with time and place.
func (d *Device) bug(format string, a ...any) {
	panic(fmt.Sprintf("hca: %v: %s: ", d.e.Now(), d.name) + fmt.Sprintf(format, a...))
}

// argQueue is a first-in-first-out queue of event words that reuses its memory.
type argQueue struct {
	q    []uint64
	head int
}

func (a *argQueue) len() int      { return len(a.q) - a.head }
func (a *argQueue) push(x uint64) { a.q = append(a.q, x) }
func (a *argQueue) pop() uint64 {
	x := a.q[a.head]
	a.head++
	switch {
	case a.head == len(a.q):
		a.q, a.head = a.q[:0], 0
	case a.head >= 64 && 2*a.head >= len(a.q):
		a.q = a.q[:copy(a.q, a.q[a.head:])]
		a.head = 0
	}
	return x
}
