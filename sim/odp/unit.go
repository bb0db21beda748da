// Package odp is the page-fault unit of the device. An access of a queue that meets an absent page
// becomes an event for the driver; the queue's side waits until the driver has answered the event's
// token by PAGE_FAULT_RESUME.
//
// What a queue does meanwhile is up to sim/hca; sim/mkey knows which entries of a key are absent.
package odp

import (
	"math"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Token names a fault that is out; 0 is none.
type Token uint32

// Driver is who gets the events.
type Driver interface {
	// WantsPageFaults says whether there is an event queue for them.
	WantsPageFaults() bool
	// PageFault reports an event whose sub-type and data put fills in.
	PageFault(put func(e prm.EQE))
}

// Queues are who waits.
type Queues interface {
	// Resumed has a side of the queue with an event word go on, or fail. The token is over. wqe
	// says that the fault was one of a work request.
	Resumed(queue uint64, s Side, wqe, failed bool)
}

// Unit is the page-fault unit of a device.
type Unit struct {
	e      *sim.Engine
	p      *Params
	driver Driver
	queues Queues
	list   sim.Slab[pending]
	memory bool // the driver has chosen the memory scheme
	teach  sim.Server
	live   int         // faults that are out
	waits  sim.Waiting // while there are any
	report sim.Handler
	resume sim.Handler
	Counters
}

// Counters of a unit, under the names of the device's diagnostic counters where it has them.
type Counters struct {
	LocalTriggered  uint64        // odp_local_triggered_page_fault: events about what the host's own requests met
	RemoteTriggered uint64        // odp_remote_triggered_page_fault: about what peers asked for
	Resumed         uint64        // answers that have a queue go on
	Failed          uint64        // answers that have it fail
	Stale           uint64        // answers to tokens that were over
	MostOfQueue     uint64        // faults of one queue that were out at once, at most
	Reported        [Kinds]uint64 // events
	Out             uint64        // faults that are out now
	// What the faults that are over took: until the event was written, from then to the driver's
	// answer, and from that until the queue went on.
	Reporting, Answering, Resuming sim.Time
}

// Fields calls f with each counter: the device's own names, and sim_ before those that only a
// simulator has.
func (c *Counters) Fields(f func(name string, v uint64)) {
	f("odp_local_triggered_page_fault", c.LocalTriggered)
	f("odp_remote_triggered_page_fault", c.RemoteTriggered)
	f("sim_resumed", c.Resumed)
	f("sim_failed", c.Failed)
	f("sim_stale_answers", c.Stale)
	f("sim_most_of_queue", c.MostOfQueue)
	f("sim_reporting_ps", uint64(c.Reporting))
	f("sim_answering_ps", uint64(c.Answering))
	f("sim_resuming_ps", uint64(c.Resuming))
}

// pending is a fault that is out. Its place in the list and its generation make the token.
type pending struct {
	f      Fault
	gen    uint32
	live   bool // not dropped, nor over
	told   bool // the event has been written
	answer uint8
	// When the access was, the event, and the answer.
	raised, reported, answered sim.Time
}

// Answers of the driver.
const (
	unanswered uint8 = iota
	resumed
	failed
)

// Tokens have 24 bits: places in the list, and above them generations, so that an answer that comes
// late finds nothing.
const (
	placeBits = 14
	genMask   = 1<<(24-placeBits) - 1
)

// New makes a unit.
func New(e *sim.Engine, p *Params, d Driver, q Queues) *Unit {
	u := &Unit{e: e, p: p, driver: d, queues: q}
	u.report, u.resume = u.onReport, u.onResume
	return u
}

// Reset forgets all faults, as the device's reset does.
func (u *Unit) Reset() {
	for i := range u.list.Len() {
		if x := u.list.At(uint32(i)); x.live {
			u.over(uint32(i))
		}
	}
	u.memory, u.teach = false, sim.Server{}
}

// ChooseMemoryScheme says which scheme the driver has chosen.
func (u *Unit) ChooseMemoryScheme(on bool) { u.memory = on }

// Pages says whether an access that meets an absent page can wait for it: otherwise it is a bad
// access.
func (u *Unit) Pages() bool { return u != nil && u.p.On() && u.driver.WantsPageFaults() }

func (u *Unit) breaks(r rule.Rule) bool { return rule.Mutants && u.e.Broken().Has(r) }

// Waited is for how long at least one fault has been out by now.
func (u *Unit) Waited(now sim.Time) sim.Time { return u.waits.For(now) }

// Out is how many faults are out.
func (u *Unit) Out() (n int) {
	for i := range u.list.Len() {
		if u.list.At(uint32(i)).live {
			n++
		}
	}
	return n
}

// Raise reports a fault. The token is 0 when no more can be out; the queue then fails.
func (u *Unit) Raise(f Fault) Token {
	i := u.list.Get()
	if i >= 1<<placeBits-1 {
		u.list.Put(i)
		return 0
	}
	x := u.list.At(i)
	*x = pending{f: f, gen: (x.gen + 1) & genMask, live: true, raised: u.e.Now()}
	u.live++
	u.waits.Set(u.e.Now(), true)
	u.MostOfQueue = max(u.MostOfQueue, u.outOf(f.Queue))
	if f.Side.Remote() {
		u.RemoteTriggered++
	} else {
		u.LocalTriggered++
	}
	further := sim.Time(max(f.Bytes, 1)-1) / prm.PageSize
	u.e.After(u.p.Report+further*u.p.ReportPage, u.report, uint64(x.gen)<<32|uint64(i))
	return x.token(i)
}

// outOf is how many faults of a queue are out.
func (u *Unit) outOf(queue uint64) (n uint64) {
	for i := range u.list.Len() {
		if x := u.list.At(uint32(i)); x.live && x.f.Queue == queue {
			n++
		}
	}
	return n
}

func (x *pending) token(i uint32) Token { return Token(x.gen<<placeBits | (i + 1)) }

// Drop ends a fault whose queue does not wait any more. Dropping none, or one that is over, does
// nothing.
func (u *Unit) Drop(t Token) {
	if i, x := u.find(uint32(t)); x != nil {
		u.over(i)
	}
}

// over frees a place. Its generation stays.
func (u *Unit) over(i uint32) {
	x := u.list.At(i)
	x.live, x.f = false, Fault{}
	u.live--
	u.waits.Set(u.e.Now(), u.live > 0)
	u.list.Put(i)
}

// find is the fault of a token, or nil.
func (u *Unit) find(t uint32) (uint32, *pending) {
	i := t&(1<<placeBits-1) - 1
	if t&(1<<placeBits-1) == 0 || int(i) >= u.list.Len() {
		return 0, nil
	}
	x := u.list.At(i)
	if !x.live || x.gen != t>>placeBits {
		return 0, nil
	}
	return i, x
}

// of is the fault of an event word, or nil when it was dropped.
func (u *Unit) of(word uint64) (uint32, *pending) {
	i := uint32(word)
	if x := u.list.At(i); x.live && x.gen == uint32(word>>32) {
		return i, x
	}
	return 0, nil
}

func (u *Unit) onReport(word uint64) {
	i, x := u.of(word)
	if x == nil {
		return
	}
	x.told, x.reported = true, u.e.Now()
	u.Reported[x.f.Kind()]++
	u.driver.PageFault(func(e prm.EQE) { u.describe(e, x, uint32(x.token(i))) })
}

// describe fills in the event about a fault.
func (u *Unit) describe(e prm.EQE, x *pending, token uint32) {
	switch f := &x.f; {
	case u.memory:
		e.SetSubType(prm.PageFaultSubMemory)
		d := prm.PageFaultMemory(e.Data())
		d.SetFlags(prm.PageFaultMemoryLast)
		d.PutToken48(uint64(token))
		// What lies behind may belong to something else, and need not be there.
		first, last := f.At/prm.PageSize, lastPage(f.At, f.Demand)
		d.SetDemandPages(uint32(last - first + 1))
		d.SetPostDemandPages(uint16(min(max(lastPage(f.At, f.Bytes), last)-last, math.MaxUint16)))
		d.SetMKey(f.MKey)
		d.SetVA(first * prm.PageSize) // the driver counts whole pages from here on
	case f.WQE:
		e.SetSubType(prm.PageFaultSubWQE)
		d := prm.PageFaultWQE(e.Data())
		d.SetBytesCommitted(f.Committed)
		d.SetWQEIndex(f.Index)
		if u.breaks(rule.FaultNamesItsRequest) {
			d.SetWQEIndex(f.Index + 1)
		}
		d.SetPacketLength(f.Packet)
		d.SetToken(token)
		d.SetFaultType(f.wqeType())
		d.SetWQNumber(f.Number)
	default:
		e.SetSubType(prm.PageFaultSubRDMA)
		d := prm.PageFaultRDMA(e.Data())
		d.SetBytesCommitted(f.Committed)
		d.SetRKey(f.RKey)
		d.SetPacketLength(f.Packet)
		d.SetRDMAOpLen(f.Length)
		d.SetRDMAVA(f.VA)
		d.SetFaultType(f.rdmaType())
		d.SetToken(token)
	}
}

// Answer is PAGE_FAULT_RESUME. An answer to a token that is over is taken and has no effect, since
// a driver answers faults of queues that were reset meanwhile (inferred: the Linux driver does not
// look at queues before it resumes). So has a second answer.
func (u *Unit) Answer(in []byte) {
	m := prm.PageFaultResumeIn(in)
	token := m.Token()
	if u.memory {
		long := prm.PageFaultResumeMemoryIn(in).Token48()
		if token = uint32(long); long>>24 != 0 {
			token = 0
		}
	}
	i, x := u.find(token)
	if x == nil || !x.told || x.answer != unanswered {
		u.Stale++
		return
	}
	x.answer, x.answered = resumed, u.e.Now()
	if m.Error() {
		x.answer = failed
	}
	u.e.At(u.learns(x.f.Side)+u.p.Resume, u.resume, uint64(x.gen)<<32|uint64(i))
}

// learns is when the firmware has told a queue that an answer has come.
func (u *Unit) learns(s Side) sim.Time {
	now := u.e.Now()
	if u.p.Learn == 0 || s != LandingSide {
		return now
	}
	_, end := u.teach.Take(now, u.p.Learn)
	return end
}

func (u *Unit) onResume(word uint64) {
	i, x := u.of(word)
	if x == nil {
		return
	}
	f, bad := x.f, x.answer == failed
	u.Reporting += x.reported - x.raised
	u.Answering += x.answered - x.reported
	u.Resuming += u.e.Now() - x.answered
	u.over(i)
	if bad {
		u.Failed++
	} else {
		u.Resumed++
	}
	if u.breaks(rule.AnswerReachesItsSide) {
		f.Side ^= 1
	}
	u.queues.Resumed(f.Queue, f.Side, f.WQE, bad)
}
