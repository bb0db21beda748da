package conformance_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

func TestDeviations(t *testing.T) {
	ledger := &report.Ledger{}
	err := ledger.Add("test.yaml", []byte(`
provider: mlx5
deviations:
- {id: X-01, title: t, where: {profile: p}, kind: errno, evidence: test, owner: o, opened: "2026-01-01", review_by: "2026-12-31",
   predicts: [{case: DEV-006, step: query, got: EIO}]}
- {id: X-02, title: t, where: {profile: p}, kind: errno, evidence: test, owner: o, opened: "2026-01-01", review_by: "2026-12-31",
   predicts: [{case: DEV-007, step: query, got: EIO, sometimes: true, at_most: 1}]}
- {id: X-03, title: t, where: {profile: p}, kind: errno, evidence: test, owner: o, opened: "2026-01-01", review_by: "2026-12-31",
   predicts: [{case: DEV-010, step: query, got: EIO}, {case: DEV-010, step: another, got: EIO}]}
`), func(id string) bool { return strings.HasPrefix(id, "DEV-") })
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) func(*spec.C) {
		return func(c *spec.C) {
			c.Errno("other", nil, 0)
			c.Errno("query", err, syscall.EINVAL)
		}
	}
	tests := map[string]struct {
		id, profile string
		body        func(*spec.C)
		want        report.Outcome
		reason      string
	}{
		"as predicted":     {"DEV-006", "p", check(syscall.EIO), report.PassDeviation, "X-01"},
		"as expected":      {"DEV-006", "p", check(syscall.EINVAL), report.Fail, "X-01, which predicts EIO, is stale"},
		"another way":      {"DEV-006", "p", check(syscall.EPERM), report.Fail, "want EINVAL, got EPERM"},
		"step not reached": {"DEV-006", "p", func(*spec.C) {}, report.Fail, "no step shows deviation X-01"},
		"one of two steps": {"DEV-010", "p", check(syscall.EIO), report.Fail, "no step shows deviation X-03 (another: EIO)"},
		"another case":     {"DEV-008", "p", check(syscall.EIO), report.Fail, "got EIO"},
		"by chance":        {"DEV-007", "p", check(syscall.EIO), report.PassDeviation, "X-02"},
		"not this time":    {"DEV-007", "p", check(syscall.EINVAL), report.Pass, ""},
		"by no chance":     {"DEV-007", "p", check(syscall.EPERM), report.Fail, "want EINVAL, got EPERM"},
		"another profile":  {"DEV-006", "q", check(syscall.EIO), report.Fail, "got EIO"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &conformance.Runner{Target: fake.Target{Profile: tt.profile}, Ledger: ledger}
			got := run(t, r, tt.id, tt.body)
			if stale := strings.Contains(tt.reason, "stale") || strings.Contains(tt.reason, "no step shows"); stale != (len(got.Stale) > 0) {
				t.Errorf("stale: %v", got.Stale)
			}
			if got.Outcome != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("%s (%s), want %s (%s)", got.Outcome, got.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestBuiltInLedger(t *testing.T) {
	l, err := conformance.LoadLedger()
	if err != nil || len(l.Entries) == 0 {
		t.Fatalf("%v", err)
	}
	for _, p := range []report.Platform{
		report.PlatformOf("connectx-5", nil), report.PlatformOf("connectx-4", nil), report.PlatformOf("connect-ib", nil),
		report.PlatformOf("hw-rxe", map[string]string{report.KeyProvider: "rxe", report.KeyKernel: "6.1.0-56-amd64"}),
		report.PlatformOf("hw-rxe", map[string]string{report.KeyProvider: "rxe", report.KeyKernel: "6.12.117+deb12-amd64"}),
	} {
		if err := l.Ambiguous(p); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		if late := l.Overdue(p, time.Now()); len(late) > 0 {
			t.Errorf("%v: %s", p, late)
		}
	}
}

// TestLedgerOfAnExtendedProfile: entries of a stored profile are those of a user's own that extends
// it too, but his may have changed what deviates.
func TestLedgerOfAnExtendedProfile(t *testing.T) {
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	at := report.PlatformOf("connectx-7", nil)
	mine := report.PlatformOf("mine", map[string]string{conformance.ExtendsKey: "connectx-7"})
	stored, own := ledger.Of(at), ledger.Of(mine)
	if len(stored) == 0 || !slices.Equal(own, stored) {
		t.Fatalf("%d entries of connectx-7, and %d of a profile that extends it", len(stored), len(own))
	}
	for _, d := range stored {
		if d.Inherited(at) {
			t.Errorf("%s is of connectx-7 itself", d.ID)
		}
	}
	if n := slices.IndexFunc(own, func(d *report.Deviation) bool { return d.ID == "MLX-40" }); n < 0 || !own[n].Inherited(mine) {
		t.Error("MLX-40 names connectx-7, and is inherited")
	}
	if n := len(ledger.Of(report.PlatformOf("mine", nil))); n >= len(stored) {
		t.Errorf("%d entries of a profile that extends none", n)
	}
}
