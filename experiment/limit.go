package experiment

import (
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// Keys of rows that say what limited a run: the resource, the busiest unit, and its use; and what
// --confirm found.
const (
	LimitedBy    = "limited_by"
	limitUnit    = "limit_unit"
	limitPercent = "limit_percent"
	Confirmed    = "confirmed"
	raisedRate   = "raised_rate_mps"
)

// IsFinding reports whether a word of a row is a finding of the run, not a name of the row.
func IsFinding(key string) bool { return key == LimitedBy || key == limitUnit || key == Confirmed }

// useWatch reads the use of all units at the ends of the time that a run measures.
type useWatch struct {
	before, after *sim.Usage
	known         *sim.Load // limit, once it was asked for
}

// watch sees to it that the use of the units is read at the beginning and at the end of the time
// that all loads measure. Where that is not known before, it is read as the threads begin, which is
// now, and when they have ended.
func (w *useWatch) watch(t verbs.Thread, tb *testbed.Testbed, loads []*workload.Started) {
	var begin, end time.Duration
	for i, st := range loads {
		from, to := st.Measured()
		begin = max(begin, from)
		if i == 0 || end > 0 && (to == 0 || to < end) {
			end = to
		}
	}
	if end > 0 && end <= begin {
		return // no instant is measured by all of them: from first to last
	}
	if begin > t.Now() {
		tb.UsageAt(provider.FromDuration(begin), func(u *sim.Usage) { w.before = u })
	}
	if end > 0 {
		tb.UsageAt(provider.FromDuration(end), func(u *sim.Usage) { w.after = u })
	}
}

// finish reads the use when the threads have ended, at most the time settle before now is over.
// What has been done until then was done by the end of the loads.
func (w *useWatch) finish(tb *testbed.Testbed, results []*workload.Result) {
	if w.after != nil {
		return
	}
	var end time.Duration
	for _, r := range results {
		end = max(end, r.End)
	}
	tb.UsageAt(tb.Engine().Now(), func(u *sim.Usage) {
		w.after = u
		w.after.At = min(w.after.At, max(provider.FromDuration(end), w.before.At+1))
	})
}

// limit is what the run was limited by, as far as it was watched.
func (w *useWatch) limit() (sim.Load, bool) {
	if w.before == nil || w.after == nil || w.after.At <= w.before.At {
		return sim.Load{}, false
	}
	if w.known == nil {
		l := sim.Limit(w.after.Since(w.before))
		w.known = &l
	}
	return *w.known, true
}

// noLimit is what limits a run in which nothing is busy and requests hardly come back: what was
// seen says of no limit.
const noLimit = "none"

// setLimit says in a row what the run was limited by.
func (out *Outcome) setLimit(row *table.Row) {
	out.use.set(row)
	l, ok := out.use.limit()
	if !ok {
		return
	}
	row.Set(LimitedBy, out.limitWord(l))
	if out.isLatency(l) { // no unit is busy for it
		row.Set(limitUnit, oneOutstanding).Set(limitPercent, nil)
	}
}

// oneOutstanding is what a run that latency limits has in place of a unit.
const oneOutstanding = "each thread has one request outstanding"

// isLatency reports whether the latency of requests is the limit: all loads measure it, and nothing
// is busy but threads that wait by reading memory in a loop.
func (out *Outcome) isLatency(l sim.Load) bool {
	spin := false
	for _, load := range out.loads {
		if !load.Latency {
			return false
		}
		spin = spin || load.TargetThreads() > 0 && load.Mix[0].Verb == workload.Write
	}
	return l.Resource == sim.Window || l.Resource == sim.CPU && spin && !out.sharesCores()
}

// sharesCores reports whether threads of loads wait for each other's cores.
func (out *Outcome) sharesCores() bool {
	taken := map[place]bool{}
	for _, l := range out.loads {
		for _, side := range []struct{ host, threads int }{{l.From, l.Threads}, {l.To, l.TargetThreads()}} {
			mine := map[place]bool{}
			for i := range side.threads {
				core := i
				if len(l.Cores) > 0 {
					core = l.Cores[i%len(l.Cores)]
				}
				at := place{side.host, core}
				if taken[at] || mine[at] {
					return true
				}
				mine[at] = true
			}
			for at := range mine {
				taken[at] = true
			}
		}
	}
	return false
}

// latencyLimit is the word for a run of which no unit is the limit, and in which each thread waits
// for a request before it posts the next: the rate is one per round trip.
const latencyLimit = "latency"

// limitWord is the word for what limits the run.
func (out *Outcome) limitWord(l sim.Load) string {
	if out.isLatency(l) {
		return latencyLimit
	}
	if l.Resource == sim.Window && !out.turnsOver() {
		return noLimit
	}
	return l.Resource.String()
}

// turnsOver reports whether some load delivered more in its measured time than it keeps
// outstanding: a window that has not come back once has held nothing up.
func (out *Outcome) turnsOver() bool {
	for i, l := range out.loads {
		if r := out.Results[i]; l.Latency || l.Churn != "" || r.Rate()*(r.End-r.Begin).Seconds() >= float64(l.Outstanding()) {
			return true
		}
	}
	return false
}

func (w *useWatch) set(row *table.Row) {
	if l, ok := w.limit(); ok {
		row.Set(LimitedBy, l.Resource.String()).Set(limitUnit, l.Unit).Set(limitPercent, float64(l.PerMille)/10)
	}
}

// Begin makes the use of units count from now on, or, while threads run, from the next instant at
// which all can stop.
func (b *Bed) Begin(t verbs.Thread) {
	b.use = useWatch{}
	b.TB.UsageAt(provider.FromDuration(t.Now()), func(u *sim.Usage) { b.use.before = u })
}

// Limit waits until everything before end has settled, and adds to a row what limited the run until
// then.
func (b *Bed) Limit(t verbs.Thread, row *table.Row, end time.Duration) {
	b.TB.UsageAt(provider.FromDuration(t.Now()), func(u *sim.Usage) {
		b.use.after = u
		u.At = min(u.At, provider.FromDuration(end))
	})
	t.Sleep(settle)
	b.use.set(row)
}

// limitWords are the names of what may limit a run, as a picture has them from below.
func limitWords() []string {
	var words []string
	for _, r := range sim.Resources() {
		words = append(words, r.String())
	}
	return append(words, latencyLimit, noLimit)
}
