package spec_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func execute(body func(*spec.C)) spec.Result {
	r := spec.NewRunning("DEV-001", 1)
	r.Execute(nil, nil, body)
	return r.Result()
}

func TestChecksRecordWhatTheySaw(t *testing.T) {
	wrapped := fmt.Errorf("create: %w", syscall.EBUSY)
	res := execute(func(c *spec.C) {
		c.Errno("a", wrapped, syscall.EBUSY)
		if got := c.ErrnoIn("b", nil, 0, syscall.EINVAL); got != 0 {
			t.Errorf("ErrnoIn returned %v", got)
		}
		c.Status("c", verbs.WC{ID: 4, Status: verbs.WCRetryExcErr, QPN: 99, ByteLen: 7}, verbs.WCRetryExcErr)
		c.Equal("d", []byte{1, 2}, []byte{1, 2})
		c.Observe("e", verbs.QPSRTS.String())
	})
	if res.Verdict != nil {
		t.Fatalf("verdict %+v", res.Verdict)
	}
	var got []string
	for _, o := range res.Observations {
		got = append(got, fmt.Sprintf("%s %s %v %v", o.Step, o.Kind, o.Got, o.Want))
	}
	digest := report.Digest([]byte{1, 2})
	want := []string{"a errno EBUSY EBUSY", "b errno 0 [0 EINVAL]", "c wc {4 RETRY_EXC_ERR <nil> <nil> <nil> <nil>} RETRY_EXC_ERR",
		"d value " + digest + " " + digest, "e value RTS <nil>"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFailureSaysWhatAndWhere(t *testing.T) {
	tests := map[string]struct {
		body func(*spec.C)
		want string
	}{
		"errno":      {func(c *spec.C) { c.Errno("x", nil, syscall.EINVAL) }, "x: want EINVAL, got 0"},
		"errno set":  {func(c *spec.C) { c.ErrnoIn("x", syscall.EIO, syscall.EINVAL, 0) }, "one of {EINVAL, 0}, got EIO"},
		"no errno":   {func(c *spec.C) { c.NoErr("x", fmt.Errorf("odd")) }, "got no errno (odd)"},
		"status set": {func(c *spec.C) { c.StatusIn("x", verbs.WC{Status: 5}, 0, 1) }, "one of {SUCCESS, LOC_LEN_ERR}, got WR_FLUSH_ERR"},
		"bytes":      {func(c *spec.C) { c.Equal("x", []byte{1, 2, 3}, []byte{1, 0, 0}) }, "2 of 3 bytes differ; at 1 want 0x00, got 0x02"},
		"values":     {func(c *spec.C) { c.Equal("x", 1, 2) }, "x: want 2, got 1"},
		"names": {func(c *spec.C) { c.Equal("x", verbs.AccessLocalWrite|verbs.AccessRemoteRead, verbs.AccessRemoteRead) },
			"x: want REMOTE_READ, got LOCAL_WRITE|REMOTE_READ"},
		"a list": {func(c *spec.C) { c.Equal("x", []verbs.WCOpcode{128, 0}, []verbs.WCOpcode{128}) }, "x: want [RECV], got [RECV, SEND]"},
		"fields": {func(c *spec.C) {
			c.Equal("x", verbs.PortAttr{State: verbs.PortDown, MaxMTU: 5, LID: 3}, verbs.PortAttr{State: verbs.PortActive, MaxMTU: 5, LID: 4})
		}, "x: State: want ACTIVE, got DOWN; LID: want 4, got 3"},
		"types":     {func(c *spec.C) { c.Equal("x", uint32(1), 1) }, "x: want 1, got 1, of another type"},
		"long list": {func(c *spec.C) { c.Equal("x", make([]int, 40), append(make([]int, 39), 7)) }, "x: [39]: want 7, got 0"},
		"bits":      {func(c *spec.C) { c.Equal("x", uint32(1<<24), uint32(1)) }, "x: want 1, got 16777216 (0x1000000)"},
		"nothing":   {func(c *spec.C) { c.Equal("x", nil, 3) }, "x: want 3, got nil"},

		"true":        {func(c *spec.C) { c.True("x", false, "%d left", 3) }, "x: 3 left"},
		"in a helper": {func(c *spec.C) { func() { c.Failf("deep") }() }, "deep"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			after := false
			v := execute(func(c *spec.C) { tt.body(c); after = true }).Verdict
			if v == nil || v.Outcome != report.Fail || !strings.Contains(v.Reason, tt.want) || after {
				t.Fatalf("verdict %+v, went on %v; want %q", v, after, tt.want)
			}
			if !strings.HasPrefix(v.Where, "spec/spec_test.go:") {
				t.Errorf("where: %q", v.Where)
			}
		})
	}
}

// expectTwo is a helper of cases, beside them.
func expectTwo(c *spec.C, n int) { c.Equal("two", n, 2) }

// The line is that of the case, also where the check stands in a helper or in what the kit calls
// back.
func TestWhereIsTheLineOfTheCase(t *testing.T) {
	line := func() int { _, _, n, _ := runtime.Caller(1); return n }
	want := 0
	for name, body := range map[string]func(*spec.C){
		"in a helper": func(c *spec.C) {
			want = line() + 1
			expectTwo(c, 1)
		},
		"in a literal": func(c *spec.C) {
			func() {
				want = line() + 1
				expectTwo(c, 1)
			}()
		},
		"deferred": func(c *spec.C) {
			c.Defer(func() {
				want = line() + 1
				expectTwo(c, 1)
			})
		},
	} {
		v := execute(body).Verdict
		if at := fmt.Sprintf("spec/spec_test.go:%d, in expectTwo (spec/spec_test.go:", want); v == nil || !strings.HasPrefix(v.Where, at) {
			t.Errorf("%s: %+v, want %s", name, v, at)
		}
	}
}

func TestDeferredRunsInReverseAfterAFailure(t *testing.T) {
	var order []int
	v := execute(func(c *spec.C) {
		c.Defer(func() { order = append(order, 1) })
		c.Defer(func() { order = append(order, 2); c.Failf("second failure") })
		c.Failf("first failure")
	}).Verdict
	if v == nil || v.Reason != "first failure" || !cmp.Equal(order, []int{2, 1}) {
		t.Errorf("verdict %+v, order %v", v, order)
	}
}

func TestOtherPanicsSurface(t *testing.T) {
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v", p)
		}
	}()
	execute(func(*spec.C) { panic("broken") })
}

func TestSeedsDependOnRunAndID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, id := rapid.Uint64().Draw(t, "run"), rapid.StringMatching(`[A-Z]{2,5}-\d{3}`).Draw(t, "id")
		s := spec.SeedOf(run, id)
		if s != spec.SeedOf(run, id) || s == spec.SeedOf(run+1, id) || s == spec.SeedOf(run, id+"0") {
			t.Fatalf("seed %#x of %d/%s", s, run, id)
		}
	})
}

// TestPredictionOfTheValue: of several predictions for a step the one of the value counts.
func TestPredictionOfTheValue(t *testing.T) {
	for got, want := range map[string]string{"a": "X-1", "b": "X-2", "c": ""} {
		r := spec.NewRunning("X-001", 1, spec.Deviation{ID: "X-1", Step: "s", Got: "a", Sometimes: true}, spec.Deviation{ID: "X-2", Step: "s", Got: "b", Sometimes: true})
		r.Execute(nil, nil, func(c *spec.C) { c.Violates("s", got, "z", "no") })
		res := r.Result()
		if want == "" && res.Verdict == nil || want != "" && (res.Verdict != nil || len(res.Deviations) != 1 || res.Deviations[0] != want) {
			t.Errorf("%s: %+v, deviations %v, want %q", got, res.Verdict, res.Deviations, want)
		}
	}
}

// TestWithin: what is deferred within a part of a case runs when the part ends, also if it fails.
func TestWithin(t *testing.T) {
	var order []string
	r := spec.NewRunning("X-001", 1)
	r.Execute(nil, nil, func(c *spec.C) {
		c.Defer(func() { order = append(order, "outer") })
		c.Within(func() { c.Defer(func() { order = append(order, "inner") }) })
		order = append(order, "between")
		c.Within(func() {
			c.Defer(func() { order = append(order, "of the failed") })
			c.Failf("no")
		})
	})
	if got := strings.Join(order, ", "); got != "inner, between, of the failed, outer" || r.Result().Verdict == nil {
		t.Error(got)
	}
}
