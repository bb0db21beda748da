package hca

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// CNPScope is what a notification point counts the time between two CNPs by.
type CNPScope uint8

// Scopes that Lumina (SIGCOMM 2023, section 6.3) distinguishes.
const (
	CNPPerPort CNPScope = iota
	CNPPerDestination
	CNPPerQP
)

// Congestion are the parameters of DCQCN (Zhu et al., SIGCOMM 2015): those of the
// notification point, which answers marked packets by CNPs, and of the reaction point,
// which slows a QP down. Names are those of mlx5's debugfs (cc_params), units too.
type Congestion struct {
	DCQCN                 bool     // both points; RoCEv2 packets of RC and UC carry ECT(0)
	MinTimeBetweenCNPs    sim.Time // of one scope
	CNPScope              CNPScope
	CNPDSCP               uint8
	ClampTgtRate          bool     // each cut makes the rate before it the target
	ClampAfterTimeInc     bool     // one after the timer has raised the rate does
	RPGTimeReset          sim.Time // between two raises by the timer
	RPGByteReset          uint64   // bytes between two raises by the byte counter
	RPGThreshold          uint32   // raises of a kind that only recover
	RPGMaxRate            uint64   // bit/s; 0: the port's
	RPGMinRate            uint64   // bit/s
	RPGAIRate, RPGHAIRate uint64   // bit/s that the target rises by
	RPGGd                 uint8    // a cut takes alpha / 2^gd of the rate; alpha has 10 bits
	RPGMinDecFac          uint8    // percent of the rate that a cut leaves at least
	RateOnFirstCNP        uint64   // bit/s after the first cut; 0: as any other
	DCETCPG               uint16   // 1024ths of alpha that stay in each period
	DCETCPRTT             sim.Time // that period
	RateReducePeriod      sim.Time // at most one cut in it
	InitialAlpha          uint16   // 1024ths
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Congestion) Check() error {
	var errs []error
	pos := func(name string, v, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("hca: %s is %d, not in %d..%d", name, v, lo, hi))
		}
	}
	pos("MinTimeBetweenCNPs", int64(p.MinTimeBetweenCNPs), 0, int64(sim.Second))
	pos("CNPScope", int64(p.CNPScope), 0, int64(CNPPerQP))
	pos("CNPDSCP", int64(p.CNPDSCP), 0, 63)
	pos("RPGTimeReset", int64(p.RPGTimeReset), int64(sim.Microsecond), int64(sim.Second))
	pos("RPGByteReset", int64(p.RPGByteReset), 1, 1<<40)
	pos("RPGThreshold", int64(p.RPGThreshold), 1, 31)
	pos("RPGMaxRate", int64(p.RPGMaxRate), 0, 1e13)
	pos("RPGMinRate", int64(p.RPGMinRate), 1e6, 1e12)
	pos("RPGAIRate", int64(p.RPGAIRate), 1e5, 1e12)
	pos("RPGHAIRate", int64(p.RPGHAIRate), 1e5, 1e12)
	pos("RPGGd", int64(p.RPGGd), 10, 30)
	pos("RPGMinDecFac", int64(p.RPGMinDecFac), 1, 100)
	pos("RateOnFirstCNP", int64(p.RateOnFirstCNP), 0, 1e13)
	pos("DCETCPG", int64(p.DCETCPG), 1, 1023)
	pos("DCETCPRTT", int64(p.DCETCPRTT), int64(sim.Microsecond), int64(sim.Second))
	pos("RateReducePeriod", int64(p.RateReducePeriod), 0, int64(sim.Second))
	pos("InitialAlpha", int64(p.InitialAlpha), 1, 1023)
	return errors.Join(errs...)
}

// reaction is the reaction point of a QP that a CNP has slowed down. It ends when the
// rate is the port's again.
type reaction struct {
	rate, target uint64 // bit/s
	alpha        uint64 // in units of 2^-20
	alphaAt      sim.Time
	cutAt        sim.Time
	cuts         uint64
	next         sim.Time // the next packet may be made then
	waking       bool     // an event is set for it
	held         bool     // the responder waits for it
	bytes        uint64   // since the byte counter's last raise
	byteRaises   uint32
	timeRaises   uint32
	raiseAt      sim.Time
	ticking      bool // an event is set for raiseAt
}

// alphaBits turns 1024ths into alpha's units.
const alphaBits = 10

// maxDecay periods without a CNP leave nothing of alpha.
const maxDecay = 1 << 14

// topRate is where a QP is not limited any more.
func (d *Device) topRate() uint64 {
	if m := d.p.Congestion.RPGMaxRate; m > 0 {
		return min(m, d.p.WireRate)
	}
	return d.p.WireRate
}

// notified is a CNP for the QP.
func (q *connection) notified() {
	d, p, now := q.d, &q.d.p.Congestion, q.d.e.Now()
	r := q.reaction
	if r == nil {
		if q.resting == nil {
			q.resting = &reaction{}
		}
		r = q.resting
		*r = reaction{rate: d.topRate(), target: d.topRate(), alpha: uint64(p.InitialAlpha) << alphaBits, alphaAt: now,
			waking: r.waking, held: r.held, ticking: r.ticking}
		q.reaction = r
	}
	d.c.RpCNPHandled++
	if r.cuts > 0 && now-r.cutAt < p.RateReducePeriod {
		return
	}
	r.decay(p, now)
	if p.ClampTgtRate || r.cuts == 0 || r.byteRaises > 0 || p.ClampAfterTimeInc && r.timeRaises > 0 {
		r.target = r.rate
	}
	rate := r.rate - r.rate*(r.alpha>>alphaBits)>>p.RPGGd
	if r.cuts == 0 && p.RateOnFirstCNP > 0 {
		rate = p.RateOnFirstCNP
	}
	r.rate = max(rate, r.rate*uint64(p.RPGMinDecFac)/100, p.RPGMinRate)
	r.alpha = r.alpha*uint64(p.DCETCPG)>>10 + uint64(1024-p.DCETCPG)<<alphaBits
	r.cuts++
	r.cutAt, r.alphaAt = now, now
	r.bytes, r.byteRaises, r.timeRaises = 0, 0, 0
	r.raiseAt = now + p.RPGTimeReset
	if !r.ticking {
		r.ticking = true
		d.e.At(r.raiseAt, d.h.raise, q.arg)
	}
}

// decay lets alpha fall by the periods that have passed without a CNP.
func (r *reaction) decay(p *Congestion, now sim.Time) {
	n := (now - r.alphaAt) / p.DCETCPRTT
	r.alphaAt += n * p.DCETCPRTT
	if n > maxDecay {
		r.alpha = 0
	}
	for ; n > 0 && r.alpha > 0; n-- {
		r.alpha = r.alpha * uint64(p.DCETCPG) >> 10
	}
}

// onRaise is the timer that raises the rate of a QP; a cut moves it on.
func (q *connection) onRaise() {
	d := q.d
	if q.resting == nil {
		return
	}
	r := q.resting
	r.ticking = false
	if q.reaction == nil {
		return
	}
	if d.e.Now() >= r.raiseAt {
		r.timeRaises++
		q.raise()
		if q.reaction == nil {
			return
		}
		r.raiseAt = d.e.Now() + d.p.Congestion.RPGTimeReset
	}
	r.ticking = true
	d.e.At(r.raiseAt, d.h.raise, q.arg)
}

// raise makes one step of recovery: halfway to the target, which rises itself once one of
// the counters has left fast recovery, and faster once both have.
func (q *connection) raise() {
	r, p, top := q.reaction, &q.d.p.Congestion, q.d.topRate()
	least, most := min(r.byteRaises, r.timeRaises), max(r.byteRaises, r.timeRaises)
	switch {
	case most < p.RPGThreshold:
	case least > p.RPGThreshold:
		r.target += uint64(least-p.RPGThreshold) * p.RPGHAIRate
	default:
		r.target += p.RPGAIRate
	}
	r.target = min(r.target, top)
	r.rate = (r.rate + r.target + 1) / 2
	if r.rate+r.rate>>10 >= top { // within a 1024th: halving would never get there
		q.reaction = nil
		q.owner.rateReturned()
	}
}

// spend counts a packet of n bytes, frame as given to the wire, against the rate.
func (q *connection) spend(n int) {
	r, d := q.reaction, q.d
	bits := uint64(n+d.p.WireOverhead) * 8
	r.next = max(r.next+sim.Time(bits*uint64(sim.Second/1000)/(r.rate/1000)), d.e.Now())
	if r.bytes += uint64(n); r.bytes >= d.p.Congestion.RPGByteReset {
		r.bytes = 0
		r.byteRaises++
		q.raise()
	}
}

// paced says whether the QP has to wait for its rate; it is woken then.
func (q *connection) paced() bool {
	r := q.reaction
	if q.d.e.Now() >= r.next {
		return false
	}
	if !r.waking {
		r.waking = true
		q.d.e.At(r.next, q.d.h.pace, q.arg)
	}
	return true
}

func (q *connection) onPace() {
	if q.resting == nil {
		return
	}
	q.resting.waking = false
	q.owner.rateReturned()
}

// notices is the notification point: when the last CNP was sent, at all and by destination.
type notices struct {
	cnpAt sim.Time
	cnpTo map[roce.GID]*sim.Time // looked up, never walked
}

func newNotices() notices { return notices{cnpAt: -sim.Second, cnpTo: map[roce.GID]*sim.Time{}} }

// marked is a data packet of the QP that arrived with "congestion experienced": it draws a
// CNP unless one was sent within the time, whether the packet is in order or not.
func (q *connection) marked() {
	d, p, now := q.d, &q.d.p.Congestion, q.d.e.Now()
	d.c.NpECNMarkedRocePackets++
	if q.cnp == nil {
		return
	}
	last := &d.cnpAt
	switch p.CNPScope {
	case CNPPerQP:
		last = &q.cnpAt
	case CNPPerDestination:
		last = d.cnpTo[q.dstGID]
		if last == nil {
			last = new(sim.Time)
			*last = -sim.Second
			d.cnpTo[q.dstGID] = last
		}
	}
	if now-*last < p.MinTimeBetweenCNPs {
		return
	}
	*last = now
	d.c.NpCNPSent++
	d.port.transmit(d.getSlot(q.cnp.New(&d.frames, roce.CNPacket, 0, 0, roce.BECN)), &q.sender)
}

// congested is a received CNP for QP q.
func (d *Device) congested(q *qp, p *roce.Packet) {
	if !d.p.Congestion.DCQCN || !q.takesResponses() || !q.fromPeer(p) {
		d.c.RpCNPIgnored++
		return
	}
	q.notified()
}

// isMarked says whether a packet is one whose marks count: a request, or data of a READ.
func isMarked(p *roce.Packet) bool {
	return p.TrafficClass()&3 == 3 && (p.Info().Kind == roce.KindRequest || p.Info().Class == roce.ClassReadResponse)
}

// ectTrafficClass is a traffic class with ECT(0), unless it says something itself.
func ectTrafficClass(tc uint8) uint8 {
	if tc&3 == 0 {
		return tc | 2
	}
	return tc
}
