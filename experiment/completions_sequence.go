package experiment

import (
	"fmt"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
)

// sequenceOf is how many completions a sequence picture has.
const sequenceOf = 2

// sequences draws two completions under each model from the timeline of a run, which --trace
// writes.
func (x *completionRun) sequences() error {
	all := &sim.Spans{}
	for _, m := range x.models {
		if err := x.Next("sequence: " + m); err != nil {
			return err
		}
		p := x.point(m)
		p.peers, p.conns, p.credits, p.burst, p.timeline = 1, 1, sequenceOf, true, true
		b, err := p.build(x.Env)
		if err != nil {
			return err
		}
		err = b.run(burstAt + 10*(p.handler+burstAt/10))
		b.m.EndTimeline()
		b.e.Close()
		if err != nil {
			return err
		}
		s, err := chart.NewSequence(fmt.Sprintf("%s: two completions on an idle machine", m), b.e.Spans)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		merge(all, m, b.e.Spans)
		x.Out.Drawings = append(x.Out.Drawings, Drawing{sequenceFile(m), s.Draw})
		var row table.Row
		row.Set("row", "sequence").Set("model", m).Set("cores", p.cores).Set("completions", sequenceOf).Set("first_us", s.First).Set("last_us", s.Last).Set("wakeups", float64(b.m.Wakeups))
		x.Emit(row)
	}
	x.Note("sequence: -o DIR has a picture for each model, drawn from the timeline, which --trace FILE writes for Perfetto.")
	x.rec.write(all)
	return nil
}

func sequenceFile(model string) string { return "completions-sequence-" + model }

// merge adds the spans of a run to those of others.
func merge(all *sim.Spans, run string, spans *sim.Spans) {
	tracks := map[string]int32{}
	spans.Each(func(track, name string, start, end sim.Time, arg uint64) {
		t, ok := tracks[track]
		if !ok {
			t = all.Track(run + " " + track)
			tracks[track] = t
		}
		all.Span(t, name, start, end, arg)
	})
}
