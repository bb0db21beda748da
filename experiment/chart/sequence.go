package chart

import (
	"errors"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rdmasim/rdmasim/sim"
)

// Sequence is a picture of the CPUs that do something between the first CQE and a little after the
// last handler.
type Sequence struct {
	title       string
	lanes       []lane
	from, to    sim.Time
	First, Last float64 // start of the first handler and end of the last, in microseconds after the first CQE
	marks       []bar
}

// lane is a CPU.
type lane struct {
	name         string
	below, above []bar // what has the CPU, and what it does
}

type bar struct {
	name       string
	start, end sim.Time
	arg        uint64
}

// occupies says whether a name is of a context, which has the CPU; all others are what it does.
func occupies(name string) bool { return kindOfBar(name) == "" }

// NewSequence takes from the timeline of a run what the picture shows; it is an error if no handler
// has ended in it.
func NewSequence(title string, spans *sim.Spans) (*Sequence, error) {
	s := &Sequence{title: title, from: -1}
	var first, last sim.Time
	spans.Each(func(track, name string, start, end sim.Time, _ uint64) {
		switch {
		case name == "CQE" && (s.from < 0 || start < s.from):
			s.from = start
		case name == "handler":
			if first == 0 || start < first {
				first = start
			}
			last = max(last, end)
		}
	})
	if s.from < 0 || last == 0 {
		return nil, errors.New("no handler ended")
	}
	s.First, s.Last = s.us(first), s.us(last)
	s.to = last + (last-s.from)/5
	lanes := map[string]int{}
	spans.Each(func(track, name string, start, end sim.Time, arg uint64) {
		if end < s.from || start > s.to {
			return
		}
		b := bar{name, max(start, s.from), min(end, s.to), arg}
		if strings.HasPrefix(track, "adapter/") {
			s.marks = append(s.marks, b)
			return
		}
		i, ok := lanes[track]
		if !ok {
			i = len(s.lanes)
			lanes[track] = i
			s.lanes = append(s.lanes, lane{name: strings.TrimPrefix(track, "CPUs/")})
		}
		l := &s.lanes[i]
		if occupies(name) {
			l.below = append(l.below, b)
		} else {
			l.above = append(l.above, b)
		}
	})
	return s, nil
}

// us is a time in microseconds after the first CQE.
func (s *Sequence) us(t sim.Time) float64 { return float64(t-s.from) / float64(sim.Microsecond) }

// Kinds of what contexts do, with their colours.
var barKinds = []struct {
	kind string
	c    color.RGBA
}{
	{"handler", color.RGBA{0, 158, 115, 255}}, {"poll", color.RGBA{86, 180, 233, 255}}, {"arm", color.RGBA{204, 121, 167, 255}},
	{"event queue", color.RGBA{240, 228, 66, 255}}, {"wake-up", color.RGBA{213, 94, 0, 255}}, {"lock", color.RGBA{120, 0, 0, 255}},
	{"switch", color.RGBA{150, 150, 150, 255}}, {"idle exit", color.RGBA{205, 205, 205, 255}},
}

// kindOfBar is the kind of a name, empty for contexts.
func kindOfBar(name string) string {
	for _, k := range barKinds {
		if k.kind == name {
			return k.kind
		}
	}
	return ""
}

func colourOf(name string) color.RGBA {
	for _, k := range barKinds {
		if k.kind == name {
			return k.c
		}
	}
	switch name {
	case "interrupt":
		return color.RGBA{250, 200, 190, 255}
	case "softirq":
		return color.RGBA{255, 225, 170, 255}
	}
	return color.RGBA{205, 222, 245, 255}
}

// Sizes of the picture.
const (
	sequenceWidth = 24 * vg.Centimeter
	sequenceLeft  = 2 * vg.Centimeter
	laneHeight    = 1.7 * vg.Centimeter
	barHeight     = 0.6 * vg.Centimeter
	headHeight    = 1.6 * vg.Centimeter
	footHeight    = 2.6 * vg.Centimeter
)

// Draw makes the picture as SVG, with a caption below it.
func (s *Sequence) Draw(caption string) ([]byte, error) {
	height := headHeight + footHeight + laneHeight*vg.Length(len(s.lanes)+1)
	sc := newSVG(sequenceWidth, height)
	c := draw.NewCanvas(sc, sequenceWidth, height)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	p := plot.New()
	pen := &sequencePen{s: s, c: c, text: p.X.Tick.Label, height: height}
	pen.text.XAlign, pen.text.YAlign = draw.XLeft, draw.YCenter
	title := p.Title.TextStyle
	title.XAlign, title.YAlign = draw.XLeft, draw.YTop
	c.FillText(title, vg.Point{X: vg.Points(margin), Y: height - vg.Points(margin)}, s.title)
	pen.axis()
	pen.adapter()
	for i := range s.lanes {
		pen.lane(i)
	}
	pen.legend()
	pen.label(vg.Points(margin), vg.Points(margin), fit(pen.text, caption, sequenceWidth-vg.Points(2*margin), 1))
	return sc.bytes()
}

// sequencePen draws parts of the picture.
type sequencePen struct {
	s      *Sequence
	c      draw.Canvas
	text   draw.TextStyle
	height vg.Length
}

// x is where an instant is.
func (p *sequencePen) x(t sim.Time) vg.Length {
	width := sequenceWidth - sequenceLeft - vg.Points(2*margin)
	return sequenceLeft + width*vg.Length(float64(t-p.s.from)/float64(p.s.to-p.s.from))
}

// y is the bottom of lane i; the adapter's is -1.
func (p *sequencePen) y(i int) vg.Length { return p.height - headHeight - laneHeight*vg.Length(i+2) }

func (p *sequencePen) label(x, y vg.Length, text string) {
	p.c.FillText(p.text, vg.Point{X: x, Y: y}, text)
}

func (p *sequencePen) box(x0, y0, x1, y1 vg.Length, c color.Color) {
	p.c.SetColor(c)
	p.c.Fill(vg.Rectangle{Min: vg.Point{X: x0, Y: y0}, Max: vg.Point{X: max(x1, x0+vg.Points(0.7)), Y: y1}}.Path())
}

// axis has a line for each so many microseconds.
func (p *sequencePen) axis() {
	step := sim.Microsecond
	for (p.s.to-p.s.from)/step > 20 {
		step *= 5
	}
	bottom := p.y(len(p.s.lanes)-1) - vg.Points(4)
	for t := sim.Time(0); t <= p.s.to-p.s.from; t += step {
		x := p.x(p.s.from + t)
		p.box(x, bottom, x+vg.Points(0.5), p.height-headHeight, color.RGBA{225, 225, 225, 255})
		label := fmt.Sprint(int64(t / sim.Microsecond))
		p.label(x-p.text.Width(label)/2, bottom-vg.Points(7), label)
	}
	p.label(vg.Points(margin), bottom-vg.Points(7), "us")
}

// adapter has the CQEs and the interrupts.
func (p *sequencePen) adapter() {
	y := p.y(-1)
	p.label(vg.Points(margin), y+laneHeight/2, "adapter")
	for i, m := range p.s.marks {
		x := p.x(m.start)
		p.box(x, y, x+vg.Points(1.2), y+laneHeight*0.55, color.Black)
		what := m.name
		if m.name == "CQE" {
			what += fmt.Sprint(" ", m.arg)
		}
		p.label(x+vg.Points(3), y+laneHeight*0.55-vg.Points(float64(9*(i%3))), what)
	}
}

// lane has what has a CPU below, and what it does above.
func (p *sequencePen) lane(i int) {
	l, y := &p.s.lanes[i], p.y(i)
	p.label(vg.Points(margin), y+laneHeight/2, l.name)
	for _, level := range []struct {
		bars   []bar
		bottom vg.Length
	}{{longestFirst(l.below), y}, {longestFirst(l.above), y + barHeight}} {
		for _, b := range level.bars {
			x0, x1 := p.x(b.start), p.x(b.end)
			p.box(x0, level.bottom, x1, level.bottom+barHeight, colourOf(b.name))
			name := b.name
			if name == "handler" {
				name = fmt.Sprint("handler ", b.arg)
			}
			if p.text.Width(name) <= x1-x0-vg.Points(3) && name != "lock" { // the legend has the others
				p.label(x0+vg.Points(2), level.bottom+barHeight/2, name)
			}
		}
	}
}

// longestFirst orders bars so that those inside others are drawn over them.
func longestFirst(bars []bar) []bar {
	out := make([]bar, len(bars))
	copy(out, bars)
	for i := 1; i < len(out); i++ { // they are few
		for j := i; j > 0 && out[j].end-out[j].start > out[j-1].end-out[j-1].start; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// legend names the colours.
func (p *sequencePen) legend() {
	x, y := vg.Points(margin), vg.Points(3*margin)
	kinds := []string{"interrupt", "softirq", "thread"}
	for _, k := range barKinds {
		kinds = append(kinds, k.kind)
	}
	for _, k := range kinds {
		p.box(x, y, x+vg.Points(margin), y+vg.Points(margin), colourOf(k))
		p.label(x+vg.Points(14), y+vg.Points(5), k)
		x += vg.Points(24) + p.text.Width(k)
	}
}
