//go:build linux && amd64

package exec

import (
	"math"
	"testing"
)

// TestLargestLimit: four times the largest number of objects is no negative one.
func TestLargestLimit(t *testing.T) {
	for _, n := range []int{math.MaxInt, math.MaxInt/allProcesses + 1, 1} {
		if l := newLimits(&Config{LimitObjects: n}); l.objects.Most < min(n, math.MaxInt/allProcesses) {
			t.Errorf("with %d objects in one process all of them may have %d", n, l.objects.Most)
		}
	}
}

func TestSizeOfALimit(t *testing.T) {
	for n, want := range map[uint64]string{4096: "4096 bytes", 3 << 19: "1572864 bytes", 4 << 30: "4096 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
