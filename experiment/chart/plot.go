// Package chart draws rows of results: lines, heat maps, and what the CPUs of a host do one after
// the other.
package chart

import (
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

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Plot is a line chart over rows: one line for each value of Series.
type Plot struct {
	File           string // without extension
	Title          string
	X, Y           string // keys
	XLabel, YLabel string
	Series         string // key
	Only           map[string]any
	LogX, LogY     bool
	Least          bool // the least value is the best one
	// By are further keys whose values distinguish lines.
	By []string
	// Words are the values of X, in order, when they are not numbers.
	Words []string
	// YWords are the values of Y, from below, when they are not numbers.
	YWords []string
	// Band is the key of half the width of an interval around Y, which is shaded; "": none.
	Band string
	// Low and High are keys of the ends of a band around Y, in place of Band; rows without them
	// have no point.
	Low, High string
	// Per is a key by whose number Y is divided: of a sum, the mean of so many. Rows of one have no
	// point.
	Per string
	// Scattered says that X comes in no order: there are points without lines between them.
	Scattered bool
	// With are keys that change together with X. Words are then what Together makes of their
	// values.
	With []string
	// Between says that X takes any value of an interval: ticks are at round ones.
	Between bool
	// Across is what the points of one line differ in besides X, for its name.
	Across string
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

// With the strokes they make more different lines than a legend names.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
	draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}}

// unnamed is how lines look that the legend does not name.
var unnamed = color.RGBA{200, 200, 200, 255}

// style gives a line its look, or points without a line theirs: no two of those that have names
// look the same.
func style(i int, drawnAsLine bool, line *plotter.Line, points *plotter.Scatter) {
	s := strokes[i%len(strokes)]
	line.Color, line.Dashes, line.Width = s.c, s.d, vg.Points(1.6)
	points.Color, points.Shape = s.c, glyphs[i/len(strokes)%len(glyphs)]
	if !drawnAsLine { // dashes tell nothing apart
		points.Shape = glyphs[(i+i/24)%len(glyphs)]
	}
	if i >= mostNames {
		line.Color, line.Dashes, points.Color, points.Shape = unnamed, nil, unnamed, draw.CircleGlyph{}
	}
}

// Curves are the lines of a plot by name, in the order in which they came.
type Curves struct {
	Names  []string
	Points map[string]plotter.XYs
	bands  map[string][][2]float64 // the ends at each point of a line
	Ticks  []plot.Tick
	log    bool
	words  bool // values are not numbers
	units  bool // labels of values are not as the axis counts: some have units
	round  bool // ticks are at round values, not at those that occur
}

// Collect gathers the points of the rows that belong to the plot.
func (p *Plot) Collect(rows []table.Row) *Curves {
	c := &Curves{Points: map[string]plotter.XYs{}, bands: map[string][][2]float64{}, log: p.LogX, words: p.Words != nil, round: p.Between}
	seen := map[float64]bool{}
	for i := range rows {
		x, okx := p.at(&rows[i])
		y, oky := p.height(&rows[i])
		if !p.Matches(&rows[i]) || !okx || !oky || math.IsNaN(y) || math.IsInf(y, 0) {
			continue
		}
		name := p.line(&rows[i])
		if _, ok := c.Points[name]; !ok {
			c.Names = append(c.Names, name)
		}
		c.Points[name] = append(c.Points[name], plotter.XY{X: x, Y: y})
		c.bands[name] = append(c.bands[name], p.band(&rows[i], y))
		if !seen[x] {
			seen[x] = true
			c.Ticks = append(c.Ticks, plot.Tick{Value: x, Label: c.label(x, p.place(&rows[i]))})
		}
	}
	sort.Slice(c.Ticks, func(i, j int) bool { return c.Ticks[i].Value < c.Ticks[j].Value })
	c.log = c.log && len(c.Ticks) > 0 && c.Ticks[0].Value > 0
	return c
}

// label names a place on the axis.
func (c *Curves) label(x float64, place any) string {
	text, ok := place.(string)
	if !ok {
		return exact(x)
	}
	_, err := strconv.ParseFloat(text, 64)
	c.units = c.units || err != nil
	return plain.Line(text)
}

// Together is the name of a place on an axis of keys that change together: their values as a sweep
// gives them.
func Together(values []string) string { return strings.Join(values, ":") }

// placeOf is the place of a row on an axis of so many keys.
func placeOf(r *table.Row, keys []string) string {
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = table.Text(r.Get(k))
	}
	return Together(values)
}

// place is the value of the axis in a row.
func (p *Plot) place(r *table.Row) any {
	if len(p.With) > 0 {
		return placeOf(r, append([]string{p.X}, p.With...))
	}
	return r.Get(p.X)
}

// at is where a row lies on the axis.
func (p *Plot) at(r *table.Row) (float64, bool) {
	if text, ok := p.place(r).(string); ok {
		i := slices.Index(p.Words, text)
		if v, ok := number(text); ok && i < 0 && len(p.With) == 0 {
			return v, true
		}
		return float64(i), i >= 0
	}
	return r.Float(p.X)
}

// band are the ends of what is shaded around the height of a row.
func (p *Plot) band(r *table.Row, y float64) [2]float64 {
	if p.Low != "" {
		low, _ := r.Float(p.Low)
		high, _ := r.Float(p.High)
		return [2]float64{low, high}
	}
	half, ok := r.Float(p.Band)
	if !ok || math.IsNaN(half) {
		half = 0
	}
	return [2]float64{max(min(y, 0), y-half), y + half}
}

// height is where a row lies above the axis.
func (p *Plot) height(r *table.Row) (float64, bool) {
	if len(p.YWords) == 0 {
		y, ok := r.Float(p.Y)
		for _, k := range []string{p.Low, p.High} {
			v, there := r.Float(k)
			ok = ok && (k == "" || there && !math.IsNaN(v))
		}
		if p.Per != "" {
			n, _ := r.Float(p.Per)
			y, ok = y/n, ok && n > 1
		}
		return y, ok
	}
	word, _ := r.Get(p.Y).(string)
	i := slices.Index(p.YWords, word)
	return float64(i), i >= 0
}

// line is the name of the line that a row belongs to.
func (p *Plot) line(r *table.Row) string {
	name := table.Text(r.Get(p.Series))
	for _, k := range p.By {
		name += ", " + k + "=" + table.Text(r.Get(k))
	}
	if p.Across != "" {
		name += ", " + p.Across
	}
	return plain.Line(strings.TrimPrefix(name, ", "))
}

// number reads a value of a sweep: a number, a size, a time, a rate or a frequency.
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
	if v, err := input.ParseRate(s); err == nil {
		return float64(v), true
	}
	v, err := input.ParseFrequency(s)
	return float64(v), err == nil
}

// A picture is plotWidth wide, so that its texts can be read where a column of a paper leaves it
// 8.5 cm: 12 points are 7.3 there. The legend is below the axes, in as many columns as there is
// room for.
const (
	plotWidth   = 14 * vg.Centimeter
	plotHeight  = 9.5 * vg.Centimeter
	margin      = 10 // points
	thumbnail   = 32 // points
	legendFont  = 12 // points
	captionFont = 10 // points
	legendWidth = 12 * vg.Centimeter
	legendLines = 3  // of one name
	mostNames   = 40 // in a legend
	titleLines  = 2
	captLines   = 3
	axisWidth   = 10 * vg.Centimeter  // at least, without the numbers beside it and half a label at each end
	labelWidth  = 8 * vg.Centimeter   // of the name of the axis below: a wider one makes the lines narrower
	tickWidth   = 2.6 * vg.Centimeter // of a tick
)

// picture makes the picture of the rows that belong to the plot.
func (p *Plot) picture(rows []table.Row, caption string) (*picture, error) {
	ch := p.Collect(rows)
	if len(ch.Names) == 0 {
		return nil, fmt.Errorf("plot %s: no rows", p.File)
	}
	pic := newPicture()
	pl := pic.plot
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.Title, p.XLabel, p.YLabel
	if first, _, _ := strings.Cut(ch.Names[0], ", "); shortNames(ch.Names)[0] != ch.Names[0] && first != "all" { // as totals are called
		pl.Title.Text = strings.TrimSpace(fmt.Sprintf("%s (%s)", p.Title, first))
	}
	if len(p.YWords) > 0 {
		return p.tiles(pic, ch, caption), nil
	}
	named := min(len(ch.Names), mostNames)
	grid := plotter.NewGrid()
	pl.Add(grid)
	if p.bars() {
		grid.Vertical.Width = 0
		if len(ch.Names) <= mostBarNames && len(ch.Names)*len(ch.Ticks) <= mostBars {
			p.addBars(pic, ch)
			return pic.layOut(caption), nil
		}
		p.Scattered = true // a line would say that there is something between two words
	}
	for k := range ch.Names {
		i := (named + k) % len(ch.Names) // those without a name first, so that they lie over none that has one
		if err := p.addLine(pic, ch, i); err != nil {
			return nil, fmt.Errorf("plot %s: %w", p.File, err)
		}
	}
	if more := len(ch.Names) - named; more > 0 {
		pic.name(fmt.Sprintf("%d more, grey", more))
	}
	pic.extra = ch.axes(pl)
	if p.LogY {
		ch.decades(pl)
	}
	return pic.layOut(caption), nil
}

// addLine draws the i-th line, or its points, and names it in the legend if there is room.
func (p *Plot) addLine(pic *picture, ch *Curves, i int) error {
	name := ch.Names[i]
	line, points, err := plotter.NewLinePoints(ch.Points[name])
	if err != nil {
		return err
	}
	style(i, !p.Scattered, line, points)
	if p.Band != "" || p.Low != "" {
		if err := ch.shade(pic.plot, name, line.Color, p.Scattered); err != nil {
			return err
		}
	}
	thumbs := []plot.Thumbnailer{line, points}
	if p.Scattered {
		pic.plot.Add(points)
		thumbs = thumbs[1:]
	} else {
		pic.plot.Add(line, points)
	}
	if i < mostNames {
		pic.name(shortNames(ch.Names)[i], thumbs...)
	}
	return nil
}

// picture is a plot with its legend and its caption.
type picture struct {
	plot          *plot.Plot
	legend        plot.Legend // of one column, without its names
	entries       []entry
	tallest       vg.Length // name of the legend
	widest        vg.Length // with its thumbnail and margins
	width, height vg.Length
	caption       string
	below         vg.Length // height of the caption with its margin
	extra         vg.Length // height of labels below that are turned
	low           bool      // its height is what it says, and may be less than that of others
}

// entry is a name of the legend.
type entry struct {
	name   string
	thumbs []plot.Thumbnailer
}

func newPicture() *picture {
	pic := &picture{plot: newPlot(), legend: plot.NewLegend()}
	pic.legend.Top, pic.legend.Left = true, true
	pic.legend.Padding, pic.legend.ThumbnailWidth, pic.legend.TextStyle.Font.Size = vg.Points(3), vg.Points(thumbnail), vg.Points(legendFont)
	return pic
}

// newPlot is an empty plot whose texts can be read in a column of a paper.
func newPlot() *plot.Plot {
	pl := plot.New()
	for _, a := range []*plot.Axis{&pl.X, &pl.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size, a.Padding = vg.Points(13), vg.Points(12), vg.Points(4)
	}
	pl.Title.TextStyle.Font.Size, pl.Title.Padding = vg.Points(13), vg.Points(margin)
	return pl
}

// shortNames are the names of lines without the name of the load or series that all of them begin
// with.
func shortNames(names []string) []string {
	first, _, more := strings.Cut(names[0], ", ")
	if !more || len(names) < 2 || slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, first+", ") }) {
		return names
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, first+", ")
	}
	return short
}

// name adds a name to the legend.
func (p *picture) name(name string, thumbs ...plot.Thumbnailer) {
	name = fit(p.legend.TextStyle, name, legendWidth, legendLines)
	p.entries = append(p.entries, entry{name, thumbs})
	p.tallest = max(p.tallest, p.legend.TextStyle.Rectangle(name).Max.Y)
	p.widest = max(p.widest, p.legend.TextStyle.Width(name)+vg.Points(thumbnail+1.2*margin))
}

// captionStyle is that of labels which are not turned.
func (p *picture) captionStyle() draw.TextStyle {
	style := p.plot.Y.Tick.Label
	style.Rotation, style.XAlign, style.YAlign, style.Font.Size = 0, draw.XLeft, draw.YBottom, vg.Points(captionFont)
	return style
}

// room is the width of a picture without its margins.
func (p *picture) room() vg.Length { return p.width - vg.Points(2*margin) }

// columns is how many columns the legend has, and lines how many names each has at most. There is
// no legend for a single line without a name.
func (p *picture) columns() (columns, lines int) {
	if len(p.entries) == 0 || len(p.entries) == 1 && p.entries[0].name == "" {
		return 0, 0
	}
	columns = max(1, min(int(p.room()/p.widest), len(p.entries)))
	lines = (len(p.entries) + columns - 1) / columns
	return (len(p.entries) + lines - 1) / lines, lines
}

// list is the height of the legend.
func (p *picture) list() vg.Length {
	_, lines := p.columns()
	return vg.Length(lines) * (p.tallest + p.legend.Padding)
}

// layOut gives everything its room.
func (p *picture) layOut(caption string) *picture {
	pl := p.plot
	p.width = max(plotWidth, p.width)
	pl.Title.Text = fit(pl.Title.TextStyle, pl.Title.Text, p.room()-vg.Points(4*margin), titleLines)
	pl.X.Label.Text = fit(pl.X.Label.TextStyle, pl.X.Label.Text, labelWidth, 1)
	p.caption = fit(p.captionStyle(), caption, p.room(), captLines)
	p.below = p.captionStyle().Rectangle(p.caption).Size().Y + vg.Points(margin)
	if !p.low {
		p.height = max(plotHeight, p.height)
	}
	p.height += p.extra + p.below
	if list := p.list(); list > 0 {
		p.height += list + vg.Points(margin)
	}
	return p
}

// render draws the picture.
func (p *picture) render(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
	c.FillText(p.captionStyle(), c.Min, p.caption)
	columns, lines := p.columns()
	above := p.below
	if columns > 0 {
		above += p.list() + vg.Points(margin)
	}
	p.plot.Draw(draw.Crop(c, 0, 0, above, 0))
	for k := range columns {
		legend := p.legend
		for _, e := range p.entries[k*lines : min((k+1)*lines, len(p.entries))] {
			legend.Add(e.name, e.thumbs...)
		}
		column := c
		column.Min.X += vg.Length(k) * p.room() / vg.Length(columns)
		column.Max.Y = c.Min.Y + p.below + p.list()
		legend.Draw(column)
	}
}

// Draw renders the plot as PNG and SVG, with a caption below it.
func (p *Plot) Draw(rows []table.Row, caption string) (png, svg []byte, err error) {
	pic, err := p.picture(rows, caption)
	if err != nil {
		return nil, nil, err
	}
	return renderBoth(pic.width, pic.height, pic.render)
}

// SVG renders the plot as Draw does, without the PNG, which takes longer.
func (p *Plot) SVG(rows []table.Row, caption string) ([]byte, error) {
	pic, err := p.picture(rows, caption)
	if err != nil {
		return nil, err
	}
	return renderSVG(pic.width, pic.height, pic.render)
}

// axes sets ranges and ticks, rates from 0, and returns by how much labels make the axis below
// higher.
func (c *Curves) axes(pl *plot.Plot) (extra vg.Length) {
	first, last := c.Ticks[0].Value, c.Ticks[len(c.Ticks)-1].Value
	if c.log {
		pl.X.Scale = plot.LogScale{}
	}
	extra = c.below(pl)
	pl.Y.Tick.Marker = roundTicks{}
	if first == last && c.log {
		pl.X.Min, pl.X.Max = first/2, first*2
	} else if first == last {
		pl.X.Min, pl.X.Max = first-1, first+1
	}
	if pl.Y.Min = 0; pl.Y.Max <= 0 {
		pl.Y.Max = 1
	}
	pl.Y.Max *= 1.05
	return extra
}

// decades makes the axis beside logarithmic, in whole decades around what is drawn, unless
// something there is not above zero.
func (c *Curves) decades(pl *plot.Plot) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, line := range c.Points {
		for _, at := range line {
			low, high = min(low, at.Y), max(high, at.Y)
		}
	}
	if low <= 0 {
		return
	}
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{}, decadeTicks{}
	pl.Y.Min, pl.Y.Max = math.Pow(10, first), math.Pow(10, max(last, first+1))
}

// decadeTicks are those of a logarithmic axis, with numbers written out.
type decadeTicks struct{ plot.LogTicks }

// Ticks are the ticks between two values.
func (d decadeTicks) Ticks(low, high float64) []plot.Tick {
	ticks := d.LogTicks.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = exact(ticks[i].Value)
		}
	}
	return ticks
}

// Matches reports whether a row belongs to the plot.
func (p *Plot) Matches(r *table.Row) bool {
	for k, v := range p.Only {
		if r.Get(k) != v {
			return false
		}
	}
	return true
}

// MostLoads is how many loads have lines or maps of their own: of more, pictures show the total.
const MostLoads = 6

// LoadPlots are the pictures of a sweep over loads: rates and latencies against a key, or keys that
// change together, whose values are given, each of them as Together has it; there are none for an
// interval. The other keys distinguish lines.
func LoadPlots(name string, keys, values, others []string) []Plot {
	p := Plot{X: keys[0], With: keys[1:], XLabel: strings.Join(keys, ", "), Series: "name", By: others, Between: values == nil, Only: map[string]any{"row": "traffic"}}
	if len(p.With) > 0 {
		p.Words = values
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, text := range values {
		v, ok := number(text)
		if !ok {
			p.Words = values
		}
		low, high = min(low, v), max(high, v)
	}
	p.LogX = p.Words == nil && low > 0 && high/low >= 8
	rate, latency := p, p
	rate.File, rate.Title, rate.Y, rate.YLabel = name+"-rate", name+": rate of each load", "rate_mps", "million messages/s"
	latency.File, latency.Title, latency.Y, latency.YLabel = name+"-latency", name+": median latency of each load", "latency_ns_p50", "ns"
	return []Plot{rate, latency}
}
