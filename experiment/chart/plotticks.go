package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// roundTicks has at most six labels, at multiples of 1, 2 or 5 and a power of ten, with as many
// digits as tell them apart.
type roundTicks struct{}

// Ticks returns the ticks of an axis.
func (roundTicks) Ticks(low, high float64) []plot.Tick {
	raw := (high - low) / 5
	exp := math.Floor(math.Log10(raw))
	if raw <= 0 || math.IsNaN(exp) || math.IsInf(exp, 0) || low+raw == low || high-raw == high {
		return []plot.Tick{{Value: low, Label: tickLabel(low, 17)}, {Value: high, Label: tickLabel(high, 17)}}
	}
	factor, minor := 10.0, 5.0 // minor: parts of a step
	for _, f := range []struct{ factor, minor float64 }{{5, 5}, {2, 4}, {1, 5}} {
		if raw <= f.factor*math.Pow(10, exp) {
			factor, minor = f.factor, f.minor
		}
	}
	at := func(i float64) float64 { return times10(i*factor, int(exp)) }
	digits := -int(exp)
	if factor == 10 {
		digits--
	}
	var ticks []plot.Tick
	step := at(1)
	for i := math.Floor(low / step); at(i) <= high; i++ {
		if v := at(i); v >= low {
			ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(v, digits)})
		}
		for k := 1.0; k < minor; k++ {
			if v := at(i + k/minor); v > low && v < high {
				ticks = append(ticks, plot.Tick{Value: v})
			}
		}
	}
	return ticks
}

// times10 is v times a power of ten, rounded once where that is possible.
func times10(v float64, exp int) float64 {
	if exp < 0 {
		return v / math.Pow(10, float64(-exp))
	}
	return v * math.Pow(10, float64(exp))
}

// tickLabel writes a value with so many digits after the point, or with an exponent if that is much
// shorter.
func tickLabel(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'f', max(0, digits), 64)
	precision := 12 // more digits are those of rounding
	if digits > precision {
		precision = -1
	}
	if e := strconv.FormatFloat(v, 'g', precision, 64); len(s) > 8 && len(e) < len(s) {
		return e
	}
	return s
}

// logTicks are the ticks of a logarithmic axis: 1, 2 and 5 times each power of ten, or only those
// if they are many.
func logTicks(low, high float64) (ticks []plot.Tick) {
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	few := math.Log10(high/low) <= 3
	for exp := first; exp <= last; exp++ {
		for m := 1.0; m < 10; m++ {
			v := times10(m, int(exp))
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || few && (m == 2 || m == 5) {
				t.Label = tickLabel(v, -int(exp))
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// exact writes a number on an axis: a whole one with all its digits.
func exact(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return table.Short(x)
}

const (
	mostTicks    = 32 // of values of their own; more get round ones
	fewWhole     = 8  // numbers: no round one needs to stand for them
	turnedWidth  = 4 * vg.Centimeter
	besideLabels = margin / 2 // points
)

// below sets the ticks of the axis below: every value that occurs, unless they are many.
func (c *Curves) below(pl *plot.Plot) (extra vg.Length) {
	first, last := c.Ticks[0].Value, c.Ticks[len(c.Ticks)-1].Value
	sty := pl.X.Tick.Label
	switch {
	case c.words:
		var labels []string
		for _, t := range c.Ticks {
			labels = append(labels, t.Label)
		}
		every, turn := placed(sty, labels, axisWidth/vg.Length(last-first+1), false)
		extra = setTicks(&pl.X, c.Ticks, every, turn)
	case c.round && (c.units || last-first > fewWhole): // an interval without units is of whole numbers
		pl.X.Tick.Marker = plot.ConstantTicks(c.apart(sty, c.roundOnes(first, last), first, last))
	case len(c.Ticks) <= mostTicks:
		pl.X.Tick.Marker = plot.ConstantTicks(c.apart(sty, c.Ticks, first, last))
	case c.units:
		var kept []plot.Tick
		for _, t := range c.apart(sty, c.Ticks, first, last) {
			if t.Label != "" {
				kept = append(kept, t)
			}
		}
		pl.X.Tick.Marker = plot.ConstantTicks(kept)
	case c.log:
		pl.X.Tick.Marker = plot.ConstantTicks(c.apart(sty, logTicks(first, last), first, last))
	default:
		pl.X.Tick.Marker = plot.ConstantTicks(c.apart(sty, roundTicks{}.Ticks(first, last), first, last))
	}
	return extra
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// tickText is a label that is not wider than width: of a number that is wider digits are left out,
// and of words the middle.
func tickText(sty draw.TextStyle, label string, width vg.Length) string {
	digits := strings.TrimRight(label, letters)
	if v, err := strconv.ParseFloat(digits, 64); err == nil && sty.Width(label) > width {
		label = strconv.FormatFloat(v, 'g', 5, 64) + label[len(digits):]
	}
	return fit(sty, label, width, 1)
}

// roundOnes are ticks at round multiples of the unit of the highest value.
func (c *Curves) roundOnes(first, last float64) []plot.Tick {
	unit, name := 1.0, ""
	highest := c.Ticks[len(c.Ticks)-1]
	if _, err := input.ParseSize(highest.Label); err == nil && c.units { // has a larger unit than B only where that is exact
		highest.Value = math.Exp2(math.Floor(math.Log2(max(1, highest.Value))))
		highest.Label = input.FormatSize(uint64(highest.Value))
	}
	digits := strings.TrimRight(highest.Label, letters)
	if v, err := strconv.ParseFloat(digits, 64); err == nil && v > 0 {
		unit, name = math.Round(highest.Value/v), highest.Label[len(digits):]
	}
	ticks := roundTicks{}.Ticks(first/unit, last/unit)
	for i := range ticks {
		t := &ticks[i]
		if t.Value *= unit; t.Label != "" && t.Value != 0 {
			t.Label += name
		}
	}
	return ticks
}

// placed says how labels at equal distances find room: every which of them, and whether they are
// turned upright. Of numbers some are left out rather than turned.
func placed(sty draw.TextStyle, labels []string, pitch vg.Length, numbers bool) (every int, turn bool) {
	widest := vg.Length(0)
	for _, l := range labels {
		widest = max(widest, sty.Width(tickText(sty, l, tickWidth)))
	}
	need := widest + vg.Points(besideLabels)
	if need > pitch && !numbers {
		turn, need = true, sty.Height("X")
	}
	return max(1, int(math.Ceil(float64(need/pitch)))), turn
}

// setTicks labels every so manieth tick, and returns how much higher the axis is than with labels
// that are not turned.
func setTicks(a *plot.Axis, ticks []plot.Tick, every int, turn bool) (extra vg.Length) {
	sty, width := a.Tick.Label, tickWidth
	if turn {
		width = turnedWidth
		a.Tick.Label.Rotation, a.Tick.Label.XAlign, a.Tick.Label.YAlign = math.Pi/2, draw.XRight-0.06, draw.YCenter // below the ticks
	}
	var kept []plot.Tick
	for i, t := range ticks {
		if t.Label = tickText(sty, t.Label, width); i%every != 0 {
			t.Label = ""
		} else if turn {
			extra = max(extra, sty.Width(t.Label))
		}
		kept = append(kept, t)
	}
	a.Tick.Marker = plot.ConstantTicks(kept)
	if turn {
		a.Label.Padding += vg.Points(margin)
		extra += vg.Points(margin)
	}
	return extra
}

// apart shortens long labels of ticks, and leaves out those that would touch another one. The first
// and the last stay.
func (c *Curves) apart(sty draw.TextStyle, ticks []plot.Tick, first, last float64) []plot.Tick {
	scale := func(v float64) float64 { return v }
	if c.log {
		scale = math.Log
	}
	span := max(scale(last)-scale(first), math.SmallestNonzeroFloat64)
	var kept []plot.Tick
	edges := func(t plot.Tick) (left, right vg.Length) {
		at, half := axisWidth*vg.Length((scale(t.Value)-scale(first))/span), sty.Width(t.Label)/2
		return at - half, at + half
	}
	end := vg.Length(math.Inf(-1)) // of the label before
	for _, t := range ticks {
		if t.Label = tickText(sty, t.Label, tickWidth); t.Label != "" {
			if left, right := edges(t); left < end+vg.Points(besideLabels) {
				t.Label = ""
			} else {
				end = right
			}
		}
		kept = append(kept, t)
	}
	c.nameLast(kept, ticks, sty, edges)
	return kept
}

// nameLast gives the last tick its label, and takes those away that it touches.
func (c *Curves) nameLast(kept, ticks []plot.Tick, sty draw.TextStyle, edges func(plot.Tick) (left, right vg.Length)) {
	i := len(kept) - 1
	if i < 1 || kept[i].Label != "" || ticks[i].Label == "" {
		return
	}
	t := plot.Tick{Value: ticks[i].Value, Label: tickText(sty, ticks[i].Label, tickWidth)}
	left, _ := edges(t)
	for j := i - 1; j >= 0; j-- {
		if _, right := edges(kept[j]); kept[j].Label == "" || right+vg.Points(besideLabels) <= left {
			continue
		} else if j == 0 {
			return // the first one stays
		}
		kept[j].Label = ""
	}
	kept[i] = t
}
