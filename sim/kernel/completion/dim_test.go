package completion

import "testing"

// rdma_dim on samples whose outcome follows from its source.
func TestDIMDecides(t *testing.T) {
	d := &dim{step: 1}
	for i, c := range []struct{ rate, events, want int64 }{
		{1000, 1000, 0}, // the first sample: the same; 100 completions for 100 events, more than 50 * 0
		{2000, 1000, 1}, // better: a step
		{4000, 1000, 2},
		{2000, 1000, 1}, // worse: turn
		{2000, 1000, 1}, // the same, at a ratio above 50
		{2000, 4000, 2}, // a worse ratio: turn again
	} {
		d.profile = d.decide(c.rate, c.events)
		if d.profile != int(c.want) {
			t.Errorf("sample %d: profile %d, want %d", i, d.profile, c.want)
		}
	}
	d.profile, d.prevRatio = 4, 100
	if d.profile = d.decide(2000, 2000); d.profile != 0 {
		t.Errorf("same at a low ratio: profile %d, want 0", d.profile)
	}
}
