package hca

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// core is what every unit of a device knows, and all that a unit knows of the device beside the
// units below it: time, the bus, the parameters, the counters.
type core struct {
	e    *sim.Engine
	name string
	bus  pcie.Bus
	p    Params
	id   Identity
	h    handlers
	c    Counters
	accl roceAccl

	sacking bool // NAKs say what has arrived behind a gap: SelectiveRepeat with RepeatSACK

	arriving    lateArrivals
	nextArrival sim.Time // no planned frame arrives before
}

// lateArrivals are the planned frames, as those see them who must not miss one.
type lateArrivals interface {
	// arriveLate lets planned frames arrive that should have by now, and returns the time before
	// which it need not be called again.
	arriveLate() (next sim.Time)
}

// handlers are the device's event handlers, bound once. Those of each message are functions
// that a method makes, which spares every event the call from a bound method to the method.
// Such a maker is not inlined, since the compiler then inlines nothing into what it makes.
type handlers struct {
	pu, fetch, wait, timer, record, poll sim.Handler // of a QP's requester
	list, copied                         sim.Handler // and of its UMRs and copies
	rqRecord, rqFetch, ack, nak, respond sim.Handler // of its responder
	sack                                 sim.Handler
	hush                                 sim.Handler
	srqRecord, srqFetch                  sim.Handler
	gather, send, rx                     sim.Handler // of a slot
	atomic, atomicFree, atomicBegin      sim.Handler
	cqRecord, cqModerate, cqSession      sim.Handler
	bfExpire, bfLate, bfReturn, none     sim.Handler
	resume                               sim.Handler
	ask                                  sim.Handler // of a requester that waits for pages
	raise, pace                          sim.Handler // of a QP's reaction point
}

// Event words name a queue by number and generation: one that fires after its queue was
// destroyed finds nothing.
const (
	// queueIndexMask is how far the numbers of queues go, and the indexes of CQs and EQs count.
	queueIndexMask = 0xffffff
	// fetchShift is where the event word of a fetch holds how much it fetched: above a
	// generation of 30 bits.
	fetchShift = 54
)

// window is how many PSNs of a queue pair may be outstanding.
func (k *core) window() int32 {
	if k.id.Window != 0 {
		return int32(k.id.Window)
	}
	return roce.MaxOutstandingPSN
}

// settle lets planned frames arrive that should have by now. Whoever uses the receive
// engine or the caches, changes contexts or keys, or reads counters calls it first.
func (k *core) settle() {
	if k.e.Now() >= k.nextArrival {
		k.settleArrivals()
	}
}

// settleArrivals is kept out of settle, which so has no call where there is nothing to do.
//
//go:noinline
func (k *core) settleArrivals() {
	k.nextArrival = sim.Never
	k.nextArrival = k.arriving.arriveLate()
}

// timestamp is the free-running timer: cycles of the core clock.
func (k *core) timestamp(t sim.Time) uint64 {
	hi, lo := bits.Mul64(uint64(t), k.p.CoreClockKHz)
	q, _ := bits.Div64(hi, lo, uint64(sim.Millisecond))
	return q
}

// breaks says whether the run breaks a rule of the device, to see whether that is noticed
// (sim/mutant).
func (k *core) breaks(r rule.Rule) bool { return rule.Mutants && k.e.Broken().Has(r) }

// needs is the right that an access needs, unless the run breaks rule r.
func (k *core) needs(a mkey.Access, r rule.Rule) mkey.Access {
	if k.breaks(r) {
		return 0
	}
	return a
}

// bug ends the run on a broken invariant of the model, with time and place.
func (k *core) bug(format string, a ...any) {
	panic(fmt.Sprintf("hca: %v: %s: ", k.e.Now(), k.name) + fmt.Sprintf(format, a...))
}

// limitToWindow has requesters keep to what responders with RepeatSACK keep.
func (k *core) limitToWindow() {
	if k.sacking = k.p.SelectiveRepeat && k.p.RepeatScheme == RepeatSACK; !k.sacking {
		return
	}
	k.id.Window = int(min(k.window(), int32(k.p.RepeatWindow)))
	k.p.AckReqPackets = min(k.p.AckReqPackets, max(1, k.id.Window/askAgainShare))
}
