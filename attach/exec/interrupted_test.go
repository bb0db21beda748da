//go:build linux && amd64

package exec

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// supervisedCalls are the kinds of calls of testdata/interrupted.c that are taken once. A fork that
// a signal meets inside the kernel is made again by it (-ERESTARTNOINTR of copy_process), and so
// taken again: it has a session of its own.
var supervisedCalls = [][]string{{"ioctl", "region", "channel", "netlink", "file", "memory"}, {"fork"}}

// ownCalls is by how many calls the start of a session may differ from another.
const ownCalls = 3

var (
	signalRounds = flag.Int("signals.rounds", 10, "how often calls of each kind are made under signals")
	signalShare  = flag.Int("signals.share", 0, "of how many calls a signal may end one, in the best of ten runs; 0: any. It depends on how soon the supervisor gets a CPU")
)

// interruptions are what testdata/interrupted.c says of all its calls, and what the session that
// ran it says.
type interruptions struct{ ended, calls, signals, taken, gone int }

// interrupted runs testdata/interrupted.c.
func (u user) interrupted(t *testing.T, bin string, flags []string, how string, us int, kinds []string) (sum interruptions) {
	t.Helper()
	args := append(append([]string{"-v", "-limit-objects", "60"}, flags...), "--", bin, how, fmt.Sprint(us), fmt.Sprint(*signalRounds))
	out, status := u.session(t, append(args, kinds...)...)
	said := 0
	for line := range strings.Lines(out) {
		var n interruptions
		if _, rest, _ := strings.Cut(line, ": "); rest != "" {
			if k, _ := fmt.Sscanf(rest, "%d of %d calls ended, %d signals", &n.ended, &n.calls, &n.signals); k == 3 {
				sum.ended, sum.calls, sum.signals = sum.ended+n.ended, sum.calls+n.calls, sum.signals+n.signals
				said++
			}
		}
		if k, _ := fmt.Sscanf(line, "%d calls were taken; %d were gone", &sum.taken, &sum.gone); k == 2 {
			said++
		}
	}
	if status != 0 || said != len(kinds)+1 {
		t.Fatalf("%v, %s, %v: status %d:\n%s", flags, how, kinds, status, out)
	}
	return sum
}

// TestSignalsDoNotEndCalls makes calls of every kind under a storm of signals whose handler does
// not restart them. A signal ends a call only if it comes before the call is taken, so however slow
// the machine is, as many calls are taken as without signals: one that was taken and then ended
// would be taken again. The program counts what its calls have done, and that a signal came for
// each that has ended.
func TestSignalsDoNotEndCalls(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "interrupted")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions([]string{}, []string{"-path-calls"}) {
			for i, kinds := range supervisedCalls {
				calm := u.interrupted(t, bin, flags, "plain", 0, kinds)
				if calm.ended != 0 || calm.signals != 0 {
					t.Errorf("%v, %v: without signals: %+v", flags, kinds, calm)
				}
				for try := 1; ; try++ {
					n := u.interrupted(t, bin, flags, "plain", 500, kinds)
					t.Logf("%v, %v: %d of %d calls ended by %d signals", flags, kinds, n.ended, n.calls, n.signals)
					if n.signals == 0 {
						t.Errorf("%v, %v: no storm: %+v", flags, kinds, n)
					}
					again := n.taken - calm.taken
					if n.calls-n.ended != calm.calls || again < -ownCalls || i == 0 && again > ownCalls {
						t.Errorf("%v, %v: calls were lost, or taken more than once: %+v, and without signals %+v", flags, kinds, n, calm)
					}
					// On a busy machine some forks are gone of which the program hears nothing; why
					// is not known. The soak looks for them.
					if n.gone > n.ended+ownCalls && (i == 0 || *signalShare > 0) {
						t.Errorf("%v, %v: %d calls were gone, and the program knows of %d", flags, kinds, n.gone, n.ended)
					}
					if *signalShare == 0 || *signalShare*n.ended <= n.calls {
						break
					}
					if try == 10 {
						t.Errorf("%v, %v: more than 1 of %d calls ended in each of %d runs: %+v", flags, kinds, *signalShare, try, n)
						break
					}
				}
			}
		}
	})
}

// TestNoCallHappensTwice makes calls that a signal may have made again: one with SA_RESTART, and a
// stop. With -settle the supervisor takes the care that kernels before Linux 6.18 need.
func TestNoCallHappensTwice(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "interrupted")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions([]string{}, []string{"-path-calls"}, []string{"-settle"}) {
			for i, kinds := range supervisedCalls {
				calm := u.interrupted(t, bin, flags, "restart", 0, kinds)
				for _, how := range []string{"restart", "stop"} {
					n := u.interrupted(t, bin, flags, how, 300, kinds)
					if n.ended != 0 || n.calls != calm.calls {
						t.Errorf("%v, %s, %v: %d of %d calls end with EINTR", flags, how, kinds, n.ended, n.calls)
					}
					// The processes that stop this one are made by forks.
					again := n.taken - calm.taken
					if again < -ownCalls || i == 0 && how == "restart" && again > ownCalls {
						t.Errorf("%v, %s, %v: %d calls were taken, and %d without signals", flags, how, kinds, n.taken, calm.taken)
					}
				}
			}
		}
	})
}

// TestTakingWaitsForNobody: the thread that takes calls leaves each to others, here an engine that
// does nothing, and takes the next. Otherwise a signal could end calls for as long as the answer to
// another takes.
func TestTakingWaitsForNobody(t *testing.T) {
	s := &session{eng: &engine{done: make(chan struct{})}, procs: &processes{streams: &procmem.Streams{}}}
	(&procmem.Memory{S: s.procs.streams}).Watch(true)
	n := newNotifier(s, seccomp.NewListener(-1))
	handed := 0
	taken := make(chan bool)
	go func() {
		defer close(taken)
		for _, r := range rules(true, true) {
			if r.Ret == seccomp.Notify {
				n.take(seccomp.Notif{Nr: int32(r.Nr)})
				handed++
			}
		}
	}()
	select {
	case <-taken:
	case <-time.After(soon):
		t.Fatal("a call that nobody answers keeps the next from being taken")
	}
	if got := len(s.eng.work) + len(n.slow); got != handed || handed < 30 {
		t.Errorf("%d calls are left to others, of %d", got, handed)
	}
}
