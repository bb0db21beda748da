//go:build linux && amd64

package exec

import (
	"fmt"
	"strings"
	"testing"
)

// supervisedCalls are the kinds of calls of testdata/interrupted.c.
var supervisedCalls = []string{"ioctl", "region", "channel", "netlink", "file", "memory", "fork"}

// interruptions are what testdata/interrupted.c says of a kind of calls.
type interruptions struct{ ended, calls, signals int }

// interrupted runs testdata/interrupted.c and adds up, for each kind of calls, what it says.
func (u user) interrupted(t *testing.T, bin string, flags []string, how string, us, rounds int, kinds ...string) map[string]interruptions {
	t.Helper()
	args := append(append([]string{"-limit-objects", "60"}, flags...), "--", bin, how, fmt.Sprint(us), fmt.Sprint(rounds))
	out, status := u.session(t, append(args, kinds...)...)
	if status != 0 {
		t.Fatalf("%s: status %d:\n%s", how, status, out)
	}
	m := map[string]interruptions{}
	for line := range strings.Lines(out) {
		var n interruptions
		kind, rest, _ := strings.Cut(line, ": ")
		if _, err := fmt.Sscanf(rest, "%d of %d calls ended, %d signals", &n.ended, &n.calls, &n.signals); err == nil {
			m[kind] = n
		}
	}
	if len(m) != len(kinds) {
		t.Fatalf("%s: what became of %v?\n%s", how, kinds, out)
	}
	return m
}

// TestSignalsDoNotEndCalls makes calls of every kind under a storm of signals whose handler does not restart them. A signal ends a call only if
// it comes before the call is taken, in the first microseconds: of the calls that take tens of microseconds few signals meet those, and of all
// calls few are met. When calls are taken only after the answer to the one before, every second signal ends one of the former. Another
// load on the machine may keep the supervisor from a CPU, so the best of three runs counts.
func TestSignalsDoNotEndCalls(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "interrupted")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-path-calls"}} {
			for try := 1; ; try++ {
				var long interruptions
				few := true
				m := u.interrupted(t, bin, flags, "plain", 500, 500, supervisedCalls...)
				for _, kind := range supervisedCalls {
					few = few && 50*m[kind].ended <= m[kind].calls
				}
				for _, kind := range []string{"ioctl", "region", "channel", "netlink"} {
					long.ended, long.signals = long.ended+m[kind].ended, long.signals+m[kind].signals
				}
				if long.signals < 50 {
					t.Fatalf("no storm: %v", m)
				}
				if few && 10*long.ended <= long.signals {
					break
				}
				if try == 3 {
					t.Errorf("%v: more than 1 of 50 calls of a kind, or more than %d of %d signals, ended a call: %v", flags, long.signals/10, long.signals, m)
					break
				}
			}
		}
	})
}

// TestNoCallHappensTwice makes calls that a signal may have made again: one with SA_RESTART, and a stop. With -settle the supervisor takes the care
// that kernels before Linux 6.18 need.
func TestNoCallHappensTwice(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "interrupted")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-path-calls"}, {"-settle"}} {
			for _, how := range []string{"restart", "stop"} {
				for kind, n := range u.interrupted(t, bin, flags, how, 300, 300, supervisedCalls...) {
					if n.ended != 0 {
						t.Errorf("%v, %s, %s: %d of %d calls end with EINTR", flags, how, kind, n.ended, n.calls)
					}
				}
			}
		}
	})
}
