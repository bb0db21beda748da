package dcqcn

import "github.com/rdmasim/rdmasim/sim"

// Reaction is the reaction point of a QP that a CNP has slowed down. It ends when the rate is the
// port's again.
type Reaction struct {
	rate, target uint64 // bit/s
	alpha        uint64 // in units of 2^-20
	alphaAt      sim.Time
	cutAt        sim.Time
	cuts         uint64
	next         sim.Time // the next packet may be made then
	bytes        uint64   // since the byte counter's last raise
	byteRaises   uint32
	timeRaises   uint32
	raiseAt      sim.Time // the timer's next raise
}

// alphaBits turns 1024ths into alpha's units.
const alphaBits = 10

// maxDecay periods without a CNP leave nothing of alpha.
const maxDecay = 1 << 14

// Begin is a QP that has sent at the top rate until now.
func Begin(p *Params, top uint64, now sim.Time) Reaction {
	return Reaction{rate: top, target: top, alpha: uint64(p.InitialAlpha) << alphaBits, alphaAt: now}
}

// Rate is what the QP may send, in bit/s.
func (r *Reaction) Rate() uint64 { return r.rate }

// Next is when the next packet may be made.
func (r *Reaction) Next() sim.Time { return r.next }

// RaiseAt is when the timer raises the rate; a cut moves it on.
func (r *Reaction) RaiseAt() sim.Time { return r.raiseAt }

// Cut is a CNP. It reports false when the last cut is too near for another.
func (r *Reaction) Cut(p *Params, now sim.Time) bool {
	if r.cuts > 0 && now-r.cutAt < p.RateReducePeriod {
		return false
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
	return true
}

// decay lets alpha fall by the periods that have passed without a CNP.
func (r *Reaction) decay(p *Params, now sim.Time) {
	n := (now - r.alphaAt) / p.DCETCPRTT
	r.alphaAt += n * p.DCETCPRTT
	if n > maxDecay {
		r.alpha = 0
	}
	for ; n > 0 && r.alpha > 0; n-- {
		r.alpha = r.alpha * uint64(p.DCETCPG) >> 10
	}
}

// RaiseByTime is the timer, at its time or later. It reports true when the QP is not limited any
// more.
func (r *Reaction) RaiseByTime(p *Params, top uint64, now sim.Time) (ended bool) {
	r.timeRaises++
	ended = r.raise(p, top)
	r.raiseAt = now + p.RPGTimeReset
	return ended
}

// raise makes one step of recovery: halfway to the target, which rises itself once one of
// the counters has left fast recovery, and faster once both have.
func (r *Reaction) raise(p *Params, top uint64) (ended bool) {
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
	return r.rate+r.rate>>10 >= top // within a 1024th: halving would never get there
}

// Spend counts a packet against the rate: its bytes on the wire, overhead included. frame is
// what the byte counter counts of them. It reports true when the QP is not limited any more.
func (r *Reaction) Spend(p *Params, top uint64, now sim.Time, wire, frame int) (ended bool) {
	bits := uint64(wire) * 8
	r.next = max(r.next+sim.Time(bits*uint64(sim.Second/1000)/(r.rate/1000)), now)
	if r.bytes += uint64(frame); r.bytes >= p.RPGByteReset {
		r.bytes = 0
		r.byteRaises++
		return r.raise(p, top)
	}
	return false
}
