package simulator_test

import (
	"runtime/debug"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/random"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

// BenchmarkPrograms: drawn programs of 20 steps, which are some 75 judged calls, judged by the
// model.
func BenchmarkPrograms(b *testing.B) {
	target, err := simulator.New(simulator.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as conform random does
	side := &random.Local{Target: target, Seed: 1}
	var programs []random.Program
	for n := uint64(0); len(programs) < 8*random.Batch; n++ {
		if p := random.NewDraw(all).Program(1, n); len(p.Steps) == 20 {
			programs = append(programs, p)
		}
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%random.Batch == 0 {
			batch := programs[n%len(programs):][:random.Batch]
			if _, d, err := random.Judge(batch, []random.Side{side}, nil); err != nil || d != nil {
				b.Fatal(err, d)
			}
		}
	}
}
