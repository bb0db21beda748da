package experiment

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/plain"
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
	// By are further keys whose values distinguish lines.
	By []string
	// Words are the values of X, in order, when they are not numbers.
	Words []string
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

var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}

// chart is a plot in the making: its lines by name, in the order in which they came.
type chart struct {
	names []string
	lines map[string]plotter.XYs
	ticks []plot.Tick
	log   bool
}

// collect gathers the points of the rows that belong to the plot.
func (p *Plot) collect(rows []Row) *chart {
	c := &chart{lines: map[string]plotter.XYs{}, log: p.LogX}
	seen := map[float64]bool{}
	for i := range rows {
		x, okx := p.at(&rows[i])
		y, oky := rows[i].Float(p.Y)
		if !p.matches(&rows[i]) || !okx || !oky || math.IsNaN(y) || math.IsInf(y, 0) {
			continue
		}
		name := p.line(&rows[i])
		if _, ok := c.lines[name]; !ok {
			c.names = append(c.names, name)
		}
		c.lines[name] = append(c.lines[name], plotter.XY{X: x, Y: y})
		if !seen[x] {
			seen[x] = true
			label := short(x)
			if text, ok := rows[i].Get(p.X).(string); ok {
				label = plain.Line(text)
			}
			c.ticks = append(c.ticks, plot.Tick{Value: x, Label: label})
		}
	}
	sort.Slice(c.ticks, func(i, j int) bool { return c.ticks[i].Value < c.ticks[j].Value })
	c.log = c.log && len(c.ticks) > 0 && c.ticks[0].Value > 0
	return c
}

// at is where a row lies on the axis.
func (p *Plot) at(r *Row) (float64, bool) {
	if text, ok := r.Get(p.X).(string); ok {
		i := slices.Index(p.Words, text)
		if v, ok := number(text); ok && i < 0 {
			return v, true
		}
		return float64(i), i >= 0
	}
	return r.Float(p.X)
}

// line is the name of the line that a row belongs to.
func (p *Plot) line(r *Row) string {
	name := text(r.Get(p.Series))
	for _, k := range p.By {
		name += ", " + k + "=" + text(r.Get(k))
	}
	return plain.Line(strings.TrimPrefix(name, ", "))
}

// number reads a value of a sweep: a number, a size or a time.
func number(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v, true
	}
	if v, err := input.ParseSize(s); err == nil {
		return float64(v), true
	}
	if v, err := input.ParseTime(s); err == nil {
		return float64(v), true
	}
	return 0, false
}

// Lines and axes take plotWidth of a picture; the legend beside them takes what it needs, in any
// font: letterWidth is that of a wide sans serif, as a share of the font's size.
const (
	plotWidth   = 16 * vg.Centimeter
	plotHeight  = 11 * vg.Centimeter
	margin      = 10 // points
	thumbnail   = 36 // points
	legendFont  = 10 // points
	letterWidth = 0.62
)

// Draw renders the plot as PNG and SVG, with a caption below it.
func (p *Plot) Draw(rows []Row, caption string) (png, svg []byte, err error) {
	ch := p.collect(rows)
	if len(ch.names) == 0 {
		return nil, nil, fmt.Errorf("plot %s: no rows", p.File)
	}
	pl, legend := plot.New(), plot.NewLegend()
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.Title, p.XLabel, p.YLabel
	pl.Title.Padding, pl.X.Padding, pl.Y.Padding = vg.Points(margin), vg.Points(4), vg.Points(4)
	pl.Add(plotter.NewGrid())
	for i, name := range ch.names {
		line, points, err := plotter.NewLinePoints(ch.lines[name])
		if err != nil {
			return nil, nil, fmt.Errorf("plot %s: %w", p.File, err)
		}
		s := strokes[i%len(strokes)]
		line.Color, line.Dashes, line.Width = s.c, s.d, vg.Points(1.6)
		points.Color, points.Shape = s.c, glyphs[i/len(strokes)%len(glyphs)]
		pl.Add(line, points)
		legend.Add(name, line, points)
	}
	ch.axes(pl)
	legend.Top, legend.Left = true, true
	legend.Padding, legend.ThumbnailWidth, legend.TextStyle.Font.Size = vg.Points(3), vg.Points(thumbnail), vg.Points(legendFont)
	longest := 0
	for _, name := range ch.names {
		longest = max(longest, len(name))
	}
	beside := vg.Points(thumbnail + 2*margin + letterWidth*legendFont*float64(longest))
	width, height := plotWidth+beside, max(plotHeight, vg.Points(18)*vg.Length(len(ch.names))+2*vg.Centimeter)
	render := func(c draw.Canvas) { compose(c, pl, &legend, beside, caption) }
	img := vgimg.New(width, height)
	render(draw.New(img))
	var pb, sb bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&pb); err != nil {
		return nil, nil, err
	}
	sc := vgsvg.New(width, height)
	render(draw.New(sc))
	if _, err := sc.WriteTo(&sb); err != nil {
		return nil, nil, err
	}
	return pb.Bytes(), sb.Bytes(), nil
}

// axes sets ranges and ticks: every value that occurs, unless they are many, and rates from 0.
func (c *chart) axes(pl *plot.Plot) {
	first, last := c.ticks[0].Value, c.ticks[len(c.ticks)-1].Value
	if c.log {
		pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if len(c.ticks) <= 32 {
		pl.X.Tick.Marker = plot.ConstantTicks(c.apart(first, last))
	}
	if first == last && c.log {
		pl.X.Min, pl.X.Max = first/2, first*2
	} else if first == last {
		pl.X.Min, pl.X.Max = first-1, first+1
	}
	if pl.Y.Min = 0; pl.Y.Max <= 0 {
		pl.Y.Max = 1
	}
	pl.Y.Max *= 1.05
}

// apart leaves out the labels of ticks that lie closer together than a label is wide.
func (c *chart) apart(first, last float64) []plot.Tick {
	scale := func(v float64) float64 { return v }
	if c.log {
		scale = math.Log
	}
	span := scale(last) - scale(first)
	var kept []plot.Tick
	at := math.Inf(-1)
	for _, t := range c.ticks {
		if pos := scale(t.Value); pos-at < span*0.015*float64(len(t.Label)+1) {
			t.Label = ""
		} else {
			at = pos
		}
		kept = append(kept, t)
	}
	return kept
}

// compose puts the plot to the left, the legend to its right and the caption below.
func compose(c draw.Canvas, pl *plot.Plot, legend *plot.Legend, wide vg.Length, caption string) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
	style := pl.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YBottom
	c.FillText(style, c.Min, caption)
	body := draw.Crop(c, 0, -wide, vg.Points(2*margin), 0)
	pl.Draw(body)
	beside := c
	beside.Min.X = c.Max.X - wide + vg.Points(margin)
	beside.Max.Y -= vg.Points(3 * margin)
	legend.Draw(beside)
}

func (p *Plot) matches(r *Row) bool {
	for k, v := range p.Only {
		if r.Get(k) != v {
			return false
		}
	}
	return true
}

// sweepPlots are those of a sweep over a scenario: rates, and latencies, against the first key that
// has several values.
func sweepPlots(name string, points [][]sweepValue) []Plot {
	values := map[string][]string{}
	for _, pt := range points {
		for _, v := range pt {
			if !slices.Contains(values[v.key], v.val) {
				values[v.key] = append(values[v.key], v.val)
			}
		}
	}
	var x string
	var others []string
	for _, k := range sweepKeys(points[0]) {
		if x == "" && len(values[k]) > 1 {
			x = k
		} else {
			others = append(others, k)
		}
	}
	if x == "" {
		return nil
	}
	p := Plot{X: x, XLabel: x, Series: "name", By: others, Only: map[string]any{"row": "traffic"}}
	low, high := math.Inf(1), math.Inf(-1)
	for _, text := range values[x] {
		v, ok := number(text)
		if !ok {
			p.Words = values[x]
		}
		low, high = min(low, v), max(high, v)
	}
	p.LogX = p.Words == nil && low > 0 && high/low >= 8
	rate, latency := p, p
	rate.File, rate.Title, rate.Y, rate.YLabel = name+"-rate", name+": rate of each load", "rate_mps", "million messages/s"
	latency.File, latency.Title, latency.Y, latency.YLabel = name+"-latency", name+": median latency of each load", "latency_ns_p50", "ns"
	return []Plot{rate, latency}
}

// split draws a line of its own for each point of a sweep over an experiment.
func split(plots []Plot, keys []string) []Plot {
	all := slices.Clone(plots)
	for i := range all {
		all[i].By = append(slices.Clone(all[i].By), keys...)
	}
	return all
}

// caption says where the numbers of a picture are from.
func (r *Result) caption() string {
	release, _, _ := strings.Cut(r.Version, "+") // pictures do not change with every commit
	s := fmt.Sprintf("rdmasim %s, profile %s (%s), seed %d", release, r.Profile, r.ProfileHash, r.Seed)
	if !r.Complete {
		s += ", INCOMPLETE"
	}
	return s
}
