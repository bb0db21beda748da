package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Threads that wait for a lock poll seldom. What they deliver behind the measured time is counted
// all the same: the rate that a note says would follow is that of a run which nothing ends.
func TestLockBoundLoadsGoOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 5))
	for n := range 5 {
		text := fmt.Sprintf(`
name: lock
profile: connectx-6
link: switch
cores: 96
set: {kernel.generation: static, provider.generation: static}
traffic:
  - {name: load, verb: %s, payload: 8B, threads: %d, window: %d, contexts: 1, warmup: %dus, duration: %dus}
`, []string{"write", "read"}[n%2], []int{48, 64, 96}[rng.IntN(3)], []int{16, 32, 64}[rng.IntN(3)], 50+rng.IntN(100), 60+rng.IntN(100))
		s, p := changed(t, text)
		rec := &recorder{}
		out, err := s.run(t.Context(), 1, p, rec, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		r := out.Results[0]
		until := (r.End + 150*time.Microsecond).Round(time.Microsecond)
		ahead, whole := *s, *s
		ahead.Traffic = slices.Clone(s.Traffic)
		ahead.Traffic[0].goOn(r, until)
		whole.Traffic = slices.Clone(ahead.Traffic)
		cut, err := ahead.runUntil(t.Context(), 1, p, rec.silent(), "", until+out.grace())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		full, err := whole.runUntil(t.Context(), 1, p, rec.silent(), "", 0)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got, want := cut.Results[0].Rate(), full.Results[0].Rate(); math.Abs(got/want-1) > 0.01 {
			t.Errorf("%.2f M/s are seen to follow, and %.2f do:%s", got/1e6, want/1e6, text)
		}
	}
}
