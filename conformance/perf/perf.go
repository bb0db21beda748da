// Package perf holds the cases of area PERF: the shape of performance, never a number
// of its own. A case measures two or more ways on the target's clock and compares them;
// it observes what it measured.
//
// On a real device these cases want a machine that does nothing else.
package perf

import (
	"slices"
	"strconv"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("PERF-001", ownDomains)
	s.Case("PERF-002", withoutDomain)
	s.Case("PERF-003", independentDomains)
	s.Case("PERF-004", bandwidthBySize)
	s.Case("PERF-005", manyQPs)
	s.Case("PERF-006", manyMRs, spec.Deadline(10*time.Minute))
	s.Case("PERF-007", secondAccess)
	s.Case("PERF-008", prefetchedAccess)
	s.Case("PERF-009", lists)
	s.Case("PERF-010", fewSignals)
	s.Case("PERF-011", inlineLatency)
	s.Case("PERF-012", noPauses)
	s.Case("PERF-013", victims)
	s.Case("PERF-014", goodputUnderLoss)
	s.Case("PERF-015", recovery)
	s.Case("PERF-016", turns)
}

// slack is what a comparison of two equal ways may differ by, as a fraction.
const slack = 0.05

// options are the usual ones with room for inline data and long queues.
func options() kit.Options {
	o := kit.Default()
	o.Cap.MaxSendWR, o.Cap.MaxInline, o.CQE = 512, 64, 4095
	o.MTU = verbs.MTU4096
	return o
}

// flow is a stream of requests on one QP.
type flow struct {
	q      *kit.QP
	wr     verbs.SendWR // all but ID and the signal
	list   int          // requests of one post
	window int          // outstanding at most, a multiple of signal
	signal int          // every signal-th request is signalled
}

// run sends n requests, a multiple of signal and of list, and returns how long it took
// from the first post to the last completion.
func (f *flow) run(c *spec.C, n int) time.Duration {
	wrs := make([]verbs.SendWR, f.list)
	wc := make([]verbs.WC, 16)
	start := c.T.Now()
	posted, done := 0, 0
	for done < n {
		for posted < n && posted-done+f.list <= f.window {
			for i := range wrs {
				posted++
				wrs[i] = f.wr
				wrs[i].ID = uint64(posted)
				wrs[i].Flags &^= verbs.SendSignaled
				if posted%f.signal == 0 {
					wrs[i].Flags |= verbs.SendSignaled
				}
			}
			f.q.Post(c, wrs...)
		}
		done += f.signal * pollSuccesses(c, f.q.SendCQ, wc)
	}
	return c.T.Now() - start
}

// pollSuccesses polls until something has completed, with success.
func pollSuccesses(c *spec.C, cq verbs.CQ, wc []verbs.WC) int {
	n, err := cq.PollWait(c.T, wc, kit.CompletionTimeout)
	kit.Must(c, "poll_cq", err)
	if n == 0 {
		c.Failf("no completion in %v", kit.CompletionTimeout)
	}
	for _, w := range wc[:n] {
		if w.Status != verbs.WCSuccess {
			c.Failf("request %d completed with %v", w.ID, w.Status)
		}
	}
	return n
}

// now is the time in which the work on one request is measured: that of the device where it has
// one, or of the thread. Of a stream of requests a device with a time of its own cannot tell, since
// it depends on when programs post.
func now(c *spec.C) time.Duration {
	clock, ok := c.TB.(verbs.DeviceClock)
	if !ok {
		return c.T.Now()
	}
	t, err := clock.DeviceTime(c.T)
	kit.Must(c, "read the device's clock", err)
	return t
}

// perSecond is a rate.
func perSecond(n int, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }

// threeDigits rounds a rate to three digits: people read the records.
func threeDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// runTogether starts n threads at one time, and returns the time until the last one has ended.
func runTogether(c *spec.C, n int, body func(c *spec.C, i int)) time.Duration {
	// By then all threads have started. They begin a moment apart, because the order of two that
	// do the same at one instant is unspecified.
	const together, apart = time.Millisecond, 37 * time.Nanosecond
	begin := c.T.Now() + together
	ends := make([]time.Duration, n)
	kit.RunThreads(c, n, func(c *spec.C, i int) {
		c.T.Sleep(begin + time.Duration(i)*apart - c.T.Now())
		body(c, i)
		ends[i] = c.T.Now()
	})
	return slices.Max(ends) - begin
}
