package experiment

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// HeatMap is a value over two keys that were swept, in colours and, where there is room, in figures.
type HeatMap struct {
	File, Title          string
	X, Y                 string   // keys
	XValues, YValues     []string // in order
	Value, ValueLabel    string
	Only                 map[string]any
	lookup               map[[2]int]float64
	figures              bool
	lowest, highest, gap float64
}

// Bounds of the figures in a heat map: more would not be read.
const mostFigures = 144

// renderBoth renders a picture as PNG and SVG.
func renderBoth(width, height vg.Length, render func(draw.Canvas)) (png, svg []byte, err error) {
	img := vgimg.New(width, height)
	render(draw.New(img))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&b); err != nil {
		return nil, nil, err
	}
	sc := &svgCanvas{Canvas: vgsvg.New(width, height)}
	render(draw.NewCanvas(sc, width, height))
	svg, err = sc.bytes()
	return b.Bytes(), svg, err
}

// shade draws the interval around a line.
func (c *chart) shade(pl *plot.Plot, name string, line color.Color) error {
	points, half := c.lines[name], c.bands[name]
	if !slices.ContainsFunc(half, func(h float64) bool { return h > 0 }) {
		return nil
	}
	var edge plotter.XYs
	for i, p := range points {
		edge = append(edge, plotter.XY{X: p.X, Y: p.Y + orZero(half[i])})
	}
	for i, p := range slices.Backward(points) {
		edge = append(edge, plotter.XY{X: p.X, Y: max(0, p.Y-orZero(half[i]))})
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

func orZero(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
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
func (h *HeatMap) Draw(rows []Row, caption string) (png, svg []byte, err error) {
	h.lookup, h.lowest, h.highest = map[[2]int]float64{}, math.Inf(1), math.Inf(-1)
	filter := Plot{Only: h.Only}
	for i := range rows {
		x, y := slices.Index(h.XValues, text(rows[i].Get(h.X))), slices.Index(h.YValues, text(rows[i].Get(h.Y)))
		v, ok := rows[i].Float(h.Value)
		if !filter.matches(&rows[i]) || x < 0 || y < 0 || !ok || math.IsNaN(v) {
			continue
		}
		h.lookup[[2]int{x, y}] = v
		h.lowest, h.highest = min(h.lowest, v), max(h.highest, v)
	}
	if len(h.lookup) == 0 {
		return nil, nil, fmt.Errorf("plot %s: no rows", h.File)
	}
	h.figures = len(h.XValues)*len(h.YValues) <= mostFigures
	if h.gap = 0; h.highest == h.lowest {
		h.gap = max(math.Abs(h.highest)/2, 1)
	}
	main, bar, err := h.plots()
	if err != nil {
		return nil, nil, err
	}
	const width, height, barWidth, below = plotWidth + 3*vg.Centimeter, plotHeight + 1*vg.Centimeter, 3 * vg.Centimeter, 1 * vg.Centimeter
	return renderBoth(width, height, func(c draw.Canvas) {
		c.SetColor(color.White)
		c.Fill(c.Rectangle.Path())
		c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
		style := main.X.Tick.Label
		style.XAlign, style.YAlign = draw.XLeft, draw.YBottom
		c.FillText(style, c.Min, fit(style, caption, c.Size().X, captLines))
		main.Draw(draw.Crop(c, 0, -barWidth, below, 0))
		bar.Draw(draw.Crop(c, c.Size().X-barWidth+vg.Points(margin), 0, below, 0))
	})
}

// cells is the map as package plotter reads it.
type cells struct{ *HeatMap }

func (c cells) X(i int) float64 { return float64(i) }
func (c cells) Y(i int) float64 { return float64(i) }

func (h *HeatMap) plots() (main, bar *plot.Plot, err error) {
	colours := moreland.Kindlmann()
	colours.SetMin(h.lowest - h.gap)
	colours.SetMax(h.highest + h.gap)
	const shades = 255
	heat := plotter.NewHeatMap(cells{h}, colours.Palette(shades))
	heat.Min, heat.Max = h.lowest-h.gap, h.highest+h.gap
	heat.NaN = color.NRGBA{230, 230, 230, 255}
	main = plot.New()
	main.Title.Text, main.X.Label.Text, main.Y.Label.Text = h.Title, h.X, h.Y
	main.Title.Padding = vg.Points(margin)
	main.Title.Text = fit(main.Title.TextStyle, main.Title.Text, plotWidth-vg.Points(4*margin), titleLines)
	main.Add(heat)
	main.NominalX(h.XValues...)
	main.NominalY(h.YValues...)
	main.X.Min, main.X.Max, main.Y.Min, main.Y.Max = -0.5, float64(len(h.XValues))-0.5, -0.5, float64(len(h.YValues))-0.5
	if h.figures {
		labels, err := h.labels()
		if err != nil {
			return nil, nil, err
		}
		main.Add(labels)
	}
	bar = plot.New()
	bar.Title.Text = h.ValueLabel
	bar.Title.TextStyle.Font.Size = legendFont
	bar.Title.Text = fit(bar.Title.TextStyle, h.ValueLabel, 3*vg.Centimeter, 3)
	bar.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true})
	bar.HideX()
	bar.Y.Padding = 0
	return main, bar, nil
}

// labels are the figures of the cells, light on dark cells and dark on light ones.
func (h *HeatMap) labels() (*plotter.Labels, error) {
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
			light = append(light, v < (h.lowest+h.highest)/2)
		}
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		s := &labels.TextStyle[i]
		s.XAlign, s.YAlign = draw.XCenter, draw.YCenter
		if s.Color = color.Black; light[i] {
			s.Color = color.White
		}
	}
	return labels, nil
}

func threeDigits(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
