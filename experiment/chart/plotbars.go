package chart

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bounds of a picture with bars; more lines or places have points without lines between them.
const (
	mostBars     = 64
	mostBarNames = 12
	mostFigures  = 16  // bars with figures above them
	groupWidth   = 0.8 // of the distance between two places
	barPart      = 0.9 // of the room of a bar
)

// bars reports whether places on the axis below are words, between which there is nothing, and no
// numbers.
func (p *Plot) bars() bool {
	return !p.Scattered && len(p.Words) > 0 && slices.ContainsFunc(p.Words, func(w string) bool {
		return slices.ContainsFunc(strings.Split(w, ":"), func(part string) bool { _, ok := number(part); return !ok })
	})
}

// swatch is how the bars of a line look: the first ones are full, further ones light with an edge.
type swatch struct {
	fill, edge color.Color
}

func barStyle(i int) swatch {
	c := strokes[i%len(strokes)].c
	if i < len(strokes) {
		return swatch{c, c}
	}
	return swatch{color.NRGBA{c.R, c.G, c.B, 70}, c}
}

// Thumbnail draws it for the legend.
func (b swatch) Thumbnail(c *draw.Canvas) {
	b.draw(c, vg.Rectangle{Min: c.Min, Max: c.Max})
}

func (b swatch) draw(c *draw.Canvas, r vg.Rectangle) {
	corners := []vg.Point{r.Min, {X: r.Min.X, Y: r.Max.Y}, r.Max, {X: r.Max.X, Y: r.Min.Y}}
	c.FillPolygon(b.fill, corners)
	c.StrokeLines(draw.LineStyle{Color: b.edge, Width: vg.Points(1)}, append(corners, r.Min))
}

// group are the bars of one line, from the axis up to its points.
type group struct {
	swatch
	points  plotter.XYs
	width   float64
	figures *draw.TextStyle // nil: none
}

// Plot draws them.
func (g *group) Plot(c draw.Canvas, pl *plot.Plot) {
	x, y := pl.Transforms(&c)
	for _, p := range g.points {
		g.draw(&c, vg.Rectangle{Min: vg.Point{X: x(p.X - barPart*g.width/2), Y: y(0)}, Max: vg.Point{X: x(p.X + barPart*g.width/2), Y: y(p.Y)}})
		if g.figures != nil {
			c.FillText(*g.figures, vg.Point{X: x(p.X), Y: y(p.Y) + vg.Points(2)}, threeDigits(p.Y))
		}
	}
}

// DataRange is the room that they take.
func (g *group) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = plotter.XYRange(g.points)
	return xmin - g.width, xmax + g.width, min(0, ymin), ymax
}

// addBars draws a bar for each point, side by side where they have one place, with figures above
// them if these have room.
func (p *Plot) addBars(pic *picture, ch *Curves) {
	pl := pic.plot
	all := 0
	for _, points := range ch.Points {
		all += len(points)
	}
	first, last := ch.Ticks[0].Value, ch.Ticks[len(ch.Ticks)-1].Value
	width := groupWidth / float64(len(ch.Names))
	figures := pl.X.Tick.Label
	figures.Font.Size, figures.XAlign, figures.YAlign, figures.Rotation = vg.Points(captionFont), draw.XCenter, draw.YBottom, 0
	room := axisWidth / vg.Length(last-first+1) * vg.Length(width)
	fits, banded := all <= mostFigures, false
	for _, name := range ch.Names {
		for i, q := range ch.Points[name] {
			fits = fits && figures.Width(threeDigits(q.Y)) <= room
			banded = banded || ch.bands[name][i][1] > ch.bands[name][i][0]
		}
	}
	shown := shortNames(ch.Names)
	for i, name := range ch.Names {
		g := &group{swatch: barStyle(i), width: width}
		if fits && !banded {
			g.figures = &figures
		}
		for _, q := range ch.Points[name] {
			g.points = append(g.points, plotter.XY{X: q.X - groupWidth/2 + (float64(i)+0.5)*width, Y: q.Y})
		}
		pl.Add(g)
		if banded {
			_ = whiskers(pl, g.points, ch.bands[name], color.Black) // its points were made of numbers
		}
		pic.name(shown[i], g)
	}
	pic.extra = ch.axes(pl)
	pl.X.Min, pl.X.Max = first-0.5, last+0.5
	pl.X.Tick.Length = 0
	if fits {
		pl.Y.Max *= 1.05
	}
	if math.IsInf(pl.Y.Max, 0) {
		pl.Y.Max = 1
	}
}
