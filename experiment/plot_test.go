package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// A sweep of one's own is drawn, with where it is from below it.
func TestSweepIsDrawn(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: mine\ntraffic: [{name: writes, messages: 100}, {name: pings, cores: [3], measure: latency, messages: 10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := drawn(t, s.experiment(), Request{Sweep: []string{"traffic.0.payload=2B,64B,4KiB", "uar.bf_conflict=none,serialize"}})
	if len(p) != 2 {
		t.Fatalf("%d pictures", len(p))
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

// Text has room to be a third wider than it is in the font of the program, and the legend lies beside the lines.
func TestPlotTextFits(t *testing.T) {
	var rows []Row
	for _, s := range []string{"short", "a series with a rather long name, and one more thing"} {
		for i := 1; i <= 16; i *= 2 {
			var r Row
			rows = append(rows, *r.Set("x", i).Set("y", float64(i)*1.5).Set("s", s))
		}
	}
	p := Plot{File: "f", Title: "title", X: "x", Y: "y", XLabel: "x", YLabel: "y", Series: "s", LogX: true}
	_, svg, err := p.Draw(rows, "caption")
	if err != nil {
		t.Fatal(err)
	}
	var width, height float64
	if _, err := fmt.Sscanf(string(regexp.MustCompile(`viewBox="[^"]*"`).Find(svg)), `viewBox="0 0 %f %f"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?s)<text x="([-0-9.]+)" y="[-0-9.]+"[^>]*font-size:([0-9.]+)px">([^<]*)</text>`)
	found := text.FindAllSubmatch(svg, -1)
	if len(found) < 8 {
		t.Fatalf("%d texts in\n%s", len(found), svg[:min(len(svg), 3000)])
	}
	for _, m := range found {
		var x, size float64
		fmt.Sscan(string(m[1]), &x)
		fmt.Sscan(string(m[2]), &size)
		// A wide sans serif takes 0.6 of its size for a letter.
		if right := x + 0.6*size*float64(len(bytes.TrimSpace(m[3]))); right > width {
			t.Errorf("%q ends at %.0f of %.0f", m[3], right, width)
		}
	}
}
