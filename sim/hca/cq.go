package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// armState is what a CQ waits for before it reports an event.
type armState uint8

const (
	disarmed armState = iota
	armedSolicited
	armedAny
)

// completionQueues are the CQs of a device.
type completionQueues struct {
	*core
	events  *eventQueues
	users   cqUsers
	cqs     []*cq
	numbers numbers
	made    uint64                  // CQs: it tells those of the same number apart, in the words of their events
	entry   [2 * prm.CQE64Size]byte // the completion that is being written
}

// cqUsers are the queues that report to CQs, as a CQ sees them.
type cqUsers interface {
	// cqFailed has the queues of a CQ go to ERR.
	cqFailed(c *cq)
}

// firstCQN is not 0, which is no CQ.
const firstCQN = 1

// newCompletionQueues makes an empty table. made is how many CQs there were before.
func newCompletionQueues(k *core, events *eventQueues, users cqUsers, made uint64) completionQueues {
	return completionQueues{
		core: k, events: events, users: users, made: made,
		numbers: numbers{next: firstCQN, limit: 1 << k.p.LogMaxCQ},
	}
}

// at is the CQ with a number, or nil.
func (v *completionQueues) at(n uint32) *cq {
	if uint64(n) >= uint64(len(v.cqs)) {
		return nil
	}
	return v.cqs[n]
}

// named is the CQ of an event word, or nil when it is gone.
func (v *completionQueues) named(arg uint64) *cq {
	c := v.at(uint32(arg & queueIndexMask))
	if c == nil || c.arg != arg {
		return nil
	}
	return c
}

// cq is a completion queue. Indexes count entries modulo 2^24.
type cq struct {
	*core
	all   *completionQueues
	num   uint32
	arg   uint64
	ctx   [prm.CQCSize]byte
	ring  ring
	size  uint32
	cqe   int // bytes of an entry
	dbr   mem.PA
	uar   uint32
	eq    *eq
	refs  int
	umems umemUse // of a program's own commands

	pi, ci    uint32 // ci as last read
	solicited uint32 // behind the last solicited or error entry
	arms      armState
	armCI     uint32
	firedSN   int32 // sequence number of the arm that fired last, -1: none
	armSN     int32
	notified  uint32   // behind the last entry that was there when an event was reported
	due       sim.Time // when the moderation timer ends; 0: it does not run
	failed    bool
	comp      *session // nil: entries are written one by one
	pending   []byte   // entries that wait for a look at the consumer index
	reading   bool
	rec       [prm.DBRecSize]byte
}

func (c *cq) used() uint32 { return (c.pi - c.ci) & queueIndexMask }

func (c *cq) ignoresOverrun() bool { return prm.CQC(c.ctx[:]).OI() }

// push writes an entry (of c.cqe bytes, owner not filled in) at the producer index
// behind all data written before. An entry for which there seems to be no room
// waits until the consumer index has been read.
func (c *cq) push(b []byte) {
	if c.failed {
		c.c.CQEsLost++
		return
	}
	if c.comp != nil && c.gather(b) {
		return
	}
	full := c.used() >= c.size && !c.ignoresOverrun()
	if full || len(c.pending) > 0 {
		c.pending = append(c.pending, b...)
		c.look()
		return
	}
	c.write(b)
}

// write writes an entry that has room.
func (c *cq) write(b []byte) {
	e := prm.CQE64(b[len(b)-prm.CQE64Size:])
	op := e.Opcode()
	owner := prm.CQEOwner(c.pi, c.size)
	if c.breaks(rule.EntriesHaveTheirOwner) {
		owner = 0
	}
	e.SetOpOwn(op, e.Format(), e.SE(), owner)
	c.place(c.pi, b)
	c.produced(1, e.SE() || op == prm.CQEReqErr || op == prm.CQERespErr)
}

// place writes to the end of the ring's entry i (not reduced): all of it, or a CQE64.
func (c *cq) place(i uint32, b []byte) {
	pa, _ := c.ring.at(uint64(i&(c.size-1))*uint64(c.cqe)+uint64(c.cqe-len(b)), len(b))
	c.bus.WriteDMA(pa, b)
}

// produced moves the producer index over n completions that were written.
func (c *cq) produced(n uint32, solicited bool) {
	c.c.CQEs += uint64(n)
	c.pi = (c.pi + n) & queueIndexMask
	if (c.pi-c.notified)&queueIndexMask > c.size {
		c.notified = (c.pi - c.size) & queueIndexMask // older entries are gone
	}
	if solicited && !c.breaks(rule.SolicitedEventsAreReported) {
		c.solicited = c.pi
	}
	c.fire()
	if c.used() > c.size/2 && !c.ignoresOverrun() {
		c.look()
	}
}

// look reads the doorbell record.
func (c *cq) look() {
	if c.reading {
		return
	}
	c.reading = true
	c.c.CQRecordReads++
	c.bus.ReadDMA(c.dbr, c.rec[:], c.h.cqRecord, c.arg)
}

func (v *completionQueues) onRecord(arg uint64) {
	c := v.named(arg)
	if c == nil {
		return
	}
	c.reading = false
	c.consumed(prm.CQDBRec(c.rec[:]).CI())
	for n := 0; len(c.pending) > 0; n++ {
		if c.used() >= c.size {
			if n == 0 {
				c.overrun()
			} else {
				c.look()
			}
			return
		}
		b := c.pending[:c.cqe]
		c.write(b)
		c.pending = c.pending[:copy(c.pending, c.pending[c.cqe:])]
	}
}

// consumed takes over a consumer index that is not ahead of what was produced, and not
// back.
func (c *cq) consumed(ci uint32) {
	if (c.pi-ci)&queueIndexMask <= c.used() {
		c.ci = ci
	}
}

// overrun is a completion that finds no room: the CQ fails, its queues go to ERR.
func (c *cq) overrun() {
	c.failed = true
	c.c.CQOverruns++
	c.c.CQEsLost += uint64(len(c.pending) / c.cqe)
	c.pending = c.pending[:0]
	prm.CQC(c.ctx[:]).SetStatus(prm.CQStatusOverflow)
	if !c.breaks(rule.OverrunIsReported) {
		e := c.all.events.event(prm.EventCQError)
		e.SetCQErrCQN(c.num)
		e.SetCQErrSyndrome(prm.CQErrOverrun)
		c.all.events.report(e)
	}
	c.all.users.cqFailed(c)
}

// arm is the doorbell that asks for an event. One with the sequence number of the
// arm that fired last is stale: software has not taken that event yet.
func (c *cq) arm(w prm.ArmWord) {
	sn := int32(w.SN())
	if sn == c.firedSN {
		c.c.ArmsStale++
		return
	}
	c.settle()
	// A second arm before the event may widen what the CQ waits for, never narrow it
	// (IBTA, request completion notification).
	if !w.Solicited() {
		c.arms = armedAny
	} else if c.arms == disarmed || c.breaks(rule.ArmWidens) {
		c.arms = armedSolicited
	}
	c.armSN, c.armCI = sn, w.CI()
	if !c.breaks(rule.ArmFindsWhatIsThere) {
		c.fire()
	}
}

// fire reports an event if the CQ is armed and has what it was armed for: an entry
// at or behind the consumer index of the arm, and by rule ArmUnannounced not among those
// that an event has announced.
func (c *cq) fire() {
	if c.arms == disarmed {
		return
	}
	last := c.pi
	if c.arms == armedSolicited {
		last = c.solicited
	}
	if !behind(last, c.armCI) || c.p.CQArm == ArmUnannounced && !behind(last, c.notified) {
		return
	}
	if c.moderated() && c.holdBack((last-c.armCI)&queueIndexMask) {
		return
	}
	c.firedSN, c.notified, c.due = c.armSN, c.pi, 0
	if !c.breaks(rule.OneEventForOneArm) {
		c.arms = disarmed
	}
	e := c.all.events.event(prm.EventComp)
	e.SetCompCQN(c.num)
	c.eq.push(e)
}

// behind says whether there are entries from one index up to another, by serial arithmetic.
func behind(to, from uint32) bool {
	d := (to - from) & queueIndexMask
	return d != 0 && d < 1<<23
}
