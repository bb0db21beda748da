// Package hca is the device: commands and contexts, WQE fetch, requester,
// responder, completions and events. It sees only bytes: register writes, mailboxes,
// DMA and frames.
//
// The files stand in layers. A file uses only those below it, and a test
// (internal/layering) checks it with the type checker; what lies below and must call what
// lies above declares an interface of one to three methods for it. From the bottom:
//
//   - core: engine, bus, parameters, counters, event handlers. Every unit holds it, none the
//     Device.
//   - units.go, what all QPs share: the frames under way and the room that they take, the port and
//     its addresses, the pipelines, the send engine with its processing units, DMA, caches,
//     atomics, memory on the device, event queues. Beside them CQs and SRQs. Each knows core and
//     the units that it uses.
//   - connection: what the two engines of a QP share. It holds the units, never the device.
//   - requester and responder, the engines of a QP. They know nothing of each other and ask the QP
//     for what concerns both by the calls of owner. The requester takes WQEs from BlueFlame pushes
//     or by DMA from the ring (sendring.go) and turns them into packets; it goes back to the oldest
//     unacknowledged packet by moving its cursor back and fetching the WQEs again, as go-back-N
//     needs no copy. The responder executes request packets in PSN order; what it must wait for (a
//     receive WQE of recvqueue.go, an atomic) holds the queue's later packets back.
//   - qp, and queuePairs, the table of QPs: it is what units find a QP by.
//   - nic, what a driver makes a network interface of: SQs, RQs, TIRs and flow tables (eth_*.go).
//     Only functions whose identity says so have it. Its packets share the port, the bus and the
//     CQs with RDMA. What needs no device (headers, checksums, the hashes of RSS) is in roce/ether;
//     the rest uses queues, numbers, DMA and commands by more than 80 names, and so stays in this
//     package.
//   - the receive engine (arrival.go) and the registers (mmio.go), which find a QP and call it.
//   - Device composes all that; commands, and what testers may ask, work on it.
//
// What a request must satisfy, and in which order, is a list of named steps for each transport
// in responder_check.go; what a WQE and a response must satisfy is in requester_check.go. A new
// rule is a step there.
//
// Events name queues by number and generation (events.go), so that one that fires after its
// queue was destroyed finds nothing.
package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Device is one mlx5 function. It implements pcie.Function.
type Device struct {
	units
	tables
	cqs  completionQueues
	srqs sharedQueues
	queuePairs
	receiveEngine
	doorbells
	nic    *nic    // nil: the port carries RDMA only
	agents *agents // of an InfiniBand port
	fw     firmware
	regs   portRegisters
}

// New makes a device in the state after reset. Params must pass Check.
func New(e *sim.Engine, name string, bus pcie.Bus, p Params, id Identity) *Device {
	if err := p.Check(); err != nil {
		panic("hca: " + name + ": " + err.Error())
	}
	d := &Device{units: units{core: core{e: e, name: name, bus: bus, p: p, id: id, nextArrival: sim.Never}}}
	d.limitToWindow()
	d.queuePairs.units = &d.units
	d.receiveEngine.units, d.receiveEngine.qps, d.arriving = &d.units, &d.queuePairs, &d.receiveEngine
	if (id.Netdev || id.Packets) && p.LinkLayer == Ethernet {
		d.nic = newNIC(&d.units, &d.qpNums, &d.regs.adminMTU)
		d.doorbells.nic = d.nic
	}
	d.doorbells.units, d.objects, d.doorbells.qps, d.doorbells.cqs = &d.units, &d.tables, &d.queuePairs, &d.cqs
	d.addresses.core = &d.core
	d.sendEngine = newSendEngine(&d.p, &d.queuePairs)
	d.dma = dma{core: &d.core, store: &d.frameStore, memory: &d.memory, runs: make([]mkey.Run, 0, 64)}
	d.delayed, d.effects, d.arrivals.alarm = e.NewLane(), e.NewLane(), sim.Never
	d.arrivals.pipes[requests].next, d.arrivals.pipes[responses].next = nowhere, nowhere
	d.txRoom.core, d.engines = &d.core, &d.queuePairs
	d.port.core, d.port.store, d.port.users = &d.core, &d.frameStore, d
	d.atomics = atomicUnit{core: &d.core, dma: &d.dma, users: &d.queuePairs}
	d.h = handlers{
		pu: d.onPU(), fetch: d.onFetch, wait: d.onWait, timer: d.onTimer, record: d.onRecord, poll: d.onPoll,
		list: d.onList, copied: d.onCopied, rqRecord: d.onRQRecord, rqFetch: d.onRQFetch, ack: d.onAck, nak: d.onNak, sack: d.onSACK, respond: d.onRespond, hush: d.onHush,
		srqRecord: d.srqs.onRecord, srqFetch: d.srqs.onFetch,
		gather: d.port.onGather(), send: d.port.onSend(), rx: d.onRx(),
		atomic: d.atomics.onRead, atomicFree: d.atomics.onFree, atomicBegin: d.atomics.onBegin,
		cqRecord: d.cqs.onRecord, cqModerate: d.cqs.onModerate, cqSession: d.cqs.onSession, bfExpire: d.onBFExpire, bfLate: d.onBFLate(), bfReturn: d.onBFReturn, none: func(uint64) {},
		resume: d.onResume, ask: d.onAsk, raise: d.onRaise, pace: d.onPace,
	}
	if p.ODP.On() {
		d.faults = odp.New(e, &d.p.ODP, &d.events, &d.queuePairs)
	}
	if p.LinkLayer == InfiniBand {
		d.ib, d.port.mute = new(ibPort), true
		d.ib.reset(d.p.PortCapMask, d.p.PortCapMask2)
		d.agents = newAgents(&d.p, &d.id, &d.port)
		d.agentsAnswer = d
	}
	d.reset()
	return d
}

// reset puts the tables into the state after power-on.
func (d *Device) reset() {
	p := &d.p
	d.memory = newMemory(p)
	d.tables = newTables(p, d.memory.ops.start)
	d.events = newEventQueues(&d.core)
	d.cqs = newCompletionQueues(&d.core, &d.events, (*cqReporters)(d), d.cqs.made)
	d.srqs = newSharedQueues(&d.core, &d.events, &d.queuePairs, d.srqs.made)
	d.queuePairs.reset()
	if d.nic != nil {
		d.nic.reset()
		d.listen()
	}
	d.keys.SetDeviceMemory(onChip)
	d.keys.Break(d.e.Broken())
	if p.DumpFillMkey {
		d.keys.SetDumpFill(dumpFillKey)
	}
	if d.faults != nil {
		d.faults.Reset()
		d.keys.SetPaging(nullKey)
	}
	d.gids = make([]gidEntry, p.GIDTableSize)
	if d.ib != nil {
		d.gids = make([]gidEntry, ibGIDs)
		d.fillGIDs()
	}
	d.gidGen++
	d.notices = newNotices()
	d.dma.keys = d.keys
	d.atomics.reset()
	d.caches = newCaches(&d.core, d.keys, &d.queuePairs)
	d.answers = p.PURead != 0 || p.WQECache > 0
	d.fw, d.regs, d.accl = newFirmware(p, &d.id), newPortRegisters(p), newRoCEAccl(p)
	if d.nic != nil {
		d.fw.fillNIC(p)
	}
	d.resetPort()
}

// cqReporters is a device as its CQs see it: what reports to them.
type cqReporters Device

func (d *cqReporters) cqFailed(c *cq) {
	d.queuePairs.cqFailed(c)
	if d.nic != nil {
		d.nic.cqFailed(c)
	}
}

// Name is the device's name in the run ("mlx5_0").
func (d *Device) Name() string { return d.name }

// Identity is what New was given.
func (d *Device) Identity() Identity { return d.id }

// Params are what New was given.
func (d *Device) Params() *Params { return &d.p }

// SetWire joins the port to a wire. Without one, frames to others are dropped and
// counted.
func (d *Device) SetWire(w Wire) {
	d.port.wire = w
	d.port.looper, _ = w.(Looper)
	d.lateWire, _ = w.(LateWire)
	if d.pauser, _ = w.(Pauser); d.pauser != nil && d.pauser.Lossless() == 0 {
		d.pauser = nil
	}
	d.crowded = d.pauser != nil || d.stalled.Len() > 0
	d.listen()
}

// listen has the receive engine look for Ethernet packets while somebody takes them. Only while
// nobody does frames are planned.
func (d *Device) listen() {
	d.settle()
	d.receiveEngine.nic = nil
	if d.nic != nil && (d.id.Netdev || d.nic.takers > 0) {
		d.receiveEngine.nic = d.nic
	}
	d.plans = d.lateWire != nil && d.pauser == nil && d.p.RNRStall == 0 && d.receiveEngine.nic == nil
}

// lossless are the classes that the port's wire loses nothing of.
func (d *Device) lossless() uint8 {
	if d.pauser == nil {
		return 0
	}
	return d.pauser.Lossless()
}

// SetTap has f see every frame that the port sends, loopback included, when it
// leaves the engine; the frame is complete and f may not keep it without Retain.
func (d *Device) SetTap(f func(t sim.Time, fr *roce.Frame)) { d.port.tap = f }

// Relieved is called by a wire with flow control when a frame that waited there has left.
func (d *Device) Relieved() { d.resumeOne() }

// Frames is the pool that the device's frames come from.
func (d *Device) Frames() *roce.Pool { return &d.frames }

// BAR0Size is the size of the register window.
func (d *Device) BAR0Size() uint64 { return uint64(d.p.BARSize) }
