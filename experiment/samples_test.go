package experiment

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// A percentile has the interval of batch means over the quarters of each thread's messages, where
// these hold enough of them.
func TestPercentilesHaveIntervals(t *testing.T) {
	rising := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(100*(1+4*i/n))*time.Nanosecond)
		}
		return all
	}
	for _, c := range []struct {
		threads, each int
		p50           float64 // half of its interval; 0: none
	}{
		{1, 40, 205.397}, // 100, 200, 300, 400: 3.182 * 129.099 / sqrt(4)
		{3, 40, 205.397},
		{1, 36, 0}, // nine a quarter: 4.5 beyond the median
		{2, 20, 205.397},
	} {
		var s samples
		for range c.threads {
			s.add(rising(c.each))
		}
		var row table.Row
		percentiles(&row, &s)
		got, ok := row.Half("latency_ns_p50")
		if ok != (c.p50 > 0) || math.Abs(got-c.p50) > 0.01 {
			t.Errorf("%d threads of %d: ±%v, want %v", c.threads, c.each, got, c.p50)
		}
		if n, _ := row.Float("samples"); int(n) != c.threads*c.each {
			t.Errorf("%v samples of %d", n, c.threads*c.each)
		}
		if _, ok := row.Half("latency_ns_p999"); ok {
			t.Error("p999 of a few messages has an interval")
		}
	}
}

// A table has rates and percentiles of a single run with their intervals, and says what these are;
// files have the numbers.
func TestTablesHaveIntervals(t *testing.T) {
	s, err := ParseScenario("one.yaml", []byte("name: one\ntraffic:\n  - {name: w, threads: 2, payload: 4KiB, window: 4, measure: both, messages: 400}\nfaults: [{do: drop, per_million: 300}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Experiment().Execute(t.Context(), Request{Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := res.Write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	rate, _ := res.Rows[0].Float("rate_mps")
	half, ok := res.Rows[0].Half("rate_mps")
	percent, _ := res.Rows[0].Float(table.RateInterval)
	if want := rate * percent / 100; !ok || math.Abs(half-want) > 1e-9*want {
		t.Errorf("±%v of %v with %v %%", half, rate, percent)
	}
	for _, want := range []string{table.Short(rate) + " ±", "±: half the width"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	text.Reset()
	if err := res.Write(&text, "csv"); err != nil || strings.Contains(text.String(), "±") || !strings.Contains(text.String(), "latency_ns_p50_ci95") {
		t.Errorf("csv: %v\n%s", err, text.String())
	}
}
