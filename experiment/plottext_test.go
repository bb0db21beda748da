package experiment

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
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
func hardPlots() map[string]func() (Plot, []Row, string) {
	long := "loads of a cluster with a rather long name that somebody wrote into a scenario, uar.bf_conflict=serialize, traffic.0.qps_per_thread=16"
	rows := func(n int, xs []any, name func(i int) string) (rows []Row) {
		for i := range n {
			for j, x := range xs {
				var r Row
				rows = append(rows, *r.Set("x", x).Set("y", float64(i+1)*math.Pow(7, float64(j))).Set("s", name(i)))
			}
		}
		return rows
	}
	plain := Plot{File: "f", Title: "title", X: "x", Y: "y", XLabel: "x", YLabel: "million messages/s", Series: "s", LogX: true}
	caption := "rdmasim 0.1.0, profile connectx-5 (290aa3d0467c0d69), seed 1"
	return map[string]func() (Plot, []Row, string){
		"usual": func() (Plot, []Row, string) {
			return plain, rows(3, []any{1, 2, 4, 8, 16}, func(i int) string { return fmt.Sprintf("series %d", i) }), caption
		},
		"long names": func() (Plot, []Row, string) {
			p := plain
			p.Title, p.XLabel, p.YLabel = long+": rate of each load", strings.Repeat(long, 2), "ns"
			return p, rows(7, []any{1, 2, 3, 1e6}, func(i int) string { return fmt.Sprint(long, " ", i) }), strings.Repeat(caption+", ", 12)
		},
		"one long word": func() (Plot, []Row, string) {
			p := plain
			p.Title = strings.Repeat("W", 300)
			return p, rows(2, []any{1, 2}, func(i int) string { return strings.Repeat("W", 300) + fmt.Sprint(i) }), strings.Repeat("W", 3000)
		},
		"many values": func() (Plot, []Row, string) {
			var xs []any
			for i := range 32 {
				xs = append(xs, 1_000_000+i)
			}
			p := plain
			p.LogX = false
			return p, rows(2, xs, func(i int) string { return fmt.Sprint(i) }), caption
		},
		"words": func() (Plot, []Row, string) {
			p := plain
			p.Words = []string{strings.Repeat("first", 20), "2", strings.Repeat("third", 20), "", "five"}
			return p, rows(1, []any{p.Words[0], "2", p.Words[2], "", "five"}, func(int) string { return "" }), ""
		},
		"many lines": func() (Plot, []Row, string) {
			return plain, rows(1000, []any{1, 2}, func(i int) string { return fmt.Sprint("load ", i) }), caption
		},
		"large numbers": func() (Plot, []Row, string) {
			return plain, rows(2, []any{1, 1e5, 1e10, 1e15}, func(i int) string { return fmt.Sprint(i) }), caption
		},
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
			if pic.height > 2*plotHeight || pic.width > 2*plotWidth {
				t.Errorf("a picture of %.0f x %.0f points", pic.width, pic.height)
			}
			c := &measure{Canvas: vgimg.New(pic.width, pic.height), m: [6]float64{1, 0, 0, 1, 0, 0}}
			pic.render(draw.NewCanvas(c, pic.width, pic.height))
			if len(c.boxes) < 4 {
				t.Fatalf("%d texts", len(c.boxes))
			}
			for i, b := range c.boxes {
				if b.x < 0 || b.y < 0 || b.x+b.w > pic.width.Points() || b.y+b.h > pic.height.Points() {
					t.Errorf("%+v leaves the picture of %.0f x %.0f", b, pic.width, pic.height)
				}
				for _, o := range c.boxes[:i] {
					if b.overlaps(o) {
						t.Errorf("%+v lies over %+v", b, o)
					}
				}
			}
		})
	}
}

// A viewer that has another font gives each text the room that was measured.
func TestPlotTextsHaveWidths(t *testing.T) {
	p, rows, caption := hardPlots()["long names"]()
	_, svg, err := p.Draw(rows, caption)
	if err != nil {
		t.Fatal(err)
	}
	texts, sized := regexp.MustCompile(`<text `).FindAll(svg, -1), regexp.MustCompile(`<text textLength="[0-9.]+" lengthAdjust="spacingAndGlyphs" x=`).FindAll(svg, -1)
	if len(texts) < 8 || len(sized) != len(texts) {
		t.Errorf("%d texts, of which %d have a width", len(texts), len(sized))
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
