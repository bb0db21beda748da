package experiment

import (
	"bytes"
	"fmt"
	"image/color"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a line chart over rows: one line for each value of Series.
type Plot struct {
	File           string // without extension
	Title          string
	X, Y           string // keys
	XLabel, YLabel string
	Series         string // key
	Only           map[string]any
	LogX           bool
}

// Lines that stay apart for readers who do not see all colours.
var strokes = []struct {
	c color.RGBA
	d []vg.Length
}{
	{color.RGBA{0, 114, 178, 255}, nil},
	{color.RGBA{213, 94, 0, 255}, []vg.Length{vg.Points(6), vg.Points(3)}},
	{color.RGBA{0, 158, 115, 255}, []vg.Length{vg.Points(2), vg.Points(2)}},
	{color.RGBA{204, 121, 167, 255}, []vg.Length{vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}},
	{color.RGBA{90, 90, 90, 255}, []vg.Length{vg.Points(1), vg.Points(3)}},
	{color.RGBA{230, 159, 0, 255}, []vg.Length{vg.Points(10), vg.Points(2)}},
}

// Draw renders the plot as PNG and SVG.
func (p *Plot) Draw(rows []Row) (png, svg []byte, err error) {
	pl := plot.New()
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.Title, p.XLabel, p.YLabel
	pl.Add(plotter.NewGrid())
	if p.LogX {
		pl.X.Scale = plot.LogScale{}
	}
	var names []string
	lines := map[string]plotter.XYs{}
	var ticks []plot.Tick
	seen := map[float64]bool{}
	for i := range rows {
		if !p.matches(&rows[i]) {
			continue
		}
		x, okx := rows[i].Float(p.X)
		y, oky := rows[i].Float(p.Y)
		if !okx || !oky {
			continue
		}
		name := fmt.Sprint(rows[i].Get(p.Series))
		if _, ok := lines[name]; !ok {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: x, Y: y})
		if !seen[x] {
			seen[x] = true
			ticks = append(ticks, plot.Tick{Value: x, Label: short(x)})
		}
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("plot %s: no rows", p.File)
	}
	sort.Slice(ticks, func(i, j int) bool { return ticks[i].Value < ticks[j].Value })
	if len(ticks) <= 12 {
		pl.X.Tick.Marker = plot.ConstantTicks(ticks)
	}
	for i, name := range names {
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return nil, nil, fmt.Errorf("plot %s: %w", p.File, err)
		}
		s := strokes[i%len(strokes)]
		line.Color, line.Dashes, line.Width = s.c, s.d, vg.Points(1.6)
		points.Color, points.Shape = s.c, draw.CircleGlyph{}
		pl.Add(line, points)
		pl.Legend.Add(name, line, points)
	}
	pl.Legend.Top = true
	pl.Legend.Padding, pl.Legend.ThumbnailWidth = vg.Points(3), vg.Points(36)
	pl.Legend.XOffs, pl.Legend.YOffs = -vg.Points(12), -vg.Points(2)
	pl.Y.Min = 0
	pl.Y.Max *= 1.1 + 0.08*float64(len(names)) // room for the legend
	const w, h = 18 * vg.Centimeter, 11 * vg.Centimeter
	img := vgimg.New(w, h)
	pl.Draw(draw.New(img))
	var pb, sb bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&pb); err != nil {
		return nil, nil, err
	}
	sc := vgsvg.New(w, h)
	pl.Draw(draw.New(sc))
	if _, err := sc.WriteTo(&sb); err != nil {
		return nil, nil, err
	}
	return pb.Bytes(), sb.Bytes(), nil
}

func (p *Plot) matches(r *Row) bool {
	for k, v := range p.Only {
		if r.Get(k) != v {
			return false
		}
	}
	return true
}
