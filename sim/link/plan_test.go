package link

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// planner lets frames take effect some time after they arrive, in order, and looks for them
// only then.
type planner struct {
	sinkhole
	port    *Port
	after   sim.Time
	way     []*roce.Frame // in the order in which they were planned
	places  []sim.Place
	here    []bool
	order   []uint64 // in which they arrived
	planned int
	lost    []uint32
	refuse  bool
}

func (p *planner) Plan(f *roce.Frame, tail sim.Time) bool {
	if p.refuse {
		return false
	}
	p.planned++
	p.way, p.places, p.here = append(p.way, f), append(p.places, p.e.Reserve(tail)), append(p.here, false)
	p.e.At(tail+p.after, func(k uint64) {
		p.Settle()
		if f := p.way[k]; p.here[k] {
			p.Receive(f)
		}
	}, uint64(len(p.way)-1))
	return true
}

func (p *planner) Settle() {
	for k := len(p.order) + len(p.lost); k < len(p.way) && p.e.Passed(p.places[k]); k++ {
		p.here[k], p.order = true, append(p.order, uint64(k))
		p.port.Arrived(p.way[k], p.places[k].Time())
	}
}

func (p *planner) NextArrival() sim.Place {
	if k := len(p.order) + len(p.lost); k < len(p.way) {
		return p.places[k]
	}
	return sim.PlaceAt(sim.Never)
}

func (p *planner) Unplan(back func(f *roce.Frame, at sim.Place)) {
	for k, f := range p.way {
		if !p.here[k] {
			p.lost = append(p.lost, f.BTH().PSN())
			back(f, p.places[k])
		}
	}
}

func newPlanned(t testing.TB) (*bench, *planner) {
	b := newBench(t, test100G())
	p := &planner{sinkhole: sinkhole{e: b.e}, after: sim.Microsecond}
	b.c.End(1).Attach(p)
	p.port = b.c.End(1)
	return b, p
}

func TestPlannedFramesCostOneEvent(t *testing.T) {
	b, p := newPlanned(t)
	b.c.End(0).Send(b.frame(1, 1, ""))
	b.c.End(0).Send(b.frame(1, 2, ""))
	b.run()
	tail := 140*sim.Nanosecond + 72*byteTime
	want := []arrival{{at: tail + sim.Microsecond, psn: 1, good: true}, {at: tail + 84*byteTime + sim.Microsecond, psn: 2, good: true}}
	if !slices.Equal(p.got, want) || b.e.Events() != 2 {
		t.Errorf("took effect %+v in %d events, want %+v in 2", p.got, b.e.Events(), want)
	}
	if c := b.c.End(1).C; c.RxPackets != 2 || c.RxBytes != 2*64 {
		t.Errorf("receiver's counters %+v", c)
	}
}

// A frame that comes by Receive and planned ones arrive in their order.
func TestPlansBesideAFrameWithout(t *testing.T) {
	b, p := newPlanned(t)
	a := b.c.End(0)
	p.refuse = true
	a.Send(b.frame(1, 1, ""))
	p.refuse = false
	a.Send(b.frame(1, 2, ""))
	b.run()
	if got := p.psns(); !slices.Equal(got, []uint32{1, 2}) || p.planned != 1 {
		t.Errorf("arrived %v, %d of them planned; want 1, 2 with the last planned", got, p.planned)
	}
}

// Rules may delay and reorder: while there are any, nothing is planned.
func TestNoPlanUnderAScript(t *testing.T) {
	b, p := newPlanned(t)
	var s fault.Script
	if err := s.Add(fault.Rule{Match: fault.MatchPSN, PSN: 1, Count: 1, Action: fault.Delay, Delay: int64(sim.Microsecond)}); err != nil {
		t.Fatal(err)
	}
	b.c.End(0).SetScript(&s)
	b.c.End(0).Send(b.frame(1, 1, ""))
	b.c.End(0).Send(b.frame(1, 2, ""))
	b.run()
	if got := p.psns(); !slices.Equal(got, []uint32{2, 1}) || p.planned != 0 {
		t.Errorf("arrived %v, %d planned", got, p.planned)
	}
}

// What is on the cable when it is pulled is lost; what has arrived takes effect.
func TestPlannedFramesOnAPulledCable(t *testing.T) {
	b, p := newPlanned(t)
	b.c.End(0).Send(b.frame(1, 1, ""))
	b.e.After(100*sim.Nanosecond, func(uint64) { b.c.End(0).Send(b.frame(1, 2, "")) }, 0)
	b.e.After(200*sim.Nanosecond, func(uint64) { b.c.SetLink(false) }, 0)
	b.e.After(300*sim.Nanosecond, func(uint64) { b.c.SetLink(true) }, 0)
	b.e.After(400*sim.Nanosecond, func(uint64) { b.c.End(0).Send(b.frame(1, 3, "")) }, 0)
	b.run()
	if got := p.psns(); !slices.Equal(got, []uint32{1, 3}) || !slices.Equal(p.lost, []uint32{2}) {
		t.Errorf("arrived %v, lost %v", got, p.lost)
	}
	p.Settle()
	if c := b.c.End(1).C; c.RxPackets != 2 || c.LostInFlight != 1 {
		t.Errorf("receiver's counters %+v", c)
	}
}

// A run in lockstep takes each step by an event.
func TestLockstepPlansNothing(t *testing.T) {
	e := sim.New(sim.Options{Lockstep: true})
	c := NewCable(e, test100G(), "a", "b")
	p := &planner{sinkhole: sinkhole{e: e}}
	c.End(1).Attach(p)
	var pool roce.Pool
	tmpl := templateTo(t, 0, 1)
	c.End(0).Send(tmpl.New(&pool, roce.RCSendOnly, 1, 0, 0))
	if err := e.Run(sim.Never - 1); err != nil || p.planned != 0 || len(p.got) != 1 {
		t.Errorf("%v: %d planned, arrived %v", err, p.planned, p.got)
	}
}
