package chart

import (
	"fmt"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// A picture of rows with one point, and one of rows without a rate, are drawn.
func TestOnePointIsDrawn(t *testing.T) {
	for _, y := range []float64{0, 1} {
		var r table.Row
		p := Plot{File: "f", X: "x", Y: "y", Series: "s", LogX: true}
		if _, _, err := p.Draw([]table.Row{*r.Set("x", 0).Set("y", y).Set("s", "a")}, ""); err != nil {
			t.Error(err)
		}
	}
}

// No two lines that the legend names look the same, and those that it does not name look like none
// of them.
func TestLinesLookDifferent(t *testing.T) {
	for _, lines := range []bool{true, false} {
		looks := map[string]int{}
		for i := range 2 * mostNames {
			line, points, err := plotter.NewLinePoints(plotter.XYs{{X: 1, Y: 1}})
			if err != nil {
				t.Fatal(err)
			}
			style(i, lines, line, points)
			look := fmt.Sprintf("%v %T", points.Color, points.Shape)
			if lines {
				look += fmt.Sprintf(" %v %v", line.Color, line.Dashes)
			}
			if other, ok := looks[look]; ok && (i < mostNames || other < mostNames) {
				t.Errorf("lines %d and %d look like %s", other, i, look)
			}
			looks[look] = i
		}
	}
}
