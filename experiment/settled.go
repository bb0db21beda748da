package experiment

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/workload"
)

// A rate may be steady while something that it depends on still fills or drains: pages that have
// not been touched, queue pairs that have not begun to wait for a timer, a verb of a mix that has
// not had its turn. Each has a sign in the measured time by which it is found.

// oftenEnough is how often something must have come for its share of a rate to be right within
// steady.
const oftenEnough = turnovers

// unsettled says what has not settled of a load whose rate was steady in the measured time; "" if
// nothing is known.
func (out *Outcome) unsettled(i int, more string) string {
	l, r := out.loads[i], out.Results[i]
	return cmp.Or(rarelyPosted(l, r, more), out.faulting(i, more), standing(l, r, more), out.outwaited(i))
}

// rarelyPosted says that a verb of the load's mix has come so seldom that its share of the messages
// is chance.
func rarelyPosted(l *workload.Load, r *workload.Result, more string) string {
	verb, share := l.Rarest()
	measured := r.End - r.Begin
	each := share * r.Rate() * measured.Seconds() / float64(l.Threads)
	if l.Churn != "" || share == 1 || each >= oftenEnough {
		return ""
	}
	return fmt.Sprintf("each of its threads had %.1f messages with %s delivered in the measured time of %v: what that verb costs in a longer time is not in its rate; %s.", each, verb, measured, more)
}

// watchPaging reads the use of the units at the ends of the measured time of each load whose pages
// come on demand.
func (out *Outcome) watchPaging(watch func(w *useWatch, i int)) {
	out.paging = make([]*useWatch, len(out.loads))
	for i, l := range out.loads {
		if l.OnDemand != workload.Pinned {
			out.paging[i] = &useWatch{before: out.use.before}
			watch(out.paging[i], i)
		}
	}
}

// faulting says that devices waited for page faults of a load's hosts in more of the measured time
// than changes nothing. Pages come once.
func (out *Outcome) faulting(i int, more string) string {
	if out.paging == nil || out.paging[i] == nil || out.paging[i].before == nil || out.paging[i].after == nil {
		return ""
	}
	l, r, mille := out.loads[i], out.Results[i], 0
	for _, u := range out.paging[i].after.Since(out.paging[i].before) {
		from, to := strings.HasPrefix(u.Unit, fmt.Sprintf("host%d/", l.From)), strings.HasPrefix(u.Unit, fmt.Sprintf("host%d/", l.To))
		if u.Resource == sim.Paging && (from && l.OnDemandAt != workload.Peer || to && l.OnDemandAt != workload.Local) {
			mille = max(mille, u.PerMille)
		}
	}
	if float64(mille) <= 1000*steady {
		return ""
	}
	return fmt.Sprintf("for %d %% of the measured time of %v a device waited for page faults: its rate is that of pages that are touched for the first time, and another one follows when all have come; %s.", (mille+5)/10, r.End-r.Begin, more)
}

// standing says that queue pairs of a load have begun to wait in the measured time, or to get on,
// and others made up for them.
func standing(l *workload.Load, r *workload.Result, more string) string {
	n := float64(l.Threads / l.QPShare * l.QPs)
	measured := r.End - r.Begin
	if each := r.Rate() * measured.Seconds() / n; len(r.Moving) == 0 || each < leastMoves*float64(len(r.Moving)) {
		return ""
	}
	mean := 0.0
	for _, m := range r.Moving {
		mean += float64(m) / float64(len(r.Moving))
	}
	first, last := r.Moving[0], r.Moving[len(r.Moving)-1]
	chance := 2 * math.Sqrt(mean*max(0, 1-mean/n))
	if math.Abs(float64(last-first)) <= max(steady*n, chance) {
		return ""
	}
	return fmt.Sprintf("%d of its %.0f queue pairs got something delivered in the first quarter of the measured time of %v, and %d in the last: the rate is steady only as long as enough of them do not wait; %s.", first, n, measured, last, more)
}

// leastMoves is how many messages a queue pair has in a quarter of the measured time on average for
// one that has none to stand out.
const leastMoves = 8

// waits is how often a wait for the ACK timer must fit into the measured time for the quarters of
// that to tell of it.
const waits = 4

// outwaited says that the measured time of a load whose frames may be lost is short against what a
// queue pair waits for its ACK timer. A rate that was steady in it is that of the time before the
// first wait, or of those that do not wait yet.
func (out *Outcome) outwaited(i int) string {
	l, r := out.loads[i], out.Results[i]
	measured := r.End - r.Begin
	wait := out.ackTimeout(l)
	if l.Churn != "" || l.Transport == workload.UC || l.Transport == workload.UD || measured >= waits*wait || out.breaks || !out.loses() {
		return ""
	}
	or := ""
	if wait > time.Duration(out.device.FirstRetransmission(1)/sim.Nanosecond) {
		or = ", or a smaller ack_timeout"
	}
	return fmt.Sprintf("frames are lost, and a queue pair that waits for its ACK timer does so for %v: what such waits cost is not in a rate that was steady in a measured time of %v; give it a duration of %v or more%s.", readable(wait), measured, readable(waits*wait), or)
}

// readable is a time without digits that say nothing.
func readable(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// ackTimeout is how long a queue pair of a load waits for an answer before it sends again; 0 if it
// has no timer.
func (out *Outcome) ackTimeout(l *workload.Load) time.Duration {
	code := uint8(workload.AckTimeout)
	if l.AckTimeout != nil {
		code = *l.AckTimeout
	}
	if code == 0 {
		return 0
	}
	return time.Duration(out.device.FirstRetransmission(code) / sim.Nanosecond)
}

// loses reports whether frames were lost at random, or for want of room in a switch.
func (out *Outcome) loses() bool {
	for i, r := range out.rules {
		if takes[r.Action] && out.acted[i] > 0 && r.Chance > 0 && r.Chance < 1e6 {
			return true
		}
	}
	n, _ := out.Counter("switch.tx_discards_phy")
	return n > 0
}

// takes are the faults after which a frame has to be sent again.
var takes = map[fault.Action]bool{fault.Drop: true, fault.Corrupt: true, fault.CorruptFCS: true, fault.Truncate: true, fault.Spoil: true}
