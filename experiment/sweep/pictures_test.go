package sweep

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// Points of a sample that a list tells apart have lines of their own, as far as they are few; of
// the other keys the line's name says what they range over.
func TestLinesOfASample(t *testing.T) {
	var g grid.Grid
	for _, text := range []string{"payload=2..8KiB", "verb=write,send", "window=1..64", "qps,conns=1:1,2:8", "seed=1:30:1"} {
		a, err := grid.Parse(t.Context(), text, "")
		if err != nil {
			t.Fatal(err)
		}
		g.Axes = append(g.Axes, a)
	}
	g.Draw("latin", 12, 1)
	a := &Answer{r: &prepared{Plan: &Plan{Grid: g}}}
	keys, across := a.lines(0)
	if want := []string{"verb", "qps", "conns"}; !slices.Equal(keys, want) {
		t.Errorf("lines by %v, not %v", keys, want)
	}
	if want := []string{"window=1..64", "seed=1,…,30"}; !slices.Equal(across, want) {
		t.Errorf("lines across %v, not %v", across, want)
	}
	g.Sample = nil
	a = &Answer{r: &prepared{Plan: &Plan{Grid: g}}}
	if keys, across = a.lines(0); len(keys) != 5 || len(across) != 0 {
		t.Errorf("without a sample lines are by %v, across %v", keys, across)
	}
}

// The places of keys that change together are named by all of their values.
func TestValuesOfKeysThatChangeTogether(t *testing.T) {
	a, err := grid.Parse(t.Context(), "payload,window=2:8,64B:4", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(&a), []string{"2:8", "64B:4"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// What limits a point may differ between its seeds: the list of them is a word of the picture.
func TestWordsOfSeveralSeeds(t *testing.T) {
	var one, two table.Row
	a := &Answer{Result: &experiment.Result{Rows: []table.Row{*one.Set("limited_by", "wire"), *two.Set("limited_by", "wire, CPU")}}}
	if got := a.words(&chart.Plot{Y: "limited_by", YWords: []string{"CPU", "wire"}}); !slices.Equal(got, []string{"CPU", "wire", "wire, CPU"}) {
		t.Errorf("%q", got)
	}
}
