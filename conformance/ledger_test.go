package conformance_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/report"
)

func TestDeviations(t *testing.T) {
	ledger := &conformance.Ledger{Deviations: []conformance.Deviation{{ID: "X-01", Profiles: []string{"p"}, Evidence: "test",
		Predicts: []conformance.Prediction{{Case: "DEV-006", Step: "query", Got: "EIO"}}}}}
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
		"another case":     {"DEV-008", "p", check(syscall.EIO), report.Fail, "got EIO"},
		"another profile":  {"DEV-006", "q", check(syscall.EIO), report.Fail, "got EIO"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &conformance.Runner{Target: fake.Target{}, Policy: &conformance.Policy{Profile: tt.profile}, Ledger: ledger}
			got := run(t, r, tt.id, tt.body)
			if got.Outcome != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("%s (%s), want %s (%s)", got.Outcome, got.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestBuiltInLedgerIsWellFormed(t *testing.T) {
	l, err := conformance.LoadLedger()
	if err != nil || len(l.Deviations) == 0 {
		t.Errorf("%d entries, %v", len(l.Deviations), err)
	}
}
