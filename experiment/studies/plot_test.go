package studies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// pictures runs an experiment or a scenario and returns the names and SVG texts of its pictures.
func pictures(t *testing.T, x *experiment.Experiment, req experiment.Request) map[string]string {
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
	svgs := map[string]string{}
	for _, n := range names {
		if strings.HasSuffix(n, ".svg") {
			b, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(err)
			}
			svgs[n] = string(b)
		}
	}
	return svgs
}

// A picture of one point is drawn.
func TestPlotOfOnePoint(t *testing.T) {
	x, err := Find("uar-sharing")
	if err != nil {
		t.Fatal(err)
	}
	if p := pictures(t, x, experiment.Request{Set: []string{"threads=1", "ablate=false", "duration_us=10"}}); len(p) != 2 {
		t.Errorf("%d pictures", len(p))
	}
}
