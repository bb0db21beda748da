package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload"
)

// In the measured time nobody sees whether a rate lasts: a queue that fills or drains for longer
// has a steady rate meanwhile. One that holds n messages cannot change a rate by a share s for more
// than n/s messages, so that a load which has completed turnovers times what its queues hold has no
// such change of more than steady before it. Another one is looked at behind its measured time.
const (
	turnovers = 1 / steady
	// lookedAt is the measured time below which a load is looked at for the sake of others, and how
	// long it is looked at at most, or for as long as it was measured.
	lookedAt = time.Millisecond
	// leastAhead is how long a load is looked at at least.
	leastAhead = 100 * time.Microsecond
	// leastGrace and mostGrace bound grace.
	leastGrace = 50 * time.Microsecond
	mostGrace  = 20 * time.Millisecond
)

// grace is how long after the look completions still count of what was delivered in it. A thread
// posts as long as it has room, and only then polls: one that waits for a lock at each post, behind
// threads that get it oftener, takes as long to that as its windows last at its own rate.
func (out *Outcome) grace() time.Duration {
	long := leastGrace
	for i, l := range out.loads {
		for k := range out.Results[i].Threads {
			if rate := out.Results[i].Threads[k].Rate(); rate > 0 {
				turn := float64(l.Outstanding()) / float64(l.Threads) / rate * 1e9 // ns
				long = max(long, time.Duration(min(2*turn, float64(mostGrace))))
			}
		}
	}
	return long
}

// later is what a load delivers behind its measured time, if it goes on.
type later struct {
	rate float64       // messages per second
	long time.Duration // in which that is measured
	err  error         // with which the run ends in it
}

// unlike says how a load that measured r goes on, where that is neither in the confidence interval
// of its rate nor within 5 % of it.
func (a *later) unlike(r *workload.Result) string {
	switch measured := r.End - r.Begin; {
	case a == nil || a.err == nil && math.Abs(a.rate/r.Rate()-1) <= max(r.Confidence, steady):
		return ""
	case a.err != nil:
		return fmt.Sprintf("its rate does not last: in the %v after the measured time of %v the run ends, if all loads go on: %v.", a.long.Round(time.Microsecond), measured, a.err)
	default:
		return fmt.Sprintf("its rate does not last: it is %s M/s in the measured time of %v, and %s in the next %v, if all loads go on; give it a longer duration, or a longer warmup.",
			table.Short(r.Rate()/1e6), measured, table.Short(a.rate/1e6), a.long.Round(time.Microsecond))
	}
}

// holds is how many messages the queues of a load hold: requests that are outstanding, and receives
// posted before it began.
func holds(l *workload.Load) int {
	n := l.Outstanding()
	if l.Taking() > 0 {
		n += l.Threads / l.QPShare * l.QPs * l.RecvDepth
	}
	return n
}

// young is how much longer a load must go on until it has completed turnovers times what its queues
// hold; 0 if it has.
func young(l *workload.Load, r *workload.Result) time.Duration {
	if l.Latency || l.Churn != "" || r.Failed != nil {
		return 0
	}
	need := float64(turnovers * holds(l))
	for i := range r.Threads {
		need -= float64(r.Threads[i].Completed)
	}
	if need <= 0 {
		return 0
	}
	return time.Duration(max(float64(leastAhead), min(need/max(r.Rate(), 1)*1e9, float64(max(lookedAt, r.End-r.Begin)))))
}

// brief are the loads that were measured for a short time, or are young, and of whose rate there is
// nothing to say.
func (out *Outcome) brief() (loads []int) {
	still, _ := out.neighbours()
	for i, l := range out.loads {
		r := out.Results[i]
		if !l.Latency && l.Churn == "" && r.Failed == nil && (r.End-r.Begin < lookedAt || young(l, r) > 0) && out.unsteady(i) == "" && !slices.Contains(still, l.Name) && len(out.endedBefore(i)) == 0 {
			loads = append(loads, i)
		}
	}
	return loads
}

// lookAhead runs the scenario again, with all loads going on, for what those deliver then that are
// brief while one of them is young. The run that is out stays as it is.
func (s *Scenario) lookAhead(ctx context.Context, seed uint64, prof *profile.Profile, rec *recorder, out *Outcome) error {
	loads := out.brief()
	more := time.Duration(0)
	for i, l := range out.loads {
		more = max(more, young(l, out.Results[i]))
	}
	if len(loads) == 0 || more == 0 || out.breaks || ctx.Err() != nil {
		return nil
	}
	until := time.Duration(0)
	for _, i := range loads {
		until = max(until, out.Results[i].End+more)
	}
	until = until.Round(time.Microsecond)
	again := *s
	again.Traffic = slices.Clone(s.Traffic)
	for i := range again.Traffic {
		again.Traffic[i].goOn(out.Results[i], until)
	}
	next, err := again.runUntil(ctx, seed, prof, rec.silent(), "", until+out.grace())
	if errors.Is(err, ErrInterrupted) {
		return err
	}
	out.later = make([]*later, len(out.loads))
	for _, i := range loads {
		out.later[i] = &later{long: until - out.Results[i].End, err: err}
		if err == nil {
			out.later[i].rate = next.Results[i].Rate()
		}
	}
	return nil
}

// goOn lets a load that measured r go on until a time, and measures it from the end of r on.
func (t *Traffic) goOn(r *workload.Result, until time.Duration) {
	begin := r.Begin
	if r.End < until {
		begin = r.End
	}
	t.Messages = 0
	t.Warmup += 1000 * int64(begin-r.Begin)
	t.Duration = 1000 * int64(max(until-begin, time.Microsecond))
}

// why says why the rate of a load means little, by what was seen in its measured time and behind
// it; "" if it means what it says.
func (out *Outcome) why(i int) string {
	why := out.unsteady(i)
	if out.later != nil {
		why = cmp.Or(why, out.later[i].unlike(out.Results[i]))
	}
	return why
}

// fewFaults is how often a fault that comes at random must have come for its share of a rate to be
// more than chance.
const fewFaults = 20

// noteRare names rules of faults that come at random, and came so seldom that a rate says little of
// them, or that have not come yet.
func (out *Outcome) noteRare(env *Env, run string) {
	if !slices.ContainsFunc(out.loads, func(l *workload.Load) bool {
		return !l.Latency && l.Churn == "" && l.Transport != workload.UC && l.Transport != workload.UD // they send on whatever is lost
	}) {
		return
	}
	for i, r := range out.rules {
		acted := out.acted[i]
		random := r.Chance > 0 && r.Chance < 1e6
		if out.met[i] == 0 || acted >= fewFaults || r.Count > 0 && acted >= r.Count || !random && (r.Skip == 0 || acted > 0) {
			continue
		}
		env.Note("%sFault %d (%v) acted on %d of the frames of this run: what it costs in a longer time is not in the rates. Give the loads a duration in which it acts %d times.", run, i+1, r.Action, acted, fewFaults)
	}
}
