package workload

import (
	"math"
	"testing"
	"time"
)

// resultOf is the result of a load that delivers so much in each quarter of 4 us.
func resultOf(quarters ...float64) *Result {
	r := &Result{End: 4 * time.Microsecond}
	for k, n := range quarters {
		r.batches[k] = batch{delivered: n, polled: n > 0}
	}
	r.Confidence = confidence(r.batches)
	return r
}

// The interval of a sum is that of the summed batches: loads that take turns are steady together,
// and those that falter together are not.
func TestTogether(t *testing.T) {
	even, odd := resultOf(10, 20, 10, 20), resultOf(20, 10, 20, 10)
	if c, ok := Together([]*Result{even, odd}, []float64{1, 1}); !ok || c != 0 || even.Confidence < 0.5 {
		t.Errorf("loads that take turns: ±%v, %v; each ±%v", c, ok, even.Confidence)
	}
	if c, ok := Together([]*Result{even, even}, []float64{1, 1}); !ok || math.Abs(c-even.Confidence) > 1e-12 {
		t.Errorf("loads that falter together: ±%v, %v, want ±%v", c, ok, even.Confidence)
	}
	if c, _ := Together([]*Result{even, odd}, []float64{4096, 1}); math.Abs(c-even.Confidence) > 0.001 {
		t.Errorf("a load whose messages weigh 4096 times as much: ±%v, want ±%v", c, even.Confidence)
	}
	if c, ok := Together([]*Result{resultOf(10, 0, 10, 0), resultOf(0, 10, 0, 10)}, []float64{1, 1}); !ok || c != 0 {
		t.Errorf("a quarter in which one load delivers nothing: ±%v, %v", c, ok)
	}
	if c, ok := Together([]*Result{resultOf(10, 0, 10, 10), resultOf(10, 0, 10, 10)}, []float64{1, 1}); !ok || !math.IsInf(c, 1) {
		t.Errorf("a quarter in which nothing is delivered: ±%v, %v", c, ok)
	}
	late := resultOf(10, 10, 10, 10)
	late.End++
	failed := resultOf(10, 10, 10, 10)
	failed.Failed = &Failure{}
	for _, other := range []*Result{late, failed} {
		if c, ok := Together([]*Result{even, other}, []float64{1, 1}); ok {
			t.Errorf("loads of different times, or one that failed: ±%v", c)
		}
	}
	if _, ok := Together(nil, nil); ok {
		t.Error("no load has an interval")
	}
	// Progress in bursts counts as that of a single load does.
	burst := resultOf(10, 10, 10, 10)
	burst.progress = make([]float64, looks+1)
	for k := range burst.progress {
		burst.progress[k] = float64(k / 16 * 10)
	}
	want := burstOf(burst.progress, 40)
	if c, ok := Together([]*Result{burst, burst}, []float64{1, 1}); !ok || want < 0.2 || math.Abs(c-want) > 1e-12 {
		t.Errorf("bursts at the same time: ±%v, want ±%v", c, want)
	}
	if c, ok := Together([]*Result{burst, resultOf(10, 10, 10, 10)}, []float64{1, 1}); !ok || math.Abs(c-want/2) > 1e-12 {
		t.Errorf("bursts of half of what is delivered: ±%v, want ±%v", c, want/2)
	}
}
