package link

import (
	"math/rand/v2"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// A larger buffer or threshold never acts as a smaller one, at the limits of what Check allows and
// between.
func TestMoreBytesTakeLonger(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for range 2000 {
		p := Params{Bandwidth: 1_000_000 + rng.Uint64N(1_000_000)<<rng.IntN(24)}
		if p.Bandwidth > 10_000_000_000_000 {
			p.Bandwidth = 10_000_000_000_000
		}
		last := sim.Time(0)
		for _, n := range []int{1, 1500, 64 << 10, 2_305_842, 2_305_843, 2_305_844, 4 << 20, 64 << 20, 1 << 30} {
			d := p.bytesTime(n)
			if d < last || d == sim.Never {
				t.Fatalf("%d bytes at %d bit/s take %d ps, fewer take %d", n, p.Bandwidth, d, last)
			}
			last = d
		}
	}
}

// The chance of a mark rises with the queue, whatever the thresholds and the rate are.
func TestMarksRiseWithTheQueue(t *testing.T) {
	for _, rate := range []uint64{1_000_000, 100_000_000, 100_000_000_000} {
		for _, most := range []int{4 << 10, 4 << 20, 1 << 30} {
			s := &Switch{p: SwitchParams{ECNMin: 1, ECNMax: most, ECNChance: 100}}
			p := &Port{p: &Params{Bandwidth: rate}}
			last := 0
			for tenth := range 11 {
				p.rand = sim.NewRand(1, "marks")
				p.free = p.p.bytesTime(most) * sim.Time(tenth) / 10
				marked := 0
				for range 2000 {
					if s.congested(p, 0) {
						marked++
					}
				}
				if marked < last-100 || marked < 200*tenth-200 || marked > 200*tenth+200 {
					t.Errorf("%d bit/s, up to %d bytes: %d of 2000 marked at %d tenths, %d at one less", rate, most, marked, tenth, last)
				}
				last = marked
			}
		}
	}
}
