package dcqcn

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

const top = 100_000_000_000

// params are plausible values, with a byte counter that few packets reach.
func params() *Params {
	return &Params{
		DCQCN: true, ClampAfterTimeInc: true, MinTimeBetweenCNPs: 4 * sim.Microsecond, CNPDSCP: 48,
		RPGTimeReset: 300 * sim.Microsecond, RPGByteReset: 32767, RPGThreshold: 1, RPGMinRate: 1_000_000,
		RPGAIRate: 5_000_000, RPGHAIRate: 50_000_000, RPGGd: 11, RPGMinDecFac: 50,
		DCETCPG: 1019, DCETCPRTT: sim.Microsecond, RateReducePeriod: 4 * sim.Microsecond, InitialAlpha: 1023,
	}
}

// TestReaction checks the first steps against the algorithm, computed by hand: alpha is
// 1023/1024, so a cut takes nearly half, and recovery halves the distance.
func TestReaction(t *testing.T) {
	p := params()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	now := 10 * sim.Microsecond
	r := Begin(p, top, now)
	if !r.Cut(p, now) || r.rate != top-top*1023>>11 || r.target != top {
		t.Fatalf("first cut to %d, target %d", r.rate, r.target)
	}
	first := r.rate
	if r.Cut(p, now+3*sim.Microsecond) || r.rate != first {
		t.Fatalf("a cut within the period: %d", r.rate)
	}
	if r.RaiseAt() != now+300*sim.Microsecond {
		t.Fatalf("the timer is set for %v", r.RaiseAt())
	}
	now = r.RaiseAt()
	if r.RaiseByTime(p, top, now) || r.target != top || r.rate != (first+top+1)/2 {
		t.Fatalf("first raise to %d, target %d", r.rate, r.target)
	}
	// 300 periods have left 1023 * (1019/1024)^300 of alpha: some 23 %.
	before := r.rate
	if r.Cut(p, now); r.target != before || r.rate < before-before*130/1024 || r.rate > before-before*105/1024 {
		t.Fatalf("second cut from %d to %d, target %d", before, r.rate, r.target)
	}
	// The rate never falls below the minimum, whatever comes.
	for range 200 {
		now += 4 * sim.Microsecond
		r.Cut(p, now)
	}
	if r.rate != p.RPGMinRate {
		t.Errorf("the rate fell to %d", r.rate)
	}
}

// TestBytesRaise: the byte counter raises the rate too, and the reaction point ends within a
// 1024th of the top.
func TestBytesRaise(t *testing.T) {
	p := params()
	r := Begin(p, top, 0)
	r.Cut(p, 0)
	packets, ended := 0, false
	for ; !ended && packets < 1000; packets++ {
		ended = r.Spend(p, top, 0, 4096+24, 4096)
	}
	// 8 packets reach the byte counter's limit; halving the distance from a half takes nine raises.
	if packets != 72 || r.Next() == 0 {
		t.Errorf("the rate was back after %d packets, the next may leave at %v", packets, r.Next())
	}
}
