package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// Register writes that were taken before they arrived change nothing that anybody can see
// until they do, also when their page is freed in between.
func TestRegisterWritesAheadCountWhenTheyArrive(t *testing.T) {
	type sight struct {
		pages            uar.Counters
		dropped, foreign uint64
	}
	run := func(ahead bool) (seen []sight) {
		e := sim.New(sim.Options{})
		p := testParams()
		p.UAR.BFConflict, p.UAR.BFConflictCost, p.UAR.BFBusy = uar.ConflictSerialize, 30*sim.Nanosecond, 20*sim.Nanosecond
		h := newHost(t, e, p, 1)
		page := h.uar + 1
		start := e.Now()
		for i := range 6 {
			b := make([]byte, 64)
			prm.CtrlSegment(b).Set(prm.WQEOpNOP, 0, 0, 0x1234, 1, 0, 0) // of a queue that is not there
			off := uint64(page)*4096 + prm.UARBFOffset + uint64(i%2)*512
			at := e.Reserve(start + sim.Time(10*(i+1))*sim.Nanosecond)
			if i == 5 {
				b = b[:8]
			}
			if ahead {
				if !h.d.MMIOWriteAt(at, off, b) {
					t.Fatalf("write %d was not taken", i)
				}
			} else {
				e.AtPlace(at, func(uint64) { h.d.MMIOWrite(off, b) }, 0)
			}
		}
		look := func(uint64) { seen = append(seen, sight{h.d.UARTotals(), h.d.c.MMIODropped, h.d.c.DoorbellsForeign}) }
		for ns := sim.Time(5); ns < 400; ns += 5 {
			e.At(start+ns*sim.Nanosecond, look, 0)
		}
		e.At(start+45*sim.Nanosecond, func(uint64) {
			in := prm.NewIn(prm.OpDeallocUAR, 0)
			prm.DeallocUARIn(in).SetUAR(page)
			h.cmd(in)
		}, 0)
		if err := e.Run(start + sim.Microsecond); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	want, got := run(false), run(true)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%d ns after the start: taken ahead %+v, else %+v", 5*(i+1), got[i], want[i])
		}
	}
	if last := want[len(want)-1]; last.dropped != 2 || last.foreign != 4 || last.pages.Conflicts != 3 {
		t.Errorf("the writes ended as %+v", last)
	}
}
