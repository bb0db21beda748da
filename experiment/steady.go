package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload"
)

// steady is the widest confidence interval of a rate, as a share of the rate to either side, that
// needs no remark. Most published figures are compared with a tolerance of 5 to 10 %.
const steady = 0.05

// unsteady says why the rate of a load of a run means little, and what to do; "" if it means what
// it says.
func (out *Outcome) unsteady(i int) string {
	l, r := out.loads[i], out.Results[i]
	if l.Latency || r.Failed != nil {
		return ""
	}
	more := "give it a longer duration, or a longer warmup"
	if l.Duration == 0 {
		more = "give it more messages, or a longer warmup"
	}
	measured := r.End - r.Begin
	delivered := r.Rate() * measured.Seconds()
	if r.Confidence <= steady {
		alone := len(out.loads) == 1 && l.Threads*l.QPs == 1 // and meets no other queue pair
		if n := l.Outstanding(); l.FillsPackets() && l.Duration > 0 && !alone && delivered < float64(n) {
			return fmt.Sprintf("%.1f of its messages were delivered in the measured time of %v, and it keeps %d outstanding: how these fare is not in its rate; %s.", delivered, measured, n, more)
		}
		return cmp.Or(filling(l, r, more), draining(l, r, more), out.unsettled(i, more))
	}
	switch {
	case measured <= 0:
		return "all was delivered before the measured time began; give it more messages, or a shorter warmup."
	case r.Rate() == 0:
		return fmt.Sprintf("nothing was delivered in the measured time of %v; %s.", measured, more)
	case math.IsInf(r.Confidence, 1):
		return fmt.Sprintf("nothing was delivered in some quarter of the measured time of %v, so its rate says little; %s.", measured, more)
	}
	because := fmt.Sprintf("the quarters of the measured time of %v differ so much", measured)
	if r.Confidence-r.Bursts <= steady {
		because = fmt.Sprintf("its messages come in bursts, or with pauses, of up to %.0f %% of what was delivered in the measured time of %v, so", 100*r.Bursts, measured)
	}
	return fmt.Sprintf("its rate is not steady: %s that the 95 %% confidence interval of the rate is ±%.0f %%; %s.", because, 100*r.Confidence, more)
}

// filling says that the windows of a load were not full for more than a tenth of the measured time,
// however steady its rate was; "" if they were. A thread posts as long as it has room, and only
// then takes the time to poll.
func filling(l *workload.Load, r *workload.Result, more string) string {
	if l.Churn != "" || l.Spread > 0 {
		return ""
	}
	full := r.Begin
	for i := range r.Threads {
		if r.Threads[i].Full == 0 {
			full = r.End
		}
		full = max(full, min(r.Threads[i].Full, r.End))
	}
	measured := r.End - r.Begin
	if full-r.Begin <= measured/10 {
		return ""
	}
	return fmt.Sprintf("for %v of the measured time of %v its windows were not full: a thread with room only posts, and does not poll, so that the rate is higher than later; %s.", full-r.Begin, measured, more)
}

// draining says that more receives were used up in the measured time than the target posted, so
// that the rate lasts for as long as there are some of those that were posted before the load
// began; "" if not. A target polls 16 completions at a time.
func draining(l *workload.Load, r *workload.Result, more string) string {
	used, measured := r.Rate()*(r.End-r.Begin).Seconds()*l.Taking(), r.End-r.Begin
	lost := used - float64(r.Refilled)
	if l.Transport == workload.UC || l.Transport == workload.UD || lost <= used*steady || lost <= float64(16+l.Threads*l.QPs*max(1, l.RecvPostlist)) {
		return ""
	}
	return fmt.Sprintf("%.0f receives were used up in the measured time of %v, and its target posted only %d: the rate is higher than when those posted before have been used up; %s.", used, measured, r.Refilled, more)
}

// fewSamples says that the percentiles of a load, of all its clients together, mean little, and
// what to do; "" if they do not: of fewer than 100 samples the 99 % point is the maximum.
func fewSamples(l *workload.Load, results ...*workload.Result) string {
	n := 0
	for _, r := range results {
		if r.Failed != nil {
			return ""
		}
		for i := range r.Threads {
			n += len(r.Threads[i].Latency)
		}
	}
	if !l.Latency && !l.Timed || n >= 100 {
		return ""
	}
	more := "a longer duration"
	if l.Duration == 0 {
		more = "more messages"
	}
	if n == 0 {
		return fmt.Sprintf("no message began and ended in the measured time; give it %s, or a shorter warmup.", more)
	}
	samples := "one sample"
	if n > 1 {
		samples = fmt.Sprintf("%d samples", n)
	}
	return fmt.Sprintf("its percentiles rest on %s, and the 99 %% point needs 100; give it %s.", samples, more)
}

// noteOverlap names loads that ended so early that another one ran without them.
func (out *Outcome) noteOverlap(env *Env) {
	for i, r := range out.Results {
		if early := out.endedBefore(i); len(early) > 0 && r.Failed == nil {
			env.Note("Load %s was measured also when these had ended: %s. Loads of one duration and warmup run together to the end.", out.names[i], strings.Join(early, ", "))
		}
	}
}

// endedBefore are the loads without which load i was measured for more than a twentieth of its
// time, because they had ended.
func (out *Outcome) endedBefore(i int) (early []string) {
	r := out.Results[i]
	for j, other := range out.Results {
		if other.End < r.End-(r.End-r.Begin)/20 && out.names[i] != out.names[j] {
			early = once(early, out.names[j])
		}
	}
	return early
}

// once adds a name to some that do not have it.
func once(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// neighbours are loads whose own rate is steady in the measured time beside loads whose is not: a
// load that has hardly begun, or waits for a timer, leaves a port or an engine to others that it
// takes from them later.
func (out *Outcome) neighbours() (still, moving []string) {
	for i, l := range out.loads {
		if r := out.Results[i]; r.Failed != nil || l.Latency || out.unsteady(i) != "" {
			continue
		}
		met := false
		for j, o := range out.loads {
			r := out.Results[j]
			if r.Failed != nil || out.unsteady(j) == "" || l.From != o.From && l.From != o.To && l.To != o.From && l.To != o.To {
				continue
			}
			met = true
			moving = once(moving, out.names[j])
		}
		if met {
			still = once(still, out.names[i])
		}
	}
	return still, moving
}

// noteNeighbours names them.
func (out *Outcome) noteNeighbours(env *Env) {
	if still, moving := out.neighbours(); len(still) > 0 {
		env.Note("What loads without a steady rate take from others on their hosts later is not in the rates of these: %s beside %s. Give all of them a longer duration.", strings.Join(still, ", "), strings.Join(moving, ", "))
	}
}

// noteUnreliable names loads whose requests complete when they have been sent, and may be lost
// after that.
func (out *Outcome) noteUnreliable(env *Env) {
	var names []string
	for i, l := range out.loads {
		if l.Transport == workload.UC || l.Transport == workload.UD {
			names = once(names, out.names[i])
		}
	}
	if len(names) > 0 {
		env.Note("Requests on uc and ud complete when they have been sent: the rates of these loads count all messages that were sent, whether they arrived or not: %s.", strings.Join(names, ", "))
	}
}

// RunSteady runs a scenario whose loads have a duration. If the rate of a load is not steady, or
// does not last, it runs the scenario again for twice as long after twice the warmup, up to most
// times as long; s then has these times. Notes say so, and name the loads whose rate still means
// little.
func (e *Env) RunSteady(s *Scenario, prof *profile.Profile, run, name string, most int) (*Outcome, error) {
	for times := 1; ; times *= 2 {
		out, err := e.Run(s, prof, name)
		if err == nil {
			err = s.lookAhead(e.Ctx, e.Seed, prof, e.rec, out)
		}
		if err != nil {
			return nil, err
		}
		unsteady := false
		for i := range out.Results {
			unsteady = unsteady || out.why(i) != ""
		}
		if unsteady && 2*times <= most {
			s.Traffic = slices.Clone(s.Traffic)
			for i := range s.Traffic {
				s.Traffic[i].Warmup *= 2
				s.Traffic[i].Duration *= 2
			}
			name = fmt.Sprintf("%s, %d times as long", strings.TrimSuffix(name, fmt.Sprintf(", %d times as long", times)), 2*times)
			continue
		}
		if times > 1 {
			e.NoteOf(run, fmt.Sprintf("its rate is that of %d times the duration, after %d times the warmup: before, it was not steady or did not last.", times, times))
		}
		for i := range out.Results {
			if why := out.why(i); why != "" {
				e.NoteOf(run, why)
			}
		}
		out.noteRare(e, run+": ")
		return out, nil
	}
}
