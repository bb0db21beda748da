package link

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// laggard is a receiver that takes packets out of its buffer one by one. Each takes effect long
// after that, and is looked at only then if it was planned.
type laggard struct {
	sinkhole
	port        *Port
	each, after sim.Time
	free, plan  sim.Time // the buffer's exit is free; as far as is foreseen
	way         []*roce.Frame
	places      []sim.Place
	here        int // of those have arrived
}

// Drained implements Drainer.
func (r *laggard) Drained() sim.Time { return r.free }

// Receive implements Receiver.
func (r *laggard) Receive(f *roce.Frame) {
	r.free = max(r.free, r.e.Now()) + r.each
	r.way = append(r.way, f)
	r.e.At(r.free+r.after, r.effect, uint64(len(r.way)-1))
}

func (r *laggard) effect(k uint64) {
	r.Settle()
	r.sinkhole.Receive(r.way[k])
}

// Plan implements Planner.
func (r *laggard) Plan(f *roce.Frame, tail sim.Time) bool {
	r.plan = max(r.plan, tail) + r.each
	r.way, r.places = append(r.way, f), append(r.places, r.e.Reserve(tail))
	r.e.At(r.plan+r.after, r.effect, uint64(len(r.way)-1))
	return true
}

// Settle implements Planner.
func (r *laggard) Settle() {
	for r.here < len(r.places) && r.e.Passed(r.places[r.here]) {
		r.free = max(r.free, r.places[r.here].Time()) + r.each
		r.here++
		r.port.Arrived(r.way[r.here-1], r.free)
	}
}

// NextArrival implements Planner.
func (r *laggard) NextArrival() sim.Place {
	if r.here < len(r.places) {
		return r.places[r.here]
	}
	return sim.PlaceAt(sim.Never)
}

// Unplan implements Planner.
func (r *laggard) Unplan(func(*roce.Frame, sim.Place)) {}

// laggardRun sends packets in bursts on two lanes, and returns when they took effect, the sender's
// stalls and their time, and the events.
func laggardRun(t *testing.T, each sim.Time, lockstep bool) (got []arrival, stalls uint64, stalled sim.Time, events uint64) {
	p := testEDR()
	p.IB.Credits, p.IB.VLs = 66, 2
	e := sim.New(sim.Options{Seed: 1, Lockstep: lockstep})
	c := NewCable(e, p, "a", "b")
	rx := &laggard{sinkhole: sinkhole{e: e}, port: c.End(1), each: each, after: 3 * sim.Microsecond}
	c.End(0).Attach(&sinkhole{e: e})
	c.End(1).Attach(rx)
	var pool roce.Pool
	for i := range uint64(200) {
		e.At(sim.Time(i/50)*7*sim.Microsecond, func(i uint64) {
			c.End(0).Send(ibFrame(t, &pool, 1, 2, uint8(i/3%2), uint32(i), 64+int(i*37%1500)&^3))
		}, i)
	}
	if err := e.Run(sim.Never - 1); err != nil {
		t.Fatal(err)
	}
	if n := c.End(1).C.RxPackets; n != 200 || pool.Live != 0 {
		t.Errorf("%d counted, %d frames leaked", n, pool.Live)
	}
	l := c.End(0).lanes
	return rx.got, l.Stalls, l.StallFor, e.Events()
}

// Packets whose arrival is planned give back their credits as others do, whether the buffer's exit
// or the line is what is short. Where it is the buffer they cost fewer events: when credits come
// back is known before somebody lacks them.
func TestPlannedPacketsReturnCreditsInTime(t *testing.T) {
	for _, each := range []sim.Time{0, 10 * sim.Nanosecond, 90 * sim.Nanosecond, 500 * sim.Nanosecond} {
		want, stalls, stalled, most := laggardRun(t, each, true)
		got, s, f, events := laggardRun(t, each, false)
		if len(want) != 200 || !slices.Equal(got, want) || s != stalls || f != stalled {
			t.Errorf("each %v: %d packets, stalls %d for %v; in lockstep %d, %d for %v", each, len(got), s, f, len(want), stalls, stalled)
		}
		if stalls == 0 || each > 50*sim.Nanosecond && events >= most {
			t.Errorf("each %v: %d stalls, %d events, in lockstep %d", each, stalls, events, most)
		}
	}
}
