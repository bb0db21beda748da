package link

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// TestSwitchMarks: two senders of one egress fill its queue; frames of a sender that heeds
// marks are marked above the upper threshold, never below the lower one, and between them
// now and then; those of one that does not are left alone. The ICRC stays right.
func TestSwitchMarks(t *testing.T) {
	for _, c := range []struct {
		name        string
		p           SwitchParams
		tc          uint8
		least, most int
	}{
		{"off", SwitchParams{}, 2, 0, 0},
		{"above", SwitchParams{ECNMin: 5000, ECNMax: 5000}, 2, 60, 75},
		{"not heeded", SwitchParams{ECNMin: 5000, ECNMax: 5000}, 0, 0, 0},
		{"never reached", SwitchParams{ECNMin: 1 << 20, ECNMax: 1 << 20}, 2, 0, 0},
		{"by chance", SwitchParams{ECNMin: 1, ECNMax: 60_000, ECNChance: 50}, 2, 5, 30},
	} {
		c.p.Latency, c.p.Buffer = sim.Nanosecond, 1<<20
		s := newStar(t, c.p)
		s.send(2, 0, 0, "") // so that 2 is known
		payload := bytes.Repeat([]byte{'x'}, 1000)
		s.e.After(sim.Microsecond, func(uint64) {
			for psn := range uint32(40) {
				for from := range 2 {
					tmpl := templateTo(t, from, 2)
					f := tmpl.New(&s.pool, roce.RCSendOnly, psn, len(payload), 0)
					copy(f.Payload(), payload)
					p, err := f.Decode()
					if err != nil {
						t.Fatal(err)
					}
					p.IPv4().SetTOS(c.tc)
					p.IPv4().SetChecksum(p.IPv4().ComputeChecksum())
					s.ends[from].Send(f)
				}
			}
		}, 0)
		s.run()
		marked := 0
		for _, a := range s.rx[2].got {
			if !a.good {
				t.Fatalf("%s: a wrong ICRC", c.name)
			}
			if a.ecn == 3 {
				marked++
			}
		}
		if marked != int(s.sw.Marked) || marked < c.least || marked > c.most {
			t.Errorf("%s: %d of %d marked, counter %d", c.name, marked, len(s.rx[2].got), s.sw.Marked)
		}
	}
}
