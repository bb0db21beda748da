package chart

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// box is where a text lies on a picture, in points.
type box struct {
	text       string
	x, y, w, h float64
}

func (b box) overlaps(o box) bool {
	touch := 0.12 * min(b.h, o.h) // lines of one text are that much closer than the font's tallest letters
	return b.x+touch < o.x+o.w && o.x+touch < b.x+b.w && b.y+touch < o.y+o.h && o.y+touch < b.y+b.h
}

// measure is a canvas that notes where texts come to lie. The state is an affine map.
type measure struct {
	*vgimg.Canvas
	m     [6]float64
	saved [][6]float64
	boxes []box
}

func (c *measure) apply(a, b, d, e, tx, ty float64) {
	m := c.m
	c.m = [6]float64{m[0]*a + m[2]*b, m[1]*a + m[3]*b, m[0]*d + m[2]*e, m[1]*d + m[3]*e, m[0]*tx + m[2]*ty + m[4], m[1]*tx + m[3]*ty + m[5]}
}
func (c *measure) Push() { c.saved = append(c.saved, c.m); c.Canvas.Push() }
func (c *measure) Pop() {
	c.m, c.saved = c.saved[len(c.saved)-1], c.saved[:len(c.saved)-1]
	c.Canvas.Pop()
}
func (c *measure) Rotate(r float64) {
	s, k := math.Sincos(r)
	c.apply(k, s, -s, k, 0, 0)
	c.Canvas.Rotate(r)
}
func (c *measure) Translate(p vg.Point) {
	c.apply(1, 0, 0, 1, p.X.Points(), p.Y.Points())
	c.Canvas.Translate(p)
}
func (c *measure) FillString(f font.Face, p vg.Point, s string) {
	w, up, down := f.Width(s).Points(), f.Extents().Ascent.Points(), f.Extents().Descent.Points()
	lowX, lowY, highX, highY := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, corner := range [][2]float64{{0, -down}, {w, -down}, {0, up}, {w, up}} {
		px, py := p.X.Points()+corner[0], p.Y.Points()+corner[1]
		x, y := c.m[0]*px+c.m[2]*py+c.m[4], c.m[1]*px+c.m[3]*py+c.m[5]
		lowX, lowY, highX, highY = min(lowX, x), min(lowY, y), max(highX, x), max(highY, y)
	}
	if strings.TrimSpace(s) != "" {
		c.boxes = append(c.boxes, box{s, lowX, lowY, highX - lowX, highY - lowY})
	}
	c.Canvas.FillString(f, p, s)
}

// hardPlots are pictures with more, longer and wider texts than anybody hopes for.
func hardPlots() map[string]func() (Plot, []table.Row, string) {
	long := "loads of a cluster with a rather long name that somebody wrote into a scenario, uar.bf_conflict=serialize, traffic.0.qps_per_thread=16"
	rows := func(n int, xs []any, name func(i int) string) (rows []table.Row) {
		for i := range n {
			for j, x := range xs {
				var r table.Row
				rows = append(rows, *r.Set("x", x).Set("y", float64(i+1)*math.Pow(7, float64(j))).Set("s", name(i)))
			}
		}
		return rows
	}
	plain := Plot{File: "f", Title: "title", X: "x", Y: "y", XLabel: "x", YLabel: "million messages/s", Series: "s", LogX: true}
	caption := "rdmasim 0.1.0, profile connectx-5 (290aa3d0467c0d69), seed 1"
	return map[string]func() (Plot, []table.Row, string){
		"usual": func() (Plot, []table.Row, string) {
			return plain, rows(3, []any{1, 2, 4, 8, 16}, func(i int) string { return fmt.Sprintf("series %d", i) }), caption
		},
		"long names": func() (Plot, []table.Row, string) {
			p := plain
			p.Title, p.XLabel, p.YLabel = long+": rate of each load", strings.Repeat(long, 2), "ns"
			return p, rows(7, []any{1, 2, 3, 1e6}, func(i int) string { return fmt.Sprint(long, " ", i) }), strings.Repeat(caption+", ", 12)
		},
		"one long word": func() (Plot, []table.Row, string) {
			p := plain
			p.Title = strings.Repeat("W", 300)
			return p, rows(2, []any{1, 2}, func(i int) string { return strings.Repeat("W", 300) + fmt.Sprint(i) }), strings.Repeat("W", 3000)
		},
		"many values": func() (Plot, []table.Row, string) {
			var xs []any
			for i := range 32 {
				xs = append(xs, 1_000_000+i)
			}
			p := plain
			p.LogX = false
			return p, rows(2, xs, func(i int) string { return fmt.Sprint(i) }), caption
		},
		"words": func() (Plot, []table.Row, string) {
			p := plain
			p.Words = []string{strings.Repeat("first", 20), "2", strings.Repeat("third", 20), "", "five"}
			return p, rows(1, []any{p.Words[0], "2", p.Words[2], "", "five"}, func(int) string { return "" }), ""
		},
		"many lines": func() (Plot, []table.Row, string) {
			return plain, rows(1000, []any{1, 2}, func(i int) string { return fmt.Sprint("load ", i) }), caption
		},
		"large numbers": func() (Plot, []table.Row, string) {
			return plain, rows(2, []any{1, 1e5, 1e10, 1e15}, func(i int) string { return fmt.Sprint(i) }), caption
		},
		"profiles": func() (Plot, []table.Row, string) {
			p, xs := plain, []any(nil)
			p.LogX, p.Words = false, profiles
			for _, w := range profiles {
				xs = append(xs, w)
			}
			return p, rows(1, xs, func(int) string { return "" }), caption
		},
		"many words": func() (Plot, []table.Row, string) {
			p, xs := plain, []any(nil)
			p.LogX = false
			for i := range 80 {
				p.Words = append(p.Words, fmt.Sprint("the setting number ", i))
				xs = append(xs, p.Words[i])
			}
			return p, rows(1, xs, func(int) string { return "" }), caption
		},
		"many times": func() (Plot, []table.Row, string) {
			p, xs := plain, []any(nil)
			p.LogX = false
			for i := range 41 {
				xs = append(xs, fmt.Sprint(10+i, "us"))
			}
			return p, rows(1, xs, func(int) string { return "" }), caption
		},
		"bars": func() (Plot, []table.Row, string) {
			p := plain
			p.LogX, p.Words, p.Band = false, []string{"true", "false", "word"}, "band"
			return p, rows(7, []any{"true", "false", "word"}, func(i int) string { return fmt.Sprint("load, key=", i) }), caption
		},
		"too many bars": func() (Plot, []table.Row, string) {
			p := plain
			p.LogX, p.Words = false, []string{"true", "false"}
			return p, rows(50, []any{"true", "false"}, func(i int) string { return fmt.Sprint(i) }), caption
		},
		"limits": func() (Plot, []table.Row, string) {
			p, all := plain, []table.Row(nil)
			p.YWords = []string{"window", "CPU", "a rather long name of a limit"}
			for i := range 20 {
				for x := range 9 {
					var r table.Row
					all = append(all, *r.Set("x", fmt.Sprint(x+1, "KiB")).Set("y", p.YWords[(i+x)%3]).Set("s", fmt.Sprint(long, i)))
				}
			}
			return p, all, caption
		},
		"within a decade": func() (Plot, []table.Row, string) {
			var xs []any
			for i := range 80 {
				xs = append(xs, fmt.Sprint(11+i))
			}
			return plain, rows(1, xs, func(int) string { return "" }), caption
		},
	}
}

var profiles = []string{"connect-ib", "connectx-4", "connectx-4-ib", "connectx-4lx", "connectx-5", "connectx-5-ib", "connectx-6", "connectx-6dx", "generic-roce", "thunderx2"}

// Each word of an axis is there, as far as there is room, and numbers have their units.
func TestPlotNamesItsPlaces(t *testing.T) {
	for name, want := range map[string][]string{"profiles": profiles, "many times": {"10us", "50us"}, "within a decade": {"20", "50"}} {
		p, rows, caption := hardPlots()[name]()
		_, svg, err := p.Draw(rows, caption)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(svg), ">"+w+"<") {
				t.Errorf("%s: no label %s", name, w)
			}
		}
		if strings.Contains(string(svg), "e+07<") {
			t.Errorf("%s: a time without its unit", name)
		}
	}
}

// hardMaps are heat maps of so many columns and rows.
func hardMaps() map[string]func() (*HeatMap, []table.Row) {
	numbers := func(n int) (texts []string) {
		for i := range n {
			texts = append(texts, fmt.Sprint(1+i))
		}
		return texts
	}
	of := func(xs, ys []string, value func(i int) float64) func() (*HeatMap, []table.Row) {
		return func() (*HeatMap, []table.Row) {
			var rows []table.Row
			for _, x := range xs {
				for _, y := range ys {
					var r table.Row
					rows = append(rows, *r.Set("traffic.0.window", x).Set("uar.bf_conflict", y).Set("v", value(len(rows))))
				}
			}
			return &HeatMap{File: "f", Title: strings.Repeat("a long title ", 12), X: []string{"traffic.0.window"}, Y: []string{"uar.bf_conflict"}, XValues: xs, YValues: ys, Value: "v", ValueLabel: "million messages/s"}, rows
		}
	}
	usual := func(i int) float64 { return 0.643 + float64(i)/7 }
	return map[string]func() (*HeatMap, []table.Row){
		"usual":          of(numbers(5), []string{"none", "serialize"}, usual),
		"many columns":   of(numbers(100), []string{"none", "serialize"}, usual),
		"many rows":      of([]string{"none", "serialize"}, numbers(100), usual),
		"many figures":   of(numbers(40), numbers(3), usual),
		"profiles":       of(profiles, numbers(3), usual),
		"profiles up":    of(numbers(3), profiles, usual),
		"close values":   of(numbers(3), numbers(2), func(i int) float64 { return 4.4912 + float64(i)/10000 }),
		"large values":   of(numbers(12), numbers(12), func(i int) float64 { return 123456789e3 + float64(i) }),
		"small values":   of(numbers(12), numbers(12), func(i int) float64 { return 1.2345678e-9 * float64(i+1) }),
		"equal values":   of(numbers(2), numbers(2), func(int) float64 { return 0 }),
		"too many":       of(numbers(1000), numbers(7), usual),
		"very long word": of([]string{strings.Repeat("W", 300), "b"}, []string{strings.Repeat("M", 300), "d"}, usual),
	}
}

// No text of a heat map leaves it or lies over another one, and no two of its colours have one
// name.
func TestMapTextsStayApart(t *testing.T) {
	caption := "rdmasim 0.1.0, profile " + strings.Join(profiles, ", ") + " and 3 more (13c40664f4453d1e, 500838a2b53a7cb3, 71614ba03abe8aea, fe2af24b08fc4403 and 2 more), seed 1"
	for name, make := range hardMaps() {
		t.Run(name, func(t *testing.T) {
			h, rows := make()
			pic, err := h.picture(rows, caption)
			if err != nil {
				t.Fatal(err)
			}
			boxes := textsApart(t, pic.width, pic.height, pic.render)
			if len(boxes) < 8 {
				t.Errorf("%d texts", len(boxes))
			}
			if strings.HasPrefix(name, "profiles") {
				for _, w := range profiles {
					if !slices.ContainsFunc(boxes, func(b box) bool { return b.text == w }) {
						t.Errorf("no label %s", w)
					}
				}
			}
		})
	}
}

// textsApart renders a picture and reports texts that leave it or lie over one another.
func textsApart(t *testing.T, width, height vg.Length, render func(draw.Canvas)) []box {
	t.Helper()
	if height > 3*plotHeight || width > 2*plotWidth { // 3*plotHeight is a page
		t.Errorf("a picture of %.0f x %.0f points", width, height)
	}
	c := &measure{Canvas: vgimg.New(width, height), m: [6]float64{1, 0, 0, 1, 0, 0}}
	render(draw.NewCanvas(c, width, height))
	for i, b := range c.boxes {
		if b.x < 0 || b.y < 0 || b.x+b.w > width.Points() || b.y+b.h > height.Points() {
			t.Errorf("%+v leaves the picture of %.0f x %.0f", b, width, height)
		}
		for _, o := range c.boxes[:i] {
			if b.overlaps(o) {
				t.Errorf("%+v lies over %+v", b, o)
			}
		}
	}
	return c.boxes
}

// The ticks of an axis are round, more than one and not too many, and no two have one label.
func TestRoundTicks(t *testing.T) {
	for _, r := range [][2]float64{{0, 1}, {0, 157.5}, {0, 262500}, {0, 5e-9}, {0, 3e15}, {4.4912, 4.4914}, {1566, 1567}, {123456789000, 123456789144}, {0, 2.1}, {-3, 7}, {0, 1e300}, {1, math.Nextafter(1, 2)}} {
		seen := map[string]bool{}
		for _, tick := range (roundTicks{}).Ticks(r[0], r[1]) {
			if tick.Value < r[0] || tick.Value > r[1] {
				t.Errorf("%v: a tick at %v", r, tick.Value)
			}
			if seen[tick.Label] && tick.Label != "" {
				t.Errorf("%v: two ticks %s", r, tick.Label)
			}
			if strings.Contains(tick.Label, ".") && strings.HasSuffix(tick.Label, "00") && !strings.Contains(tick.Label, "e") {
				t.Errorf("%v: %s has zeros that say nothing", r, tick.Label)
			}
			seen[tick.Label] = true
		}
		delete(seen, "")
		if len(seen) < 2 || len(seen) > 6 {
			t.Errorf("%v: labels %v", r, seen)
		}
	}
}

// No text leaves the picture or lies over another one.
func TestPlotTextsStayApart(t *testing.T) {
	for name, make := range hardPlots() {
		t.Run(name, func(t *testing.T) {
			p, rows, caption := make()
			pic, err := p.picture(rows, caption)
			if err != nil {
				t.Fatal(err)
			}
			if boxes := textsApart(t, pic.width, pic.height, pic.render); len(boxes) < 4 {
				t.Fatalf("%d texts", len(boxes))
			}
		})
	}
}

// No text of panels lies over another one, whatever is long in them; there is one bar of colours,
// and figures that differ have other colours.
func TestPanelTextsStayApart(t *testing.T) {
	for n, long := range map[int]string{2: "", 3: "W", 4: "a rather long name of a load", 12: "load"} {
		var maps []*HeatMap
		var rows []table.Row
		for i := range n {
			for _, x := range []string{"1", "2KiB", long + "3"} {
				for _, y := range []string{"none", "serialize"} {
					var r table.Row
					rows = append(rows, *r.Set("k.long_key", x).Set("l", y).Set("name", i).Set("v", 1e3*float64(len(rows))))
				}
			}
			maps = append(maps, &HeatMap{Title: strings.Repeat(long+" ", 4) + fmt.Sprint(i), X: []string{"k.long_key"}, Y: []string{"l"}, XValues: []string{"1", "2KiB", long + "3"},
				YValues: []string{"none", "serialize"}, Value: "v", ValueLabel: "million messages/s", Only: map[string]any{"name": i}})
		}
		all := Panels("title "+strings.Repeat(long, 9), maps)
		if len(all) != 1 {
			t.Fatalf("%d pictures of %d small maps", len(all), n)
		}
		pic, err := all[0].(*panels).picture(rows, strings.Repeat("caption ", 30))
		if err != nil {
			t.Fatal(err)
		}
		c := &measure{Canvas: vgimg.New(pic.width, pic.height), m: [6]float64{1, 0, 0, 1, 0, 0}}
		pic.render(draw.NewCanvas(c, pic.width, pic.height))
		for i, b := range c.boxes {
			if b.x < 0 || b.y < 0 || b.x+b.w > pic.width.Points() || b.y+b.h > pic.height.Points() {
				t.Errorf("%d: %+v leaves the picture", n, b)
			}
			for _, o := range c.boxes[:i] {
				if b.overlaps(o) {
					t.Errorf("%d: %+v lies over %+v", n, b, o)
				}
			}
		}
		if maps[0].lowest != 0 || maps[0].highest != maps[n-1].highest {
			t.Errorf("%d: panels have colours of their own", n)
		}
	}
	if all := Panels("t", []*HeatMap{{Title: "a", XValues: make([]string, 30)}, {Title: "b"}}); len(all) != 2 || all[1].Heading() != "t, b" {
		t.Errorf("large maps are %d pictures", len(all))
	}
}

// Browsers stretch the strip of colours beside a heat map to the width of the bar, and do not keep
// it a hair wide.
func TestMapColoursFillTheirBar(t *testing.T) {
	h, rows := hardMaps()["usual"]()
	_, svg, err := h.Draw(rows, "")
	if err != nil {
		t.Fatal(err)
	}
	images := regexp.MustCompile(`<image `).FindAll(svg, -1)
	if stretched := regexp.MustCompile(`<image preserveAspectRatio="none" `).FindAll(svg, -1); len(images) == 0 || len(stretched) != len(images) {
		t.Errorf("%d images, of which %d are stretched", len(images), len(stretched))
	}
	if pngs := bytes.Count(svg, []byte(`"data:image/png;base64,iVBOR`)); pngs != len(images) {
		t.Errorf("%d images, of which %d are called what they are", len(images), pngs)
	}
}

// Bars stand for words, with points in place of lines where they are too many; a limit is a tile,
// and nothing joins two words.
func TestNoLineBetweenWords(t *testing.T) {
	for name, want := range map[string]bool{"bars": true, "too many bars": true, "limits": false, "usual": false} {
		p, rows, _ := hardPlots()[name]()
		if got := p.bars(); got != want {
			t.Errorf("%s: bars %v", name, got)
		}
		svg, err := p.SVG(rows, "")
		if err != nil {
			t.Fatal(err)
		}
		if dashed := strings.Contains(string(svg), "stroke-dasharray"); dashed != (name == "usual") {
			t.Errorf("%s: dashed lines %v", name, dashed)
		}
	}
	for words, want := range map[string]bool{"1:2 3:4": false, "8B 4KiB": false, "a:1 b:2": true, "true false": true} {
		if p := (Plot{Words: strings.Fields(words)}); p.bars() != want {
			t.Errorf("%s: bars %v", words, p.bars())
		}
	}
}

// A band goes from the least to the largest, and rows of one have no point.
func TestBandsFromTheLeastToTheLargest(t *testing.T) {
	p := Plot{X: "x", Y: "sum", Per: "n", Low: "low", High: "high", Series: "s"}
	var one, four, lacking table.Row
	one.Set("x", 1).Set("sum", 8.0).Set("n", 1).Set("low", 8.0).Set("high", 8.0).Set("s", "a")
	four.Set("x", 2).Set("sum", 8.0).Set("n", 4).Set("low", 1.0).Set("high", 3.0).Set("s", "a")
	lacking.Set("x", 3).Set("sum", 8.0).Set("n", 4).Set("s", "a")
	c := p.Collect([]table.Row{one, four, lacking})
	if got := c.Points["a"]; len(got) != 1 || got[0].Y != 2 || c.bands["a"][0] != [2]float64{1, 3} {
		t.Errorf("points %v, bands %v", got, c.bands["a"])
	}
}

// A name that is too long keeps both ends.
func TestLongNamesKeepTheirEnds(t *testing.T) {
	sty := newPicture().legend.TextStyle
	got := fit(sty, "begin "+strings.Repeat("and so on ", 50)+"end", legendWidth, legendLines)
	if lines := strings.Split(got, "\n"); len(lines) != legendLines || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, "…") {
		t.Errorf("%q", got)
	}
	for _, s := range []string{"", "short", "a b c"} {
		if got := fit(sty, s, legendWidth, 1); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
