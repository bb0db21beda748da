package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestPushIdle: what is pushed while a WQE waits is taken, or with PushIdle fetched; and all of it
// is carried out, once.
func TestPushIdle(t *testing.T) {
	for _, c := range []struct {
		idle            bool
		gap             sim.Time // between pushes
		pushed, fetched uint64   // WQEs
	}{{false, 0, 4, 0}, {true, 0, 1, 3}, {true, 10 * sim.Microsecond, 4, 0}} {
		p := testParams()
		p.PushIdle, p.PUService, p.RequesterLatency = c.idle, sim.Microsecond, sim.Microsecond
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		cq := h.newCQ(7, 64)
		a, b := h.newQP(cq, cq), h.newQP(cq, cq)
		a.connect(b, defaults())
		b.connect(a, defaults())
		run(t, h.e, 5*sim.Microsecond)
		for range 4 {
			a.push(wr{op: prm.WQEOpNOP})
			run(t, h.e, c.gap)
		}
		run(t, h.e, 20*sim.Microsecond)
		for i := range uint16(4) {
			if e := cq.expect(prm.CQEReq); e.WQECounter() != i {
				t.Errorf("%v: completion of WQE %d, want %d", c, e.WQECounter(), i)
			}
		}
		cq.expectNone()
		if got := h.d.Counters(); got.WQEsPushed != c.pushed || got.WQEBlocksFetched != c.fetched {
			t.Errorf("%v: %d WQEs were taken and %d fetched", c, got.WQEsPushed, got.WQEBlocksFetched)
		}
	}
}
