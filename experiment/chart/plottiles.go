package chart

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Sizes of a picture of words: a row of tiles for each line.
const (
	tileHeight = 0.75 * vg.Centimeter // at least
	tileNames  = 6 * vg.Centimeter    // of lines, at most
	tileWidth  = 2.4 * vg.Centimeter  // of a few
	tilesWidth = 5 * vg.Centimeter    // together, at least; at most axisWidth
	tileFont   = 11                   // points
)

// tilePalette has colours that are light enough for black letters.
var tilePalette = []color.RGBA{{166, 206, 227, 255}, {253, 191, 111, 255}, {178, 223, 138, 255}, {251, 180, 174, 255}, {202, 178, 214, 255}, {255, 255, 153, 255},
	{204, 235, 197, 255}, {229, 216, 189, 255}, {217, 217, 217, 255}, {141, 211, 199, 255}}

// tile is how the tiles of a word look.
type tile struct{ color.Color }

// Thumbnail draws it for the legend.
func (t tile) Thumbnail(c *draw.Canvas) {
	swatch{t.Color, color.Gray{120}}.draw(c, vg.Rectangle{Min: c.Min, Max: c.Max})
}

// tiles are the words of lines at places.
type tiles struct {
	words  []string // that occur, in order
	at     map[[2]int]int
	sty    draw.TextStyle
	inside bool // each word fits into its tile
}

// Plot draws them.
func (t *tiles) Plot(c draw.Canvas, pl *plot.Plot) {
	x, y := pl.Transforms(&c)
	for col := 0; float64(col) < pl.X.Max; col++ {
		for row := 0; float64(row) < pl.Y.Max; row++ {
			w, ok := t.at[[2]int{col, row}]
			if !ok {
				continue
			}
			r := vg.Rectangle{Min: vg.Point{X: x(float64(col) - 0.5), Y: y(float64(row) - 0.5)}, Max: vg.Point{X: x(float64(col) + 0.5), Y: y(float64(row) + 0.5)}}
			swatch{tilePalette[w%len(tilePalette)], color.White}.draw(&c, r)
			if t.inside {
				c.FillText(t.sty, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}, t.words[w])
			}
		}
	}
}

// tiles draws words: a row for each line with a tile at each place. Between two words there is
// nothing that a line could show.
func (p *Plot) tiles(pic *picture, ch *Curves, caption string) *picture {
	pl := pic.plot
	names := ch.Names[:min(len(ch.Names), mostNames)]
	place := map[float64]int{}
	var columns []plot.Tick
	for i, t := range ch.Ticks {
		place[t.Value] = i
		columns = append(columns, plot.Tick{Value: float64(i), Label: t.Label})
	}
	t := &tiles{at: map[[2]int]int{}, sty: pl.X.Tick.Label}
	t.sty.Font.Size, t.sty.XAlign, t.sty.YAlign, t.sty.Rotation = vg.Points(tileFont), draw.XCenter, draw.YCenter, 0
	for i, word := range p.YWords {
		for k, name := range names {
			for _, q := range ch.Points[name] {
				if q.Y != float64(i) {
					continue
				}
				if !slices.Contains(t.words, word) {
					t.words = append(t.words, word)
				}
				t.at[[2]int{place[q.X], len(names) - 1 - k}] = slices.Index(t.words, word)
			}
		}
	}
	wide := min(axisWidth, max(tilesWidth, tileWidth*vg.Length(len(columns))))
	pitch := wide / vg.Length(len(columns))
	beside := vg.Length(0)
	var lines []plot.Tick
	for k, name := range shortNames(names) {
		label := fit(pl.Y.Tick.Label, plain.Line(name), tileNames, 2)
		beside = max(beside, pl.Y.Tick.Label.Rectangle(label).Size().X)
		lines = append(lines, plot.Tick{Value: float64(len(names) - 1 - k), Label: label})
	}
	t.inside = true
	for _, w := range t.words {
		t.inside = t.inside && t.sty.Width(w)+vg.Points(4) <= pitch
	}
	pl.Add(t)
	pl.X.Min, pl.X.Max, pl.Y.Min, pl.Y.Max = -0.5, float64(len(columns))-0.5, -0.5, float64(len(names))-0.5
	pl.X.Tick.Width, pl.X.Tick.Length, pl.X.Width, pl.Y.Tick.Width, pl.Y.Tick.Length, pl.Y.Width = 0, 0, 0, 0, 0, 0
	every, turn := placed(pl.X.Tick.Label, labelTexts(columns), pitch, !ch.words)
	pic.extra = setTicks(&pl.X, columns, every, turn)
	pl.Y.Tick.Marker, pl.Y.Label.Text = plot.ConstantTicks(lines), ""
	if !t.inside || len(t.words) > 1 {
		for i, w := range t.words {
			pic.name(w, tile{tilePalette[i%len(tilePalette)]})
		}
	}
	if more := len(ch.Names) - len(names); more > 0 {
		pic.name(fmt.Sprintf("and %d more lines", more))
	}
	pic.width = wide + beside + vg.Points(5*margin)
	high := max(tileHeight, 2.2*pl.Y.Tick.Label.Height("X"))
	pic.height = vg.Length(len(names))*high + 3*vg.Centimeter
	pic.low = true
	return pic.layOut(caption)
}

func labelTexts(ticks []plot.Tick) (labels []string) {
	for _, t := range ticks {
		labels = append(labels, t.Label)
	}
	return labels
}
