//go:build linux && amd64

package exec

import (
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjects runs a program that makes and uses, through libmlx5, what the others do
// not: memory windows, regions registered again, resized CQs with completions in them,
// limits of shared receive queues and the counts of events, time stamps and the clock.
func TestObjects(t *testing.T) {
	needs(t, "gcc")
	bin := filepath.Join(shared(t), "objects")
	if out, err := osexec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", bin, "testdata/objects.c", "-libverbs", "-lmlx5").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-dynamic"}, {"-copy-queues"}, {"-throttle"}} {
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
		for _, flags := range [][]string{{}, {"-path-calls"}} {
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				out, status := u.session(t, append(flags, "--", "sh", "-c", `d=$(mktemp -d) && `+quote(bin)+` "$d"; s=$?; rm -r "$d"; exit $s`)...)
				if status != 0 || !strings.HasSuffix(out, "children\n") {
					t.Errorf("status %d:\n%s", status, out)
				}
			})
		}
	})
}
