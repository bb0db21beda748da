//go:build linux && amd64

package exec

import (
	"strings"
	"testing"
)

// TestObjects runs a program that makes and uses, through libmlx5, what the others do
// not: memory windows, regions registered again, resized CQs with completions in them,
// limits of shared receive queues and the counts of events, time stamps and the clock.
func TestObjects(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "objects")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-static"}, {"-copy-queues"}, {"-throttle"}} {
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				out, status := u.session(t, append(flags, "--", bin)...)
				if status != 0 || !strings.HasSuffix(out, "clocks\n") {
					t.Errorf("status %d:\n%s", status, out)
				}
			})
		}
	})
}

// TestXRCDomains runs processes that share XRC domains by a file, and target queue pairs in them.
func TestXRCDomains(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "xrc")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(nil, []string{"-path-calls"}) {
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				out, status := u.session(t, append(flags, "--", "sh", "-c", `d=$(mktemp -d) && `+quote(bin)+` "$d"; s=$?; rm -r "$d"; exit $s`)...)
				if status != 0 || !strings.HasSuffix(out, "children\n") {
					t.Errorf("status %d:\n%s", status, out)
				}
			})
		}
	})
}
