package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// HeatMap is a value over two keys that were swept, in colours and, where there is room, in
// figures.
type HeatMap struct {
	File, Title          string
	X, Y                 []string // a key each, or keys that change together
	XValues, YValues     []string // in order, as Together has them
	Value, ValueLabel    string
	Only                 map[string]any
	lookup               map[[2]int]float64
	lowest, highest, gap float64
}

// MostMaps bounds the heat maps of a sweep: one for each load and each combination of the keys that
// a map does not show.
const MostMaps = 12

// MapKinds are what heat maps of a sweep over a scenario show.
var MapKinds = []struct{ Column, Name, Label string }{{"rate_mps", "rate", "million messages/s"}, {"latency_ns_p50", "latency", "median latency, ns"}}

// Map is a heat map, or several in one picture.
type Map interface {
	// Heading returns the title.
	Heading() string
	// Draw draws the map from rows of a sweep as a PNG and an SVG, with a caption below.
	Draw(rows []table.Row, caption string) (png, svg []byte, err error)
	// SVG draws the SVG alone.
	SVG(rows []table.Row, caption string) ([]byte, error)
}

// Heading is the title.
func (h *HeatMap) Heading() string { return h.Title }

// MapFile is the file of the n-th map of a kind, without extension; the first is 1.
func MapFile(scenario, kind string, n int) string {
	return fmt.Sprintf("%s-%s-map-%d", scenario, kind, n)
}

// renderBoth renders a picture as PNG and SVG.
func renderBoth(width, height vg.Length, render func(draw.Canvas)) (png, svg []byte, err error) {
	img := vgimg.New(width, height)
	render(draw.New(img))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&b); err != nil {
		return nil, nil, err
	}
	svg, err = renderSVG(width, height, render)
	return b.Bytes(), svg, err
}

// renderSVG renders a picture as SVG.
func renderSVG(width, height vg.Length, render func(draw.Canvas)) ([]byte, error) {
	sc := newSVG(width, height)
	render(draw.NewCanvas(sc, width, height))
	return sc.bytes()
}

// Dims is the number of columns and rows of cells.
func (h *HeatMap) Dims() (c, r int) { return len(h.XValues), len(h.YValues) }

// Z is the value of a cell, NaN where there is none.
func (h *HeatMap) Z(c, r int) float64 {
	if v, ok := h.lookup[[2]int{c, r}]; ok {
		return v
	}
	return math.NaN()
}

// Draw renders the map as PNG and SVG, with a caption below it.
func (h *HeatMap) Draw(rows []table.Row, caption string) (png, svg []byte, err error) {
	pic, err := h.picture(rows, caption)
	if err != nil {
		return nil, nil, err
	}
	return renderBoth(pic.width, pic.height, pic.render)
}

// SVG renders the map as Draw does, without the PNG.
func (h *HeatMap) SVG(rows []table.Row, caption string) ([]byte, error) {
	pic, err := h.picture(rows, caption)
	if err != nil {
		return nil, err
	}
	return renderSVG(pic.width, pic.height, pic.render)
}

// find looks up the values of the cells.
func (h *HeatMap) find(rows []table.Row) error {
	h.lookup, h.lowest, h.highest = map[[2]int]float64{}, math.Inf(1), math.Inf(-1)
	filter := Plot{Only: h.Only}
	for i := range rows {
		x, y := slices.Index(h.XValues, placeOf(&rows[i], h.X)), slices.Index(h.YValues, placeOf(&rows[i], h.Y))
		v, ok := rows[i].Float(h.Value)
		if !filter.Matches(&rows[i]) || x < 0 || y < 0 || !ok || math.IsNaN(v) {
			continue
		}
		h.lookup[[2]int{x, y}] = v
		h.lowest, h.highest = min(h.lowest, v), max(h.highest, v)
	}
	if len(h.lookup) == 0 {
		return fmt.Errorf("plot %s: no rows", h.File)
	}
	if h.gap = 0; h.highest == h.lowest {
		h.gap = max(math.Abs(h.highest)/2, 1)
	}
	return nil
}

// mapPicture is a heat map with its bar of colours and its caption.
type mapPicture struct {
	main, bar     *plot.Plot
	width, height vg.Length
	beside, below vg.Length // width of the bar, height of the caption with its margin
	caption       string
}

// Room of the cells, at least.
const (
	cellsHeight = 7.5 * vg.Centimeter
	cellsWidth  = 8.5 * vg.Centimeter
	cellFont    = 11 // points
)

// picture lays the map out.
func (h *HeatMap) picture(rows []table.Row, caption string) (*mapPicture, error) {
	if err := h.find(rows); err != nil {
		return nil, err
	}
	main, bar, err := h.plots()
	if err != nil {
		return nil, err
	}
	h.fitFigures(main, vg.Point{X: cellsWidth, Y: cellsHeight})
	extra, left := h.places(main)
	p := &mapPicture{main: main, bar: bar}
	sty, widest := bar.Y.Tick.Label, vg.Length(0)
	for _, t := range bar.Y.Tick.Marker.Ticks(h.lowest-h.gap, h.highest+h.gap) {
		widest = max(widest, sty.Width(t.Label))
	}
	p.beside = max(3*vg.Centimeter, 2*vg.Centimeter+widest)
	p.width = max(plotWidth, cellsWidth+left+1.5*vg.Centimeter+vg.Points(2*margin)+p.beside)
	p.caption = fit(sty, caption, p.width-vg.Points(2*margin), captLines)
	p.below = sty.Rectangle(p.caption).Size().Y + vg.Points(margin)
	p.height = max(plotHeight, cellsHeight+2.5*vg.Centimeter+main.Title.TextStyle.Height(main.Title.Text)) + extra + p.below
	return p, nil
}

// render draws the picture.
func (p *mapPicture) render(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
	style := p.bar.Y.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YBottom
	c.FillText(style, c.Min, p.caption)
	p.main.Draw(draw.Crop(c, 0, -p.beside, p.below, 0))
	p.bar.Draw(draw.Crop(c, c.Size().X-p.beside+vg.Points(margin), 0, p.below, 0))
}

// places names the columns and rows, and returns how high labels below are that are turned, and how
// wide those beside.
func (h *HeatMap) places(main *plot.Plot) (extra, left vg.Length) {
	return h.placesIn(main, vg.Point{X: cellsWidth, Y: cellsHeight})
}

// placesIn is places where all cells together have this room.
func (h *HeatMap) placesIn(main *plot.Plot, cells vg.Point) (extra, left vg.Length) {
	ticks := func(labels []string) (ticks []plot.Tick, numbers bool) {
		numbers = true
		for i, l := range labels {
			_, ok := number(l)
			numbers = numbers && ok
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: plain.Line(l)})
		}
		return ticks, numbers
	}
	columns, numbers := ticks(h.XValues)
	main.X.Tick.Width, main.X.Tick.Length, main.X.Width = 0, 0, 0
	main.Y.Tick.Width, main.Y.Tick.Length, main.Y.Width = 0, 0, 0
	every, turn := placed(main.X.Tick.Label, h.XValues, cells.X/vg.Length(len(columns)), numbers)
	extra = setTicks(&main.X, columns, every, turn)
	lines, _ := ticks(h.YValues)
	sty, pitch := main.Y.Tick.Label, cells.Y/vg.Length(len(lines))
	setTicks(&main.Y, lines, max(1, int(math.Ceil(float64(sty.Height("X")/pitch)))), false)
	for _, t := range main.Y.Tick.Marker.Ticks(0, 0) {
		left = max(left, sty.Width(t.Label))
	}
	return extra, left
}

// cells is the map as package plotter reads it.
type cells struct{ *HeatMap }

func (c cells) X(i int) float64 { return float64(i) }
func (c cells) Y(i int) float64 { return float64(i) }

// belowWhite is a map of colours without the lightest ones, which look like the page.
type belowWhite struct{ palette.ColorMap }

const lightest = 0.9 // of the way to white

// At is the colour of a value.
func (c belowWhite) At(v float64) (color.Color, error) {
	return c.ColorMap.At(c.Min() + (v-c.Min())*lightest)
}

// Palette is so many colours at equal distances.
func (c belowWhite) Palette(n int) palette.Palette {
	all := c.ColorMap.Palette(1 + int(math.Round(float64(n-1)/lightest))).Colors()
	return shades(all[:n])
}

// colours are those of the map.
func (h *HeatMap) colours() belowWhite {
	c := belowWhite{moreland.Kindlmann()}
	c.SetMin(h.lowest - h.gap)
	c.SetMax(h.highest + h.gap)
	return c
}

type shades []color.Color

// Colors are the colours in order.
func (s shades) Colors() []color.Color { return s }

func (h *HeatMap) plots() (main, bar *plot.Plot, err error) {
	colours := h.colours()
	heat := plotter.NewHeatMap(cells{h}, colours.Palette(255))
	heat.Min, heat.Max = h.lowest-h.gap, h.highest+h.gap
	heat.NaN = color.NRGBA{230, 230, 230, 255}
	main = newPlot()
	main.X.Label.Text = fit(main.X.Label.TextStyle, strings.Join(h.X, ", "), labelWidth, 1)
	main.Y.Label.Text = fit(main.Y.Label.TextStyle, strings.Join(h.Y, ", "), cellsHeight, 1)
	main.Title.Text, main.Title.Padding = h.Title, vg.Points(margin)
	main.Title.Text = fit(main.Title.TextStyle, main.Title.Text, cellsWidth, titleLines)
	main.Add(heat)
	main.X.Min, main.X.Max, main.Y.Min, main.Y.Max = -0.5, float64(len(h.XValues))-0.5, -0.5, float64(len(h.YValues))-0.5
	bar = newPlot()
	bar.Title.Text = h.ValueLabel
	bar.Title.TextStyle.Font.Size = legendFont
	bar.Title.Text = fit(bar.Title.TextStyle, h.ValueLabel, 3*vg.Centimeter, 3)
	bar.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true})
	bar.HideX()
	bar.Y.Padding, bar.Y.Tick.Marker = 0, roundTicks{}
	return main, bar, nil
}

// fitFigures adds the figures of the cells, if each has room where all cells together have this
// room.
func (h *HeatMap) fitFigures(main *plot.Plot, cells vg.Point) {
	if labels, err := h.labels(h.colours()); err == nil && h.haveRoom(labels, cells) {
		main.Add(labels)
	}
}

// labels are the figures of the cells, light on dark cells and dark on light ones.
func (h *HeatMap) labels(colours palette.ColorMap) (*plotter.Labels, error) {
	var at plotter.XYLabels
	var light []bool
	for y := range h.YValues {
		for x := range h.XValues {
			v, ok := h.lookup[[2]int{x, y}]
			if !ok {
				continue
			}
			at.XYs = append(at.XYs, plotter.XY{X: float64(x), Y: float64(y)})
			at.Labels = append(at.Labels, threeDigits(v))
			light = append(light, dark(colours, v))
		}
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		s := &labels.TextStyle[i]
		s.Font.Size = vg.Points(cellFont)
		s.XAlign, s.YAlign = draw.XCenter, draw.YCenter
		if s.Color = color.Black; light[i] {
			s.Color = color.White
		}
	}
	return labels, nil
}

// haveRoom says whether each figure fits into its cell.
func (h *HeatMap) haveRoom(labels *plotter.Labels, cells vg.Point) bool {
	wide, high := cells.X/vg.Length(len(h.XValues)), cells.Y/vg.Length(len(h.YValues))
	for i, l := range labels.Labels {
		if s := labels.TextStyle[i].Rectangle(l).Size(); s.X+vg.Points(2) > wide || s.Y+vg.Points(2) > high {
			return false
		}
	}
	return true
}

// dark says whether white is easier to read than black on the colour of a value.
func dark(colours palette.ColorMap, v float64) bool {
	c, err := colours.At(v)
	if err != nil {
		return false
	}
	return color.GrayModel.Convert(c).(color.Gray).Y < 128
}

func threeDigits(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
