package link

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
)

// creditsKept says what is wrong with the credits of a port: those that are here and those on their
// way back are never more than there are, and when nothing is on the line or in a buffer they are
// all.
func creditsKept(p *Port, all bool) error {
	for n := range p.lanes.vl {
		v := &p.lanes.vl[n]
		sum := v.avail
		for i := v.back.head; i != v.back.tail; i++ {
			sum += v.back.at(i).blocks
		}
		if sum > p.lanes.total || all && sum < p.lanes.total {
			return fmt.Errorf("lane %d of %s: %d credits of %d", n, p.name, sum, p.lanes.total)
		}
	}
	return nil
}

// conserveRun sends a thousand packets between three hosts with a rule at each port, those of the
// switch too, and looks at the credits again and again.
func conserveRun(t *testing.T, seed uint64, rule fault.Rule, flap bool) error {
	p := testEDR()
	p.IB.Credits = 200
	e, _, ends, nodes := newSubnet(t, p, 3)
	rand := sim.NewRand(seed, "conserve")
	var ports []*Port
	for i, end := range ends {
		ports = append(ports, end, end.Peer())
		nodes[i].each = sim.Time(rand.Uint64() % uint64(400*sim.Nanosecond))
	}
	for _, q := range ports {
		var s fault.Script
		if err := s.Add(rule); err != nil {
			t.Fatal(err)
		}
		q.SetScript(&s)
	}
	var pool roce.Pool
	var failed error
	look := func(all bool) {
		for _, q := range ports {
			if err := creditsKept(q, all); err != nil && failed == nil {
				failed = fmt.Errorf("at %v: %w", e.Now(), err)
			}
		}
	}
	var send sim.Handler
	send = func(left uint64) {
		look(false)
		for i := range uint64(3) {
			to := uint16(i+1+rand.Uint64()%2)%3 + 1
			if rand.Uint64()%16 == 0 {
				to = 0xC001
			}
			ends[i].Send(ibFrame(t, &pool, uint16(i+1), to, uint8(rand.Uint64()%2), uint32(left), int(rand.Uint64()%4000)))
		}
		if flap && left%100 == 50 {
			q := ends[rand.Uint64()%3]
			q.SetLink(false)
			e.After(sim.Time(rand.Uint64()%uint64(sim.Microsecond)), func(uint64) { q.SetLink(true) }, 0)
		}
		if left > 0 {
			e.After(sim.Time(rand.Uint64()%uint64(500*sim.Nanosecond)), send, left-1)
		}
	}
	e.After(0, send, 300)
	if err := e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	for _, q := range ports { // what a rule keeps back until another one leaves
		if q.held != nil {
			q.held.Release()
		}
	}
	look(true)
	if failed == nil && pool.Live != 0 {
		failed = fmt.Errorf("%d frames leaked", pool.Live)
	}
	return failed
}

// Whatever rules do to packets on their way over a switch, and also when links go down and train
// again, a sender never gets back more credits than it has given, and in the end all of them: a
// copy, and a packet that was kept back, are sent without.
func TestCreditsAreConserved(t *testing.T) {
	for _, r := range []fault.Rule{
		{Action: fault.Mark}, {Action: fault.Drop}, {Action: fault.Corrupt}, {Action: fault.CorruptFCS}, {Action: fault.Duplicate}, {Action: fault.Reorder},
		{Action: fault.Delay, Delay: int64(700 * sim.Nanosecond)}, {Action: fault.Truncate, Keep: 50}, {Action: fault.Truncate, Keep: 1},
		{Action: fault.Edit, Edits: []fault.ByteEdit{{Offset: -roce.LRHSize, Value: 0x10}}}, // to the other lane
	} {
		for _, flap := range []bool{false, true} {
			for seed := range uint64(4) {
				r.Chance = 200_000
				if err := conserveRun(t, seed, r, flap); err != nil {
					t.Errorf("%v, flap %v, seed %d: %v", r.Action, flap, seed, err)
				}
			}
		}
	}
}
