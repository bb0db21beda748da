package spec_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// clock is a thread whose time passes in Sleep only.
type clock struct {
	verbs.UnimplementedThread
	now time.Duration
}

func (t *clock) Now() time.Duration    { return t.now }
func (t *clock) Sleep(d time.Duration) { t.now += d }

func TestPollingOnTheThreadsClock(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		body func(c *spec.C, t *clock)
		want string        // of the failure; empty: none
		took time.Duration // on the thread's clock
	}{
		"at once": {func(c *spec.C, _ *clock) { c.Eventually("x", 1).Should(gomega.Equal(1)) }, "", 0},
		"later": {func(c *spec.C, k *clock) {
			c.Eventually("x", func() bool { return k.now >= 25*ms }).Should(gomega.BeTrue())
		}, "", 30 * ms},
		"never": {func(c *spec.C, _ *clock) {
			c.Eventually("x", func() verbs.QPState { return verbs.QPSErr }).Within(2 * ms).ProbeEvery(ms).Should(match.BeInState(verbs.QPSRTS))
		}, "x: not as expected after 2ms: want RTS, got ERR", 2 * ms},
		"not": {func(c *spec.C, k *clock) {
			c.Eventually("x", func() time.Duration { return k.now }).ShouldNot(gomega.BeZero())
		}, "", 10 * ms},
		"an hour": {func(c *spec.C, k *clock) {
			c.Eventually("x", func() error {
				if k.now < time.Hour {
					return syscall.EAGAIN
				}
				return nil
			}).Within(2 * time.Hour).ProbeEvery(time.Minute).Should(match.HaveErrno(0))
		}, "", time.Hour},
		"error besides": {func(c *spec.C, _ *clock) {
			c.Eventually("x", func() (int, error) { return 1, errors.New("odd") }).Should(gomega.Equal(1))
		}, "x: not as expected after 1s: odd", time.Second},
		"stop": {func(c *spec.C, _ *clock) {
			c.Eventually("x", func() (int, error) { return 1, gomega.StopTrying("gone") }).Should(gomega.Equal(1))
		}, "x: told to stop trying after 0s: gone", 0},
		"stop now": {func(c *spec.C, _ *clock) {
			c.Eventually("x", func() int { gomega.StopTrying("gone").Now(); return 1 }).Should(gomega.Equal(1))
		}, "told to stop trying", 0},
		"again after": {func(c *spec.C, k *clock) {
			c.Eventually("x", func() (time.Duration, error) {
				if k.now == 0 {
					return 0, gomega.TryAgainAfter(7 * ms)
				}
				return k.now, nil
			}).Should(gomega.Equal(7 * ms))
		}, "", 7 * ms},
		"consistently": {func(c *spec.C, _ *clock) { c.Consistently("x", 1).Should(gomega.Equal(1)) }, "", 100 * ms},
		"consistently no more": {func(c *spec.C, k *clock) {
			c.Consistently("x", func() bool { return k.now < 50*ms }).Should(gomega.BeTrue())
		}, "x: no longer as expected after 50ms", 50 * ms},
		"a function with arguments": {func(c *spec.C, _ *clock) {
			c.Eventually("x", func(int) int { return 1 }).Should(gomega.Equal(1))
		}, "takes no arguments", time.Second},
		"wrong matcher": {func(c *spec.C, _ *clock) {
			c.Eventually("x", 1).Within(0).Should(match.HaveStatus(verbs.WCSuccess))
		}, "this matcher takes values of type verbs.WC, not of type int", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := &clock{}
			r := spec.NewRunning("DEV-001", 1)
			r.Execute(k, nil, func(c *spec.C) { tt.body(c, k) })
			v := r.Result().Verdict
			if (v == nil) != (tt.want == "") || v != nil && (!strings.Contains(v.Reason, tt.want) || v.Step != "x") || k.now != tt.took {
				t.Errorf("verdict %+v after %v; want %q after %v", v, k.now, tt.want, tt.took)
			}
		})
	}
}
