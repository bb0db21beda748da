package experiment

import (
	"slices"
	"strings"
	"testing"
)

// lossRun is one run of WRITEs of 64 KiB over a switch that loses packets, by default one of 100.
func lossRun(t *testing.T, set ...string) (res *Result, gbps float64) {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte("name: s\nlink: switch\ntraffic: [{payload: 64KiB, mtu: 1024, window: 64, duration: 60ms}]\nfaults: [{do: drop, per_million: 10000}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	res, err = s.Experiment().Execute(t.Context(), Request{Seed: 3, Counters: true, Set: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Rows {
		if res.Rows[i].Get("row") == "traffic" {
			gbps, _ = res.Rows[i].Float("gbps")
		}
	}
	return res, gbps
}

// TestLossRecoveryAsPublished holds rates to published figures of other devices, to none of which a
// value was fitted, within the factors that docs/questions/loss-recovery.md names.
func TestLossRecoveryAsPublished(t *testing.T) {
	const sack, on = "hca.repeat_scheme=sack", "hca.selective_repeat=true"
	_, goBackN := lossRun(t)
	_, sacks := lossRun(t, on, sack)
	// RoSR (IEEE CAL 2025): 13.5 times go-back-N with WRITEs at 1 %; MELO (APNet 2017): up to 14.02
	// times.
	if times := sacks / goBackN; times < 13.5/3 || times > 13.5*3 {
		t.Errorf("at 1 %%: %.4g Gb/s with SACKs, %.3g with go-back-N: %.3g times, published are 13.5", sacks, goBackN, times)
	}
	// Wang et al. (ICCCN 2019): go-back-N at 40 Gb/s is near zero beyond 1 %.
	if _, gbps := lossRun(t, "link.bandwidth=40Gbps", "faults.0.per_million=20000"); gbps > 0.03*40 {
		t.Errorf("at 2 %% go-back-N has %.3g of 40 Gb/s, published is nearly nothing", gbps)
	}
}

// TestNotesOfRepeatSchemes: the note says which scheme is in use and what decides, packets that
// were not kept are counted, and a run that waits for the ACK timer is said to be limited by it.
func TestNotesOfRepeatSchemes(t *testing.T) {
	for _, c := range []struct {
		set     []string
		note    string
		unkept  bool
		limited string
	}{
		{[]string{"hca.selective_repeat=true", "faults.0.per_million=3000"}, "hca.repeat_scheme=single follows a patent (US 10,430,374)", true, "ACK timer"},
		{[]string{"hca.selective_repeat=true", "hca.repeat_scheme=by-operation", "faults.0.per_million=3000"}, "hca.repeat_scheme=by-operation follows a patent (US 11,870,590)", true, "ACK timer"},
		{[]string{"hca.selective_repeat=true", "hca.repeat_scheme=sack", "faults.0.per_million=3000"}, "has at most hca.repeat_window=256 packets out", false, "wire"},
		{[]string{"faults.0.per_million=3000"}, "", false, "ACK timer"},
	} {
		res, _ := lossRun(t, c.set...)
		named := slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "hca.repeat_scheme=") })
		if named != (c.note != "") || named && !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, c.note) }) {
			t.Errorf("%v: %q", c.set, res.Notes)
		}
		unkept := slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "(hca.early_discarded)") })
		if unkept != c.unkept || (counted(res, "host1/mlx5_0/hca/early_discarded") > 0) != c.unkept {
			t.Errorf("%v: %v early packets were discarded: %q", c.set, counted(res, "host1/mlx5_0/hca/early_discarded"), res.Notes)
		}
		for i := range res.Rows {
			if res.Rows[i].Get("row") == "traffic" && res.Rows[i].Get("limited_by") != c.limited {
				t.Errorf("%v: limited by %v, not by %s", c.set, res.Rows[i].Get("limited_by"), c.limited)
			}
		}
		if hypothesis := slices.ContainsFunc(res.Hypotheses, func(h string) bool { return strings.HasPrefix(h, "hca.repeat_scheme=") }); hypothesis != (c.note != "") {
			t.Errorf("%v: hypotheses %q", c.set, res.Hypotheses)
		}
	}
}
