package studies

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// The answer of "how should 32 threads share UAR pages": rates that are steady, of points that were
// measured for as long as that takes. In the 150 us that 16 threads need, those of 32 on contexts
// of their own fall from 150 M/s to 85.
func TestThirtyTwoThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	res, err := uarSharing().Execute(t.Context(), experiment.Request{Seed: 1, Set: []string{"threads=32", "graph=1", "ablate=false"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	type point struct {
		series string
		way    int
	}
	rates, longer := map[point]float64{}, 0
	for i := range res.Rows {
		row := &res.Rows[i]
		at := point{row.Get("series").(string), row.Get("sharing").(int)}
		rates[at], _ = row.Float("rate_mps")
		if percent, ok := row.Float(table.RateInterval); !ok || percent > 5 {
			t.Errorf("%v: ±%v %%", at, percent)
		}
		if long, _ := row.Float("measured_us"); long > 150 {
			longer++
		}
	}
	for at, want := range map[point]float64{
		{"BlueFlame", 1}: 87.56, {"BlueFlame", 8}: 112.8, {"BlueFlame", 32}: 104.3,
		{"doorbell (UC mapping)", 1}: 114.7, {"doorbell (UC mapping)", 32}: 106.9, {"postlist 2", 1}: 150, {"postlist 2", 32}: 150,
	} {
		if got := rates[at]; math.Abs(got/want-1) > 0.001 {
			t.Errorf("%v: %.4g M/s, want %v", at, got, want)
		}
	}
	notes := strings.Join(res.Notes, "\n")
	if longer != 5 || !strings.Contains(notes, "BlueFlame, 16-way: its rate is that of 4 times the duration") || strings.Contains(notes, "not steady:") {
		t.Errorf("%d points were measured for longer:\n%s", longer, notes)
	}
}
