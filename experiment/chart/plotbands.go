package chart

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// shade draws the band around a line, or around each of its points if they come in no order.
func (c *Curves) shade(pl *plot.Plot, name string, line color.Color, scattered bool) error {
	points, ends := c.Points[name], c.bands[name]
	if !slices.ContainsFunc(ends, func(e [2]float64) bool { return e[1] > e[0] }) {
		return nil
	}
	if scattered {
		return whiskers(pl, points, ends, line)
	}
	var edge plotter.XYs
	for i, p := range points {
		edge = append(edge, plotter.XY{X: p.X, Y: ends[i][1]})
	}
	for i, p := range slices.Backward(points) {
		edge = append(edge, plotter.XY{X: p.X, Y: ends[i][0]})
	}
	band, err := plotter.NewPolygon(edge)
	if err != nil {
		return err
	}
	r, g, b, _ := line.RGBA()
	band.Color = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 60}
	band.LineStyle.Width = 0
	pl.Add(band)
	return nil
}

// whiskers draw the band around each point.
func whiskers(pl *plot.Plot, points plotter.XYs, ends [][2]float64, line color.Color) error {
	s := spreads{XYer: points}
	for i, p := range points {
		s.YErrors = append(s.YErrors, struct{ Low, High float64 }{max(0, p.Y-ends[i][0]), max(0, ends[i][1]-p.Y)})
	}
	each, err := plotter.NewYErrorBars(s)
	if err != nil {
		return err
	}
	each.Color = line
	pl.Add(each)
	return nil
}

// spreads are points with the intervals around them, as package plotter reads them.
type spreads struct {
	plotter.XYer
	plotter.YErrors
}
