package experiment

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// prediction is a claim that runs can decide. Its value is computed for several seeds and costs: it
// is confirmed if holds is true of all values, refuted if fails is true of all, and otherwise
// undecided.
type prediction struct {
	id, claim    string
	value        func(v *variant) (float64, error)
	what         string // of the value
	holds, fails func(float64) bool
}

// variant is a seed, and costs of wake-ups and of cache lines and locks, in percent, under which a
// prediction is looked at.
type variant struct {
	x           *completionRun
	seed        uint64
	wake, lines int
}

// point is the load of the parameters under a variant.
func (v *variant) point(model string, peers, conns int, turnaround time.Duration) completionPoint {
	p := v.x.point(model)
	p.seed, p.wake, p.lines = v.seed, p.wake*v.wake/100, v.lines
	p.peers, p.conns, p.turnaround, p.merged, p.dim = peers, conns, turnaround, false, false
	return p
}

func (v *variant) measure(p completionPoint) (completionResult, error) { return p.measure(v.x.Env) }

// ratio is of two points what a measure of the first is to that of the second.
func (v *variant) ratio(a, b completionPoint, of func(completionResult) float64) (float64, error) {
	ra, err := v.measure(a)
	if err != nil {
		return 0, err
	}
	rb, err := v.measure(b)
	if err != nil || of(rb) == 0 {
		return 0, err
	}
	return of(ra) / of(rb), nil
}

func rateOf(r completionResult) float64       { return r.rate }
func cpuOf(r completionResult) float64        { return r.cpu }
func lastOf(r completionResult) float64       { return r.last }
func interruptsOf(r completionResult) float64 { return r.interrupts / r.ms / r.rate }

// The loads: an isolated completion now and then, a busy one, and one that saturates.
const (
	light  = 2 * time.Millisecond
	middle = 200 * time.Microsecond
	heavy  = 5 * time.Microsecond
)

// together is the ratio of the times at which the last of n has been handled.
func together(n int) func(*variant) (float64, error) {
	return func(v *variant) (float64, error) {
		a, b := v.point("legacy", 1, 1, 0), v.point("workqueue", 1, 1, 0)
		a.burst, b.burst, a.credits, b.credits = true, true, n, n
		return v.ratio(a, b, lastOf)
	}
}

// against is the ratio of a measure of two models under a load.
func against(a, b string, peers int, turnaround time.Duration, of func(completionResult) float64) func(*variant) (float64, error) {
	return func(v *variant) (float64, error) {
		return v.ratio(v.point(a, peers, 1, turnaround), v.point(b, peers, 1, turnaround), of)
	}
}

// switched is how many context switches a completion takes.
func switched(turnaround time.Duration, credits int) func(*variant) (float64, error) {
	return func(v *variant) (float64, error) {
		p := v.point("legacy", 16, 1, turnaround)
		p.credits = credits
		r, err := v.measure(p)
		return r.switches / r.ms / r.rate, err
	}
}

// fanned is how much four connections to a peer bring over one.
func fanned(same bool) func(*variant) (float64, error) {
	return func(v *variant) (float64, error) {
		a, b := v.point("workqueue", 1, 4, heavy), v.point("workqueue", 1, 1, heavy)
		a.same = same
		return v.ratio(a, b, rateOf)
	}
}

func above(n float64) func(float64) bool { return func(v float64) bool { return v > n } }
func below(n float64) func(float64) bool { return func(v float64) bool { return v < n } }

var predictions = []prediction{
	{"burst-2", "two completions at once are handled sooner by legacy", together(2), "end, legacy to workqueue", below(1), above(1)},
	{"burst-16", "sixteen completions at once are handled sooner by legacy", together(16), "end, legacy to workqueue", below(1), above(1)},
	{"one-busy", "legacy handles one busy connection faster than one core can", against("legacy", "workqueue", 1, heavy, rateOf), "rate, legacy to workqueue", above(1.1), below(1)},
	{"scales", "legacy's rate for one connection grows with the cores, 16 against 4, in its default of 4 threads", coresScale, "rate, 16 cores to 4", above(2.8), below(1.5)},
	{"switches-light", "legacy takes more than one context switch for an isolated completion", switched(light, 1), "switches a completion", above(1), below(0.2)},
	{"switches-heavy", "legacy takes more than one context switch for a completion under load", switched(heavy, 8), "switches a completion", above(1), below(0.2)},
	{"softirq-cpu", "softirq takes less CPU time than legacy at the same load", against("softirq", "legacy", 16, middle, cpuOf), "CPU time, softirq to legacy", below(1), above(1)},
	{"workqueue-cpu", "a workqueue takes no more CPU time than legacy at the same load", against("workqueue", "legacy", 16, middle, cpuOf), "CPU time, workqueue to legacy", below(1), above(1)},
	{"inline-rate", "handling in the interrupt brings 2 to 20 % over legacy, saturated", against("irq-inline", "legacy", 16, heavy, rateOf), "rate, irq-inline to legacy", func(v float64) bool { return v >= 1.02 && v <= 1.2 }, func(v float64) bool { return v < 1.02 || v > 1.2 }},
	{"softirq-workqueue", "softirq and workqueue are within 10 % of each other, saturated", against("softirq", "workqueue", 16, heavy, rateOf), "rate, softirq to workqueue", func(v float64) bool { return v >= 0.9 && v <= 1.1 }, func(v float64) bool { return v < 0.9 || v > 1.1 }},
	{"conns-4", "four connections to a peer restore parallelism to a workqueue", fanned(false), "rate, 4 connections to 1", above(3.2), below(1.1)},
	{"conns-4-one-vector", "they do so with one completion vector for all, as before Lustre 2.16", fanned(true), "rate, 4 connections to 1", above(3.2), below(1.1)},
	{"merge", "a CQ for each core instead of each connection halves the interrupts", merges, "interrupts a completion, own CQs to merged", above(2), below(1.1)},
	{"nothing-lost", "removing the scheduler threads loses nothing: no load of these has legacy 10 % ahead", worst, "rate, workqueue to legacy, the worst", above(0.9), below(0.9)},
	{"softirq-threads", "a softirq that hands completions to the threads of legacy is within 10 % of legacy, saturated", against("softirq-threads", "legacy", 16, heavy, rateOf), "rate, softirq-threads to legacy", func(v float64) bool { return v >= 0.9 && v <= 1.1 }, func(v float64) bool { return v < 0.9 || v > 1.1 }},
	{"lock", "legacy's four threads wait for their lock for a tenth of the CPU time", waiting, "share of CPU time, percent", above(10), below(2)},
	{"slow-cores", "on cores four times as slow legacy handles one connection faster than a workqueue", slow(1), "rate, legacy to workqueue", above(1.1), below(1)},
	{"slow-cores-4", "on such cores it is still 10 % faster when the workqueue has four connections to the peer", slow(4), "rate, legacy to workqueue with 4", above(1.1), below(1.1)},
	{"fourth-patch", "an unbound workqueue has a lower 99th percentile where the cores of the interrupts run programs", beside, "99th percentile, unbound to workqueue", below(1), above(1)},
	{"fourth-patch-mask", "it needs a cpumask: one that leaves the cores of programs out lowers its 99th percentile there by a tenth at least", masked, "99th percentile, with a cpumask to without", below(0.9), above(0.9)},
	{"order", "threads that share a connection handle its completions out of order", inversions, "completions out of order", above(0), func(v float64) bool { return v == 0 }},
}

// slow is how legacy stands to the workqueue with a connection or more to one peer, on cores that
// take four times as long.
func slow(conns int) func(*variant) (float64, error) {
	return func(v *variant) (float64, error) {
		a, b := v.point("legacy", 1, 1, heavy), v.point("workqueue", 1, conns, heavy)
		a.slower, b.slower = 400, 400
		return v.ratio(a, b, rateOf)
	}
}

// beside is the 99th percentile of the unbound workqueue to that of the bound one, while the cores
// that take the interrupts run programs.
func beside(v *variant) (float64, error) {
	a, b := v.point("unbound", 16, 1, middle), v.point("workqueue", 16, 1, middle)
	for _, p := range []*completionPoint{&a, &b} {
		p.vectors, p.background = p.cores/2, p.cores/2
	}
	return v.ratio(a, b, func(r completionResult) float64 { return r.p99 })
}

// masked is the 99th percentile of the unbound workqueue on the cores without programs to that on
// all, while the cores that take the interrupts run programs.
func masked(v *variant) (float64, error) {
	a := v.point("unbound", 16, 1, middle)
	a.vectors, a.background = a.cores/2, a.cores/2
	b := a
	a.unbound = coresFrom(a.cores/2, a.cores-a.cores/2)
	return v.ratio(a, b, func(r completionResult) float64 { return r.p99 })
}

// waiting is legacy's share of CPU time at its lock, saturated.
func waiting(v *variant) (float64, error) {
	r, err := v.measure(v.point("legacy", 16, 1, heavy))
	return r.lockWait, err
}

func coresScale(v *variant) (float64, error) {
	a, b := v.point("legacy", 1, 1, heavy), v.point("legacy", 1, 1, heavy)
	a.cores, b.cores, a.credits, b.credits, a.vectors, b.vectors = 16, 4, 64, 64, 0, 0
	return v.ratio(a, b, rateOf)
}

func merges(v *variant) (float64, error) {
	a := v.point("workqueue", 8*v.x.Int("cores"), 1, middle)
	b := a
	b.merged = true
	return v.ratio(a, b, interruptsOf)
}

// worst is the workqueue against legacy where legacy is ahead most: one connection or many, light
// or heavy.
func worst(v *variant) (float64, error) {
	least := 0.0
	for i, peers := range []int{1, 4, 16, 1, 16} {
		turnaround := heavy
		if i > 2 {
			turnaround = middle
		}
		r, err := against("workqueue", "legacy", peers, turnaround, rateOf)(v)
		if err != nil {
			return 0, err
		}
		if least == 0 || r < least {
			least = r
		}
	}
	return least, nil
}

func inversions(v *variant) (float64, error) {
	r, err := v.measure(v.point("legacy", 4, 1, heavy))
	return float64(r.inversions), err
}

// variants are the seeds, and costs: what is assumed, and half and twice as much of wake-ups and
// switches, and of cache lines and locks.
func (x *completionRun) variants() []*variant {
	return []*variant{{x, x.Seed, 100, 100}, {x, x.Seed + 1, 100, 100}, {x, x.Seed + 2, 100, 100}, {x, x.Seed, 50, 100}, {x, x.Seed, 200, 100},
		{x, x.Seed, 100, 50}, {x, x.Seed, 100, 200}}
}

// plan looks at each prediction.
func (x *completionRun) plan() error {
	for _, p := range predictions {
		if err := x.Next("prediction " + p.id); err != nil {
			return err
		}
		holds, fails := true, true
		var first, low, high float64
		for i, v := range x.variants() {
			n, err := p.value(v)
			if err != nil {
				return fmt.Errorf("prediction %s: %w", p.id, err)
			}
			if i == 0 {
				first, low, high = n, n, n
			}
			low, high = min(low, n), max(high, n)
			holds, fails = holds && p.holds(n), fails && p.fails(n)
		}
		verdict := "undecided"
		switch {
		case holds:
			verdict = "confirmed"
		case fails:
			verdict = "refuted"
		}
		var row table.Row
		row.Set("row", "plan").Set("prediction", p.id).Set("verdict", verdict).Set("value", first).Set("low", low).Set("high", high).Set("claim", p.claim).Set("value_is", p.what)
		x.Emit(row)
		x.Note("%s: %s: that %s (%s: %.3g, from %.3g to %.3g).", p.id, verdict, p.claim, p.what, first, low, high)
	}
	x.Note("plan: low and high are the least and the greatest value over three seeds, with half and twice the cost of wake-ups and context switches, and with half and twice that of spinlocks and cache lines.")
	return nil
}
