package conformance_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Unknown and duplicate IDs in code fail here.
func TestEveryCaseIsInTheCatalogue(t *testing.T) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		if i.Entry.ID != i.Case.ID || i.Case.Body == nil {
			t.Errorf("%s has no body, or that of %s", i.Entry.ID, i.Case.ID)
		}
	}
}

func TestUnknownAndDuplicateIDsAreErrors(t *testing.T) {
	s := &spec.Suite{}
	s.Case("DEV-001", func(*spec.C) {})
	s.Case("DEV-001", func(*spec.C) {})
	s.Case("DEV-899", func(*spec.C) {})
	_, err := conformance.Items(s)
	if err == nil || !strings.Contains(err.Error(), "DEV-001 is already registered") ||
		!strings.Contains(err.Error(), "DEV-899 is not in the catalogue") {
		t.Errorf("Items returned %v", err)
	}
}

func entry(t *testing.T, id string) conformance.Entry {
	t.Helper()
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	e, ok := cat.Find(id)
	if !ok {
		t.Fatalf("%s is not in the catalogue", id)
	}
	return e
}

func run(t *testing.T, r *conformance.Runner, id string, body func(*spec.C)) report.Case {
	t.Helper()
	s := &spec.Suite{}
	s.Case(id, body)
	c, _ := s.Find(id)
	return r.Run(entry(t, id), c)
}

func TestOutcomes(t *testing.T) {
	r := &conformance.Runner{Target: fake.Target{}, Seed: 1}
	flips, ends := 0, 0
	tests := map[string]struct {
		id     string
		repeat int
		body   func(*spec.C)
		want   report.Outcome
		reason string
	}{
		"pass":      {"DEV-001", 1, func(c *spec.C) { c.Equal("one", 1, 1) }, report.Pass, ""},
		"fail":      {"DEV-001", 1, func(c *spec.C) { c.Errno("call", syscall.EIO, syscall.EINVAL) }, report.Fail, "want EINVAL, got EIO"},
		"gomega":    {"DEV-001", 1, func(c *spec.C) { c.Expect(1).To(equal(2)) }, report.Fail, "1 is not 2"},
		"status":    {"DEV-001", 1, func(c *spec.C) { c.Status("wc", verbs.WC{Status: 5}, 0) }, report.Fail, "want SUCCESS, got WR_FLUSH_ERR"},
		"panic":     {"DEV-001", 1, func(*spec.C) { panic("broken") }, report.Error, "panic: broken"},
		"hang":      {"DEV-001", 1, func(*spec.C) { fake.Hang() }, report.Error, "did not end"},
		"integrity": {"DEV-001", 1, func(c *spec.C) { c.Integrityf("3 frames lost") }, report.Integrity, "3 frames lost"},
		"record":    {"PD-006", 1, func(c *spec.C) { c.Observe("errno", "EBUSY") }, report.Unrecorded, "no recording"},
		"flaky": {"DEV-001", 2, func(c *spec.C) {
			flips++
			c.Observe("flips", flips)
		}, report.Flaky, "repeat 2 differs from the first run with the same seed, at step flips: 1, then 2"},
		"flaky outcome": {"DEV-001", 2, func(c *spec.C) {
			if ends++; ends == 2 {
				c.Failf("no answer")
			}
		}, report.Flaky, "pass, then fail (no answer)"},
		"fail in a deferred": {"DEV-001", 1, func(c *spec.C) { c.Defer(func() { c.Failf("leak") }) }, report.Fail, "leak"},
		"unsupported inside": {"DEV-001", 1, func(c *spec.C) { c.NoErr("call", syscall.EOPNOTSUPP) }, report.Fail, "got EOPNOTSUPP"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			told := 1
			r.Repeat, r.Again = tt.repeat, func(*report.Case) { told++ }
			got := run(t, r, tt.id, tt.body)
			if got.Outcome != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("outcome %s (%s), want %s (%s)", got.Outcome, got.Reason, tt.want, tt.reason)
			}
			if told != tt.repeat {
				t.Errorf("%d runs are told of, and there were %d", told, tt.repeat)
			}
			if differs := got.Differs != nil && len(got.Differs.Observations)+len(got.Differs.Reason) > 0; differs != (tt.want == report.Flaky) {
				t.Errorf("the record of the repeat that differs: %+v", got.Differs)
			}
			if tt.want == report.Fail && !strings.HasPrefix(got.Where, "conformance/conformance_test.go:") {
				t.Errorf("the check is said to be at %q", got.Where)
			}
		})
	}
}

// equal is a Gomega matcher of its own, so that the test does not depend on Gomega's
// wording.
type equal int

func (e equal) Match(actual any) (bool, error)          { return actual == int(e), nil }
func (e equal) FailureMessage(any) string               { return "1 is not 2" }
func (e equal) NegatedFailureMessage(actual any) string { return "" }

// Where time is real no two repeats take the same, and the record does not hold it.
func TestRepeatsInRealTime(t *testing.T) {
	for exact, want := range map[verbs.Capability]report.Outcome{verbs.Present: report.Flaky, verbs.Absent: report.Pass} {
		now := time.Millisecond
		r := &conformance.Runner{Repeat: 2, Target: fake.Target{
			Capabilities: map[string]verbs.Capability{spec.ExactTime: exact},
			Now:          func() time.Duration { now *= 2; return now },
		}}
		got := run(t, r, "DEV-001", func(*spec.C) {})
		if got.Outcome != want {
			t.Errorf("exact time %v: outcome %s (%s), want %s", exact, got.Outcome, got.Reason, want)
		}
	}
}

func TestUnsupportedIsProvenAndAllowed(t *testing.T) {
	never := func(c *spec.C) { c.Failf("the body ran without its needs") }
	allowed := &conformance.Policy{Allowed: []conformance.Allowance{{ID: "TD-001", Because: "test"}, {ID: "WIRE-001", Because: "test"}}}
	off := map[string]verbs.Capability{"td": verbs.Absent, "tap": verbs.Absent}
	tests := map[string]struct {
		id     string
		policy *conformance.Policy
		td     error
		want   report.Outcome
	}{
		"refused and allowed":    {"TD-001", allowed, fake.Refusal, report.Unsupported},
		"refused, not allowed":   {"TD-001", nil, fake.Refusal, report.Fail},
		"allowed, but it works":  {"TD-001", allowed, nil, report.Fail},
		"refused in a wrong way": {"TD-001", allowed, syscall.EIO, report.Fail},
		"testbed lacks, allowed": {"WIRE-001", allowed, nil, report.NotRun},
		"testbed lacks, not so":  {"WIRE-001", nil, nil, report.Fail},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &conformance.Runner{Target: fake.Target{Capabilities: off, TD: tt.td}, Policy: tt.policy}
			if got := run(t, r, tt.id, never); got.Outcome != tt.want {
				t.Errorf("outcome %s (%s), want %s", got.Outcome, got.Reason, tt.want)
			}
		})
	}
}

// A target that refuses everything must fail the run, whatever it claims.
func TestNullTargetFails(t *testing.T) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := conformance.LoadPolicy("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []verbs.Capability{verbs.Absent, verbs.Unknown, verbs.Present} {
		caps := map[string]verbs.Capability{}
		for _, i := range items {
			for _, n := range i.Entry.Needs {
				caps[strings.TrimPrefix(n, "no ")] = claim
			}
		}
		r := &conformance.Runner{Target: fake.Target{Null: true, Capabilities: caps}, Policy: policy}
		var cases []report.Case
		bad := 0
		for _, i := range items {
			c := r.Run(i.Entry, i.Case)
			cases = append(cases, c)
			if c.Outcome.Bad() {
				bad++
			}
			if c.Outcome == report.Pass {
				t.Errorf("%s passes on a target that refuses everything", c.ID)
			}
		}
		if bad == 0 {
			t.Error("no case fails")
		}
		if len(policy.Findings(cases, true)) == 0 {
			t.Error("the run as a whole is not found wanting")
		}
	}
}

func TestSameSeedSameRecord(t *testing.T) {
	r := &conformance.Runner{Target: fake.Target{}, Seed: 7}
	body := func(c *spec.C) { c.Observe("draws", c.Rand().Bytes(8)) }
	a, b := run(t, r, "DEV-001", body), run(t, r, "DEV-001", body)
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	if c := run(t, r, "DEV-002", body); cmp.Equal(a.Observations, c.Observations) {
		t.Error("two IDs draw the same")
	}
}
