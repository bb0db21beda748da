//go:build linux && amd64

package exec

import (
	"testing"
)

// TestPushOfAnInterruptedProgram: where pushes are torn, one whose rest comes late is waited for. Elsewhere it passes for a
// doorbell, and a rest that never comes ends the wait.
func TestPushOfAnInterruptedProgram(t *testing.T) {
	for _, tc := range []struct {
		torn  bool
		after int
		want  bool
	}{
		{false, 1, true},
		{false, pushSpins, true},
		{false, pushSpins + 1, false},
		{true, pushSpins + 1, true},
		{true, pushSpins + 100, true},
	} {
		looks := 0
		if got := awaitPush(tc.torn, func() bool { looks++; return looks == tc.after }); got != tc.want {
			t.Errorf("torn %v, the rest after %d looks: %v", tc.torn, tc.after, got)
		}
	}
}
