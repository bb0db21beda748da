package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// drawn runs an experiment or a scenario and returns the names and SVG texts of its pictures.
func drawn(t *testing.T, x *Experiment, req Request) map[string]string {
	t.Helper()
	req.Seed, req.Version = 7, "1.2.3+abcdef"
	res, err := x.Execute(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	names, err := res.WriteFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string]string{}
	for _, n := range names {
		if strings.HasSuffix(n, ".svg") {
			b, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(err)
			}
			pictures[n] = string(b)
		}
	}
	return pictures
}

// A sweep of one's own is drawn, with where it is from below it.
func TestSweepIsDrawn(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: mine\ntraffic: [{name: writes, messages: 100}, {name: pings, cores: [3], measure: latency, messages: 10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := drawn(t, s.experiment(), Request{Sweep: []string{"traffic.0.payload=2B,64B,4KiB", "uar.bf_conflict=none,serialize"}})
	if len(p) != 3 {
		t.Fatalf("%d pictures", len(p))
	}
	for _, want := range []string{"limited by", "receive engine", "window", "writes, uar.bf_conflict=none"} {
		if !strings.Contains(p["mine-limit.svg"], want) {
			t.Errorf("mine-limit.svg has no %q", want)
		}
	}
	for _, want := range []string{"writes, uar.bf_conflict=none", "4KiB", "profile connectx-5", "seed 7", "rdmasim 1.2.3"} {
		if !strings.Contains(p["mine-rate.svg"], want) {
			t.Errorf("mine-rate.svg has no %q", want)
		}
	}
	if !strings.Contains(p["mine-latency.svg"], "pings, uar.bf_conflict=serialize") {
		t.Error("mine-latency.svg does not name its line")
	}
}
