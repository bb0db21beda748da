package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// ends says whether a load, some messages or 12 us long, comes to its end in many times that time.
// It is built with a postlist and a signal_every of 1, which are never refused, and runs with its
// own.
func ends(t *testing.T, p *profile.Profile, l *workload.Load) (ended bool) {
	cfg := testbed.Default(p)
	cfg.NoTap = true
	tb, err := testbed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	postlist, signal := l.Postlist, l.SignalEvery
	l.Postlist, l.SignalEvery = 1, 1
	err = tb.Run(0, func(th verbs.Thread) {
		st, err := workload.Build(th, tb, l)
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			return
		}
		l.Postlist, l.SignalEvery = postlist, signal
		st.Prepare(th)
		threads := st.Begin(th)
		th.Process().Start(th, "finish", -1, func(th verbs.Thread) { ended = st.Finish(th, threads).Failed == nil })
		th.Sleep(60 * time.Microsecond)
	})
	if err != nil {
		t.Error(err)
	}
	return ended
}

// selfWaiting is in the words of a load that waits for a completion that none of its requests asks
// for.
const selfWaiting = "no request asks for"

// A load is refused because it would wait for itself exactly if it would: with each window,
// postlist and signal_every.
func TestLoadsThatWaitForThemselves(t *testing.T) {
	const most = 5 // with which there are all kinds
	for _, base := range []string{
		"verb: write, duration: 12us", "verb: send, duration: 12us, qps_per_thread: 2", "verb: read, duration: 12us, threads: 2, cq_sharing: 2",
		"verb: faa, duration: 12us, qps_per_thread: 4, cq_sharing: 2", "verb: write_imm, duration: 12us, drain: true", "verb: cas, messages: 9",
		"verb: send, transport: ud, messages: 14, qps_per_thread: 3", "verb: write, transport: uc, duration: 12us", "mix: [{verb: read, weight: 2}, {verb: send}], duration: 12us",
		"verb: write, duration: 12us, threads: 2, qp_sharing: 2", "verb: read, messages: 11, threads: 2, qp_sharing: 2", "verb: send, duration: 12us, receive: none",
		"verb: write, duration: 12us, both_ways: true", "verb: read, measure: latency, messages: 9", "verb: write, measure: latency, messages: 9",
	} {
		for window := 2; window <= most; window++ {
			shared := window
			if strings.Contains(base, "qp_sharing") {
				shared *= 2
			}
			s, p := changed(t, fmt.Sprintf("name: x\ntraffic: [{%s, window: %d}]\n", base, shared))
			for n := range (window - 1) * (window - 1) { // with one of them 1 there is nothing to wait for
				l := s.Traffic[0].load()
				l.Postlist, l.SignalEvery = n/(window-1)+2, n%(window-1)+2
				err := l.Validate()
				if err != nil && !strings.Contains(err.Error(), selfWaiting) {
					continue // another reason
				}
				if ended := ends(t, p, l); ended != (err == nil) {
					t.Errorf("%s, window %d, postlist %d, signal_every %d: it ends: %v, %v", base, window, l.Postlist, l.SignalEvery, ended, err)
				}
			}
		}
	}
}

// The words name the load, and values with which it runs.
func TestLoadThatWaitsForItselfIsNamed(t *testing.T) {
	const text = "name: x\ntraffic:\n  - {payload: 64B, signal_every: 100, postlist: 64, duration: 20us%s}\n"
	for _, c := range []struct{ more, want string }{
		{"", "window: 160, or signal_every: 64"},
		{", qps_per_thread: 2, threads: 2", "window: 160, or signal_every: 64"},
		{", threads: 2, qp_sharing: 2, window: 256", "window: 320, or signal_every: 64"},
	} {
		_, err := ParseScenario("s.yaml", []byte(fmt.Sprintf(text, c.more)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), selfWaiting) || !strings.Contains(err.Error(), "traffic.0") && !strings.Contains(err.Error(), "s.yaml:3") {
			t.Errorf("%s: %v", c.more, err)
			continue
		}
		for cure := range strings.SplitSeq(c.want, ", or ") {
			key, v, _ := strings.Cut(cure, ": ")
			s := strings.Replace(fmt.Sprintf(text, c.more), ", window: 256", "", 1)
			if key == "signal_every" {
				s = strings.Replace(fmt.Sprintf(text, c.more), "signal_every: 100", cure, 1)
			} else {
				s = strings.Replace(s, "}", ", window: "+v+"}", 1)
			}
			runText(t, s)
		}
	}
}
