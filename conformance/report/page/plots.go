package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// leastPoints is how many sizes or counts a step must have been measured at to have a shape.
const leastPoints = 3

// plot is how a measured value depends on the number in the name of its step: "64 bytes, Gb/s".
type plot struct {
	Case, Title, Unit string
	Legend            []legendView
	SVG               template.HTML
}

// legendView names a line; its class gives both their colour.
type legendView struct{ Class, Name string }

// colours is how many the page's style has for lines.
const colours = 6

// line is one line of a plot.
type line struct {
	name   string
	points [][2]float64
}

var (
	firstNumber = regexp.MustCompile(`\d+(?:\.\d+)?`)
	// measured ends the step of a time or a rate.
	measured = regexp.MustCompile(`, ([A-Za-z]+/s|ns|us|ms)(?: (.+))?$`)
)

// plots are those of all cases that measured something at several sizes or counts.
func (p *Page) plots() []plot {
	type key struct{ id, unit string }
	var order []key
	lines := map[key][]line{}
	texts := map[string]string{}
	for i, t := range p.Targets {
		for j := range t.Run.Cases {
			c := &t.Run.Cases[j]
			for unit, found := range shapes(c) {
				k := key{c.ID, unit}
				if lines[k] == nil {
					order = append(order, k)
				}
				for _, l := range found {
					if len(p.Targets) > 1 {
						l.name = p.name(i) + ": " + l.name
					}
					lines[k] = append(lines[k], l)
				}
				texts[c.ID] = c.Text
			}
		}
	}
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.unit, b.unit)) })
	var out []plot
	for _, k := range order {
		pl := plot{Case: plain.Line(k.id), Title: plain.Line(texts[k.id]), Unit: plain.Line(k.unit), SVG: draw(lines[k])}
		for i, l := range lines[k] {
			pl.Legend = append(pl.Legend, legendView{fmt.Sprintf("s%d", i%colours), plain.Line(l.name)})
		}
		out = append(out, pl)
	}
	return out
}

// shapes are the lines of a case, by unit.
func shapes(c *report.Case) map[string][]line {
	type key struct{ unit, name string }
	var order []key
	points := map[key][][2]float64{}
	for i := range c.Observations {
		o := &c.Observations[i]
		m := measured.FindStringSubmatch(o.Step)
		x := firstNumber.FindStringIndex(o.Step)
		if m == nil || x == nil || o.Kind != "value" {
			continue
		}
		name := strings.TrimSpace(o.Step[:x[0]] + "n" + strings.TrimSuffix(o.Step[x[1]:], m[0]))
		at, _ := numberOf(o.Step[x[0]:x[1]])
		values, isList := o.Got.([]any)
		if !isList {
			values = []any{o.Got}
		}
		for n, v := range values {
			y, ok := number(v)
			k := key{m[1], name}
			if isList {
				k.name += member(m[2], n, len(values))
			}
			if !ok {
				continue
			}
			if points[k] == nil {
				order = append(order, k)
			}
			points[k] = append(points[k], [2]float64{at, y})
		}
	}
	out, shaped := map[string][]line{}, map[string]bool{}
	for _, k := range order {
		shaped[k.unit] = shaped[k.unit] || len(points[k]) >= leastPoints
	}
	for _, k := range order {
		if shaped[k.unit] && len(points[k]) > 1 { // two points are a shape beside another line
			out[k.unit] = append(out[k.unit], line{k.name, points[k]})
		}
	}
	return out
}

func numberOf(s string) (f float64, ok bool) {
	_, err := fmt.Sscan(s, &f)
	return f, err == nil
}

// member names one of several values of a step, by the words behind its unit where they name two.
func member(words string, n, of int) string {
	if a, b, two := strings.Cut(words, " and "); two && of == 2 {
		return ", " + []string{a, b}[n]
	}
	return fmt.Sprintf(", value %d", n+1)
}

// Size of a plot, and of its margins, in units of the drawing.
const (
	plotWide, plotHigh = 360, 200
	marginX, marginY   = 44, 22
)

// logFrom is the ratio of the largest to the smallest place from which their axis is logarithmic.
const logFrom = 20

// axis maps values to places of the drawing.
type axis struct {
	low, high float64
	log       bool
	at, size  float64
}

func (a *axis) place(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	if high == low {
		return a.at
	}
	return a.at + (v-low)/(high-low)*a.size
}

// draw draws lines whose colours the page's style has by their number. All that goes into the
// drawing are numbers.
func draw(lines []line) template.HTML {
	x := axis{low: math.Inf(1), high: math.Inf(-1), at: marginX, size: plotWide - marginX - 18}
	top := 0.0
	for _, l := range lines {
		for _, p := range l.points {
			x.low, x.high, top = min(x.low, p[0]), max(x.high, p[0]), max(top, p[1])
		}
	}
	x.log = x.low > 0 && x.high/x.low >= logFrom
	y := axis{low: 0, high: max(top, 1e-9), at: plotHigh - marginY, size: -(plotHigh - marginY - 12)}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img"><path class="axis" d="M%d %dV%dH%d"/>`, plotWide, plotHigh, marginX, 8, plotHigh-marginY, plotWide-6)
	for _, v := range []float64{0, y.high / 2, y.high} {
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, marginX-4, y.place(v)+3, short(v))
	}
	for _, v := range ticks(lines, &x) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x.place(v), plotHigh-8, short(v))
	}
	for i, l := range lines {
		points := slices.Clone(l.points)
		slices.SortStableFunc(points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
		var path []string
		for _, p := range points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.place(p[0]), y.place(p[1])))
			fmt.Fprintf(&b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="2.5"><title>%s: %s</title></circle>`, i%colours, x.place(p[0]), y.place(p[1]), short(p[0]), short(p[1]))
		}
		fmt.Fprintf(&b, `<polyline class="s%d" points="%s"/>`, i%colours, strings.Join(path, " "))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// ticks are the measured places that have room for their numbers.
func ticks(lines []line, x *axis) []float64 {
	var all, out []float64
	for _, l := range lines {
		for _, p := range l.points {
			all = append(all, p[0])
		}
	}
	slices.Sort(all)
	last := math.Inf(-1)
	for _, v := range slices.Compact(all) {
		if at := x.place(v); at-last >= 38 {
			out, last = append(out, v), at
		}
	}
	return out
}

// short is a number with a prefix, for the sides of a plot.
func short(v float64) string {
	for _, s := range []struct {
		from float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= s.from {
			return fmt.Sprintf("%.3g%s", v/map[string]float64{"G": 1e9, "M": 1e6, "k": 1e3}[s.name], s.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}
