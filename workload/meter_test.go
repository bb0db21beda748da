package workload

import (
	"math"
	"testing"
	"time"
)

// A delivery that lies across an edge of the measured time counts by the part inside.
func TestMeterCountsWhatLiesInside(t *testing.T) {
	const begin, long = 100, 1000
	for _, c := range []struct {
		from, to time.Duration
		want     float64
	}{
		{0, 50, 0}, {0, 100, 0}, {0, 200, 5}, {50, 150, 5}, {100, 110, 10}, {300, 300, 10}, {350, 950, 10},
		{1000, 1200, 5}, {1090, 1110, 5}, {1100, 1100, 10}, {1100, 1101, 0}, {1200, 1300, 0}, {0, 2100, 10 * 1000. / 2100},
	} {
		m := newMeter(begin, long)
		if got := m.add(c.from, c.to, 10); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("10 messages from %d to %d: %v of them inside, want %v", c.from, c.to, got, c.want)
		}
		sum := 0.0
		for _, b := range m.bins {
			sum += b.delivered
		}
		if math.Abs(sum-c.want) > 1e-9 {
			t.Errorf("10 messages from %d to %d: %v in the bins, want %v", c.from, c.to, sum, c.want)
		}
	}
}

// In a time without end the bins grow, and lose nothing.
func TestMeterWithoutEnd(t *testing.T) {
	m := newMeter(0, 0)
	at := time.Duration(0)
	for i := range 10000 {
		next := at + time.Duration(i%7+1)*time.Microsecond
		if got := m.add(at, next, 3); math.Abs(got-3) > 1e-9 {
			t.Fatalf("%v of 3 messages counted", got)
		}
		at = next
	}
	q, polled := m.quarters(at)
	for k := range q {
		if math.Abs(q[k]-7500) > 3 || !polled[k] {
			t.Errorf("quarter %d: %v messages, polled %v, want 7500", k+1, q[k], polled[k])
		}
	}
	if c := confidence(batchesOf([]*meter{m}, at)); c > 0.001 {
		t.Errorf("a steady rate is known to ±%v", c)
	}
}

func TestConfidence(t *testing.T) {
	fill := func(quarters ...uint64) *meter {
		m := newMeter(0, 6400)
		for k, n := range quarters {
			if n > 0 {
				m.add(time.Duration(1600*k), time.Duration(1600*k+1600), n)
			}
		}
		return m
	}
	for _, c := range []struct {
		meters []*meter
		want   float64
	}{
		{[]*meter{fill(10, 10, 10, 10)}, 0},
		// The standard deviation of 80, 100, 100, 120 is 16.33, half of it is the error of the
		// mean.
		{[]*meter{fill(80, 100, 100, 120)}, 3.182 * 0.16330 / 2},
		{[]*meter{fill(40, 60, 50, 50), fill(60, 40, 50, 50)}, 0}, // threads that take turns
		{[]*meter{fill(10, 0, 10, 10)}, math.Inf(1)},
		{[]*meter{fill()}, math.Inf(1)},
	} {
		if got := confidence(batchesOf(c.meters, 6400)); got != c.want && !(math.Abs(got-c.want) < 1e-4) {
			t.Errorf("got ±%v, want ±%v", got, c.want)
		}
	}
}
