//go:build linux && amd64

package exec

import (
	"strings"
	"testing"
)

// TestMemlock: who has no CAP_IPC_LOCK and is given a limit inside the session cannot
// register memory beyond it. The limit that the session begins with is none.
func TestMemlock(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		if u.id == 0 {
			t.Skip("needs a user without CAP_IPC_LOCK, which root has")
		}
		for _, limit := range []string{"0", "4"} { // KiB; the region has two pages
			out, status := u.session(t, "--", "sh", "-c", "ulimit -l "+limit+"; ibv_rc_pingpong -g 0 -s 8192")
			if status == 0 || !strings.Contains(out, "Couldn't register MR") {
				t.Errorf("limit %s KiB: status %d:\n%s", limit, status, out)
			}
		}
	})
}
