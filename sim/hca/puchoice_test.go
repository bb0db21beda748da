package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestPUChoice: queue pairs whose numbers are equal modulo the processing units take turns at one
// of them, message by message, however many are free, if the parameters say so.
func TestPUChoice(t *testing.T) {
	for _, c := range []struct {
		choice PUChoice
		other  int // queue pair beside number 0; those of the rig are two apart
		want   sim.Time
	}{{PUAny, 1, 20}, {PUAny, 2, 20}, {PUByNumber, 1, 20}, {PUByNumber, 2, 40}} {
		p := testParams()
		p.PUs, p.PUChoice, p.PUService, p.RequesterLatency = 4, c.choice, sim.Microsecond, sim.Microsecond
		g := newAtomicRig(t, p, 3)
		began := g.h.e.Now()
		used := []*tQP{g.from[0], g.from[c.other]}
		for range 20 {
			for _, q := range used {
				q.post(wr{op: prm.WQEOpRDMAWrite, raddr: g.r.va, rkey: g.r.rkey, sges: []sge{g.r.sge(40000, 8)}})
			}
		}
		var last [2]sim.Time
		for done := [2]int{}; done != [2]int{20, 20}; {
			run(t, g.h.e, 100*sim.Nanosecond)
			for i, q := range used {
				for q.scq.poll() != nil {
					done[i]++
					last[i] = g.h.e.Now() - began
				}
			}
			if g.h.e.Now() > began+sim.Millisecond {
				t.Fatalf("%v: %d completions after a millisecond", c, done)
			}
		}
		if d := max(last[0], last[1]) / sim.Microsecond; d < c.want || d > c.want+4 {
			t.Errorf("%v: 40 WRITEs took %d us, want %d to %d", c, d, c.want, c.want+4)
		}
		if d := last[0] - last[1]; d < -2*sim.Microsecond || d > 2*sim.Microsecond {
			t.Errorf("%v: one queue pair was done %v after the other", c, d)
		}
	}
}
