package experiment

import (
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// sampled are the kinds of rows of what a run was sampled for, and of how its messages are
// distributed: too many for a table, and of no load.
var sampled = []string{"series", "queue", "switch", "histogram"}

// mostSamples bounds the samples of a run: a longer one is not recorded to its end, and says so.
const mostSamples = 100_000

// series are what a run was sampled for, each Every.
type series struct {
	every time.Duration
	began time.Duration
	times []time.Duration
	bytes [][]uint64 // by sample and load, delivered by then; nil of a load that cannot be read
	known []bool     // by load
	ports [][]testbed.Egress
	over  bool // the loads have ended
}

// sample reads loads and ports now and every so often, until the loads have ended.
func (r *series) sample(t verbs.Thread, tb *testbed.Testbed, out *Outcome) {
	r.began = t.Now()
	r.known = make([]bool, len(out.started))
	for i := range r.known {
		r.known[i] = true
	}
	r.next(tb, out, r.began)
}

func (r *series) next(tb *testbed.Testbed, out *Outcome, at time.Duration) {
	tb.DeliveriesAt(at, func(of func(host int, qpn uint32) (verbs.Delivered, bool)) {
		if !r.over && r.read(tb, out, at, of) {
			r.next(tb, out, at+r.every)
		}
	})
}

// end reads them a last time, now.
func (r *series) end(t verbs.Thread, tb *testbed.Testbed, out *Outcome) {
	r.over = true
	at := t.Now()
	tb.DeliveriesAt(at, func(of func(host int, qpn uint32) (verbs.Delivered, bool)) {
		if n := len(r.times); n == 0 || at > r.times[n-1] {
			r.read(tb, out, at, of)
		}
	})
}

// read takes a sample, if there is room for it.
func (r *series) read(tb *testbed.Testbed, out *Outcome, at time.Duration, of func(host int, qpn uint32) (verbs.Delivered, bool)) bool {
	if len(r.times) > mostSamples {
		return false
	}
	bytes := make([]uint64, len(out.started))
	for i, st := range out.started {
		n, ok := st.Delivered(of)
		bytes[i], r.known[i] = n, r.known[i] && ok
	}
	r.times, r.bytes, r.ports = append(r.times, at), append(r.bytes, bytes), append(r.ports, tb.Egresses())
	return true
}

// emit adds the rows: of kind series what each load of the file delivered until a sample since the
// one before, of kind queue the ports of the switch that had something to do, and of kind switch
// all ports together, with the pause frames of priority flow control that it sent.
func (r *series) emit(env *Env, sets []set) {
	if len(r.times) > mostSamples {
		env.Note("--every: the run is longer than %d samples, and the rest was not recorded: give a longer time.", mostSamples)
	}
	at := func(k int) float64 { return (r.times[k] - r.began).Seconds() * 1e6 }
	if len(sets) > 1 {
		sets = append(slices.Clone(sets), set{"all", 0, len(r.known)})
	}
	for _, g := range sets {
		if slices.Contains(r.known[g.first:g.end], false) {
			env.Note("--every: what load %s has delivered at an instant cannot be told from bytes, so it has no rows.", g.name)
			continue
		}
		for k := 1; k < len(r.times); k++ {
			n := 0.0
			for i := g.first; i < g.end; i++ {
				n += float64(r.bytes[k][i]) - float64(r.bytes[k-1][i])
			}
			var row table.Row
			env.Emit(*row.Set("row", "series").Set("name", g.name).Set("at_us", at(k)).Set("gbps", n*8/(r.times[k]-r.times[k-1]).Seconds()/1e9))
		}
	}
	for p := range r.first() {
		if !r.eventful(p) {
			continue
		}
		for k := 1; k < len(r.ports); k++ {
			now, before := r.ports[k][p], r.ports[k-1][p]
			var row table.Row
			row.Set("row", "queue").Set("name", "to "+now.Name).Set("at_us", at(k)).Set("queue_bytes", now.Queue)
			env.Emit(*row.Set("dropped", int(now.Drops-before.Drops)).Set("marked", int(now.Marks-before.Marks)))
		}
	}
	for k := 1; k < len(r.ports) && len(r.ports[0]) > 0; k++ {
		now, before := sumOf(r.ports[k]), sumOf(r.ports[k-1])
		var row table.Row
		row.Set("row", "switch").Set("name", "switch").Set("at_us", at(k)).Set("queue_bytes", now.Queue).Set("dropped", int(now.Drops-before.Drops))
		env.Emit(*row.Set("marked", int(now.Marks-before.Marks)).Set("pauses", int(now.Pauses-before.Pauses)))
	}
}

// first are the ports as they were read first.
func (r *series) first() []testbed.Egress {
	if len(r.ports) == 0 {
		return nil
	}
	return r.ports[0]
}

// eventful says whether a port dropped or marked something, or let more wait than the one frame
// that every port has on its line now and then.
func (r *series) eventful(p int) bool {
	const frame = 5000
	first, last := r.ports[0][p], r.ports[len(r.ports)-1][p]
	return last.Drops > first.Drops || last.Marks > first.Marks || slices.ContainsFunc(r.ports, func(all []testbed.Egress) bool { return all[p].Queue > frame })
}

func sumOf(ports []testbed.Egress) (sum testbed.Egress) {
	for _, e := range ports {
		sum.Queue, sum.Drops, sum.Marks, sum.Pauses = sum.Queue+e.Queue, sum.Drops+e.Drops, sum.Marks+e.Marks, sum.Pauses+e.Pauses
	}
	return sum
}

// seriesPlots are the pictures of --every.
func seriesPlots(name string) []chart.Plot {
	return []chart.Plot{
		{File: name + "-series", Title: name + ": what was delivered over time", X: "at_us", Y: "gbps", XLabel: "time, us", YLabel: "Gb/s", Series: "name", Only: map[string]any{"row": "series"}, Between: true},
		{File: name + "-queue", Title: name + ": queues of the switch over time", X: "at_us", Y: "queue_bytes", XLabel: "time, us", YLabel: "bytes that wait", Series: "name", Only: map[string]any{"row": "queue"}, Between: true},
		{File: name + "-pauses", Title: name + ": pause frames that the switch sent", X: "at_us", Y: "pauses", XLabel: "time, us", YLabel: "pause frames since the point before", Series: "name", Only: map[string]any{"row": "switch"}, Between: true},
	}
}
