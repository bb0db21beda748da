package oracle_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// TestAdaptiveRetransmission has a request of which nobody hears anything sent again at the waits
// that were published of cards, and at others: a card that may retransmit adaptively is told from
// one whose timer is exact, and from one that just sends again.
func TestAdaptiveRetransmission(t *testing.T) {
	const ms = int64(1e6)
	published := []int64{9, 15, 27, 51, 99, 171, 315} // in units of 1.4 ms after the request
	for _, tc := range []struct {
		name     string
		at       func(i int) int64 // of the i-th retransmission, behind the request
		n        int
		adaptive bool
		want     []string
	}{
		{"the published points", func(i int) int64 { return published[i] * 4096 << 10 / 3 }, len(published), true, nil},
		{"on a device with an exact timer", func(i int) int64 { return published[i] * 4096 << 10 / 3 }, 1, false, []string{"OR-041 violation"}},
		{"the shortest published wait", func(i int) int64 { return int64(i+1) * 41 * ms / 10 }, 18, true, nil},
		{"sooner than any card", func(i int) int64 { return int64(i+1) * 3 * ms }, 1, true, []string{"OR-041 violation"}},
		{"more often than any card", func(i int) int64 { return int64(i+1) * 10 * ms }, 20, true, []string{"OR-047 violation"}},
		{"a regular wait of twice the floor", func(i int) int64 { return 2 * roce.AckTimeout(16) }, 1, true, nil},
		{"the same with an exact timer", func(i int) int64 { return 2 * roce.AckTimeout(16) }, 1, false, []string{"OR-042 warning"}},
	} {
		c := load(t, filepath.Join(captures, "6.1", "send_only.pcap"))
		first := c.Frames[0]
		c.Frames = c.Frames[:1]
		for i := range tc.n {
			f := first
			f.Number, f.Time = i+2, first.Time+tc.at(i)
			c.Frames = append(c.Frames, f)
		}
		o := oracle.Options{Complete: true, Timeout: 14, RetryCount: ref(7), Adaptive: tc.adaptive}
		got := kinds(oracle.Judge(c, o))
		for _, rule := range []string{"OR-041 violation", "OR-047 violation", "OR-042 warning"} {
			if slices.Contains(got, rule) != slices.Contains(tc.want, rule) {
				t.Errorf("%s: verdicts %v, want of %s: %v", tc.name, got, rule, tc.want)
			}
		}
	}
}
