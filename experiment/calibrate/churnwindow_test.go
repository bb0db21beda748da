package calibrate

import (
	"math"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// The deregistrations of check 13 come as often before a window as in it: one half as long gives
// the same share of misses.
func TestChurnFigureHasSettled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	all, err := loadValidations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Check != 13 {
			continue
		}
		var missed [2]float64
		for i, duration := range []string{"11200us", "23400us"} { // with the warmup four deregistrations, and eight
			s, err := v.run("dereg")
			if err == nil {
				s, err = s.With(experiment.Setting{Key: "traffic.0.duration", Value: duration})
			}
			if err != nil {
				t.Fatal(err)
			}
			out := runOf(t, s)
			misses, _ := out.Counter("host0.hca.mtt_misses")
			lookups, _ := out.Counter("host0.hca.mtt_lookups")
			missed[i] = misses / lookups
		}
		if off := math.Abs(missed[1]/missed[0] - 1); off > steadyRate || math.IsNaN(off) {
			t.Errorf("%.3g of the look-ups miss in one window, and %.3g in one twice as long", missed[0], missed[1])
		}
		return
	}
	t.Error("there is no check 13")
}
