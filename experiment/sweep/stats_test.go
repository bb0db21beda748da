package sweep

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// By the tables of t: 2.7764 with 4 degrees of freedom, 12.7062 with 1.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		v            []float64
		mean, spread float64
	}{{[]float64{10.1, 9.8, 10.4, 10.0, 9.9}, 10.04, 0.28588}, {[]float64{1, 3}, 2, 12.7062}, {[]float64{7, 7, 7}, 7, 0}} {
		mean, spread, _ := meanAndSpread(c.v)
		if math.Abs(mean-c.mean) > 1e-9 || math.Abs(spread-c.spread) > 1e-4 {
			t.Errorf("%v: %v ± %v, want %v ± %v", c.v, mean, spread, c.mean, c.spread)
		}
	}
	if _, spread, _ := meanAndSpread([]float64{1}); !math.IsNaN(spread) {
		t.Errorf("one figure has an interval: %v", spread)
	}
}

func runOf(seed uint64, rates ...float64) *result {
	r := &result{Seed: seed}
	for i, rate := range rates {
		var row table.Row
		row.Set("row", "traffic").Set("name", "load").Set("index", i).Set("rate_mps", rate).Set("ok", true).Set("count", int(seed))
		r.rows = append(r.rows, row)
	}
	return r
}

func TestRowsOfSeedsAreMerged(t *testing.T) {
	gs := groups([]*result{runOf(1, 10, 20), runOf(2, 12, 20), runOf(3, 11, 20)})
	if len(gs) != 2 {
		t.Fatalf("%d groups", len(gs))
	}
	a, b := gs[0].merged(), gs[1].merged()
	for _, c := range []struct {
		row  *table.Row
		key  string
		want any
	}{{&a, "seeds", 3}, {&a, "rate_mps", 11.0}, {&a, "index", 0}, {&b, "index", 1}, {&b, "rate_mps", 20.0}, {&b, "rate_mps_ci95", 0.0}, {&a, "ok", true}, {&a, "count", 2.0}, {&a, "name", "load"}} {
		if got := c.row.Get(c.key); got != c.want {
			t.Errorf("%s: %v, want %v", c.key, got, c.want)
		}
	}
	if s, _ := a.Float("rate_mps_ci95"); math.Abs(s-2.48414) > 1e-4 {
		t.Errorf("interval %v", s)
	}
	shown := a.Shown()
	if text := shown.Get("rate_mps"); text != "11 ±2.5" {
		t.Errorf("shown as %v", text)
	}
}

// What each run knows of its own figures is no interval over the runs.
func TestIntervalsWithinRunsAreNotOverRuns(t *testing.T) {
	runs := []*result{runOf(1, 10), runOf(2, 10)}
	for _, r := range runs {
		r.rows[0].Set("latency_ns_p50", 5.0).Set("latency_ns_p50"+table.SpreadSuffix, 2.0).Set("gbps", 3.0).Set(table.RateInterval, 4.0)
	}
	g := groups(runs)[0].merged()
	shown := g.Shown()
	for k, want := range map[string]any{"rate_mps": 10.0, "latency_ns_p50": 5.0, "gbps": 3.0} {
		if got := shown.Get(k); got != want {
			t.Errorf("%s: shown as %v, want %v", k, got, want)
		}
	}
	if half, ok := g.Half("latency_ns_p50"); ok && half != 0 {
		t.Errorf("±%v of figures that do not depend on the seed", half)
	}
}

// The warning comes where the interval of a difference has zero, with how many seeds would do, and
// not elsewhere.
func TestIntervalsThatHideTheAnswer(t *testing.T) {
	sc, err := experiment.ParseScenario("q.yaml", []byte(question))
	if err != nil {
		t.Fatal(err)
	}
	verdictOf := func(points ...[]float64) string {
		r := &prepared{Plan: &Plan{Seeds: 3, Request: experiment.Request{Seed: 1}}, x: sc.Experiment()}
		a := grid.Axis{Keys: []string{"k"}}
		for i := range points {
			a.Values = append(a.Values, []string{fmt.Sprint(i)})
		}
		r.Grid.Axes, r.n = []grid.Axis{a}, len(points)*3
		j := newJudge(r)
		for i, rates := range points {
			c := cell{settings: []experiment.Setting{{Key: "k", Value: fmt.Sprint(i)}}}
			for s, rate := range rates {
				c.runs = append(c.runs, runOf(uint64(s+1), rate))
			}
			for _, r := range c.runs {
				for k := range r.rows {
					r.rows[k].Set("count", 1)
				}
			}
			j.add(&c)
		}
		return strings.Join(j.notes(), "\n")
	}
	if got := verdictOf([]float64{10, 10.1, 9.9}, []float64{20, 20.1, 19.9}); strings.Contains(got, "WARNING") || !strings.Contains(got, "means over seeds 1 to 3") {
		t.Errorf("far apart: %s", got)
	}
	if got := verdictOf([]float64{10, 11, 9}, []float64{10.5, 11.5, 9.5}, []float64{30, 31, 29}); !strings.Contains(got, "WARNING: the intervals hide the answer in 1 of 2 comparisons of rate_mps between neighbours on k. The first: k=0 and k=1") || !strings.Contains(got, "seeds would tell them apart") {
		t.Errorf("close: %s", got)
	}
	if got := verdictOf([]float64{10, 10, 10}, []float64{10, 10, 10}); !strings.Contains(got, "nothing in these runs is random") {
		t.Errorf("nothing random: %s", got)
	}
}

// A line names few of the values that a swept hypothesis has, and few of many words.
func TestLinesStayShort(t *testing.T) {
	h := switches{}
	for i := range mostCounted + 5 {
		h.add([]string{"hca.few=" + strconv.Itoa(i%2), fmt.Sprintf("uar.many=%d", i%1000), fmt.Sprintf("uar.more=%d", i)})
	}
	want := []string{"hca.few=0", "hca.few=1", "uar.many=0 and 999 more values", "uar.more=0 and at least 9999 more values"}
	if diff := cmp.Diff(want, h.texts()); diff != "" {
		t.Error(diff)
	}
	l := newList()
	for i := range 8 {
		l.add(strconv.Itoa(i))
	}
	if got := l.String(); got != "0, 1, 2, 3, 4, 5 and 2 more" {
		t.Error(got)
	}
}

// A figure that some seeds lack is the mean of the others, and says of how many; a whole number is
// that of the first seed that has it.
func TestFiguresThatSeedsLack(t *testing.T) {
	runs := []*result{runOf(1, 10), runOf(2, math.NaN()), runOf(3, 14)}
	for i, r := range runs {
		if i > 0 {
			r.rows[0].Set("whole", 7)
		}
	}
	gs := groups(runs)
	row := gs[0].merged()
	for key, want := range map[string]any{"seeds": 3, "rate_mps": 12.0, "rate_mps_seeds": 2, "whole": 7, "whole_seeds": 2, "count_seeds": nil} {
		if got := row.Get(key); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	sc, err := experiment.ParseScenario("q.yaml", []byte(question))
	if err != nil {
		t.Fatal(err)
	}
	j := newJudge(&prepared{Plan: &Plan{Seeds: 3, Request: experiment.Request{Seed: 1}}, x: sc.Experiment(), n: 3})
	j.add(&cell{settings: []experiment.Setting{{Key: "k", Value: "1"}}, runs: runs})
	if got := strings.Join(j.notes(), "\n"); !strings.Contains(got, "WARNING: in 1 row some seeds lack a figure") || !strings.Contains(got, "rate_mps, whole of k=1") {
		t.Errorf("notes: %s", got)
	}
}
