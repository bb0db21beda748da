package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
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

// A picture of one point, and one of rows without a rate, are drawn.
func TestPlotOfOnePoint(t *testing.T) {
	x, err := Find("uar-sharing")
	if err != nil {
		t.Fatal(err)
	}
	if p := drawn(t, x, Request{Set: []string{"threads=1", "ablate=false", "duration_us=10"}}); len(p) != 2 {
		t.Errorf("%d pictures", len(p))
	}
	for _, y := range []float64{0, 1} {
		var r Row
		p := Plot{File: "f", X: "x", Y: "y", Series: "s", LogX: true}
		if _, _, err := p.Draw([]Row{*r.Set("x", 0).Set("y", y).Set("s", "a")}, ""); err != nil {
			t.Error(err)
		}
	}
}

// So is a sweep over an experiment, a line for each point.
func TestSweepOfAnExperimentIsDrawn(t *testing.T) {
	x, err := Find("uar-factorial")
	if err != nil {
		t.Fatal(err)
	}
	p := drawn(t, x, Request{Set: []string{"duration_us=10"}, Sweep: []string{"threads=2,4"}})["uar-factorial.svg"]
	for _, want := range []string{">shared by 2, lock=none, threads=2<", ">shared by all, lock=QP lock, threads=4<", ">own<"} {
		if !strings.Contains(p, want) {
			t.Errorf("no %s", want)
		}
	}
}

// No two lines that the legend names look the same, and those that it does not name look like none of them.
func TestLinesLookDifferent(t *testing.T) {
	for _, lines := range []bool{true, false} {
		looks := map[string]int{}
		for i := range 2 * mostNames {
			line, points, err := plotter.NewLinePoints(plotter.XYs{{X: 1, Y: 1}})
			if err != nil {
				t.Fatal(err)
			}
			style(i, lines, line, points)
			look := fmt.Sprintf("%v %T", points.Color, points.Shape)
			if lines {
				look += fmt.Sprintf(" %v %v", line.Color, line.Dashes)
			}
			if other, ok := looks[look]; ok && (i < mostNames || other < mostNames) {
				t.Errorf("lines %d and %d look like %s", other, i, look)
			}
			looks[look] = i
		}
	}
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
