package chart

import (
	"errors"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// Sizes of panels: maps with few cells, side by side in one picture with one bar of colours.
const (
	mostPanelCells = 8                   // in a row or column
	panelsWidth    = 19 * vg.Centimeter  // together, with the bar of colours, at most
	panelCell      = 1.1 * vg.Centimeter // at least
	panelWidth     = 3.2 * vg.Centimeter // at least
)

// panels are several maps as one picture.
type panels struct {
	title string
	maps  []*HeatMap
}

// Panels puts maps with few cells, whose titles say what they are of, into one picture; others have
// one each.
func Panels(title string, maps []*HeatMap) (all []Map) {
	if len(maps) == 0 {
		return nil
	}
	if len(maps) > 1 && len(maps[0].XValues) <= mostPanelCells && len(maps[0].YValues) <= mostPanelCells {
		return []Map{&panels{title, maps}}
	}
	for _, m := range maps {
		m.Title = strings.TrimSuffix(title+", "+m.Title, ", ")
		all = append(all, m)
	}
	return all
}

// Heading is the title.
func (p *panels) Heading() string { return p.title }

// Draw renders the maps as PNG and SVG, with a caption below them.
func (p *panels) Draw(rows []table.Row, caption string) (png, svg []byte, err error) {
	pic, err := p.picture(rows, caption)
	if err != nil {
		return nil, nil, err
	}
	return renderBoth(pic.width, pic.height, pic.render)
}

// SVG renders the maps without the PNG.
func (p *panels) SVG(rows []table.Row, caption string) ([]byte, error) {
	pic, err := p.picture(rows, caption)
	if err != nil {
		return nil, err
	}
	return renderSVG(pic.width, pic.height, pic.render)
}

// panelsPicture is panels with their bar of colours, title and caption.
type panelsPicture struct {
	maps                []*plot.Plot
	bar                 *plot.Plot
	columns             int
	title, caption      string
	head                draw.TextStyle
	sty                 draw.TextStyle
	each                vg.Point // size of a panel
	beside, below, over vg.Length
	width, height       vg.Length
}

// picture lays the panels out.
func (p *panels) picture(rows []table.Row, caption string) (*panelsPicture, error) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	var kept []*HeatMap
	for _, m := range p.maps {
		if m.find(rows) == nil { // else it has no rows
			kept = append(kept, m)
			lowest, highest = min(lowest, m.lowest), max(highest, m.highest)
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("no rows")
	}
	pic := &panelsPicture{}
	columns, lines := len(kept[0].XValues), len(kept[0].YValues)
	cells := vg.Point{X: max(panelWidth, panelCell*vg.Length(columns)), Y: max(2*panelCell, 0.8*panelCell*vg.Length(lines))}
	var extra, left vg.Length
	for _, m := range kept {
		if m.lowest, m.highest, m.gap = lowest, highest, 0; highest == lowest {
			m.gap = max(math.Abs(highest)/2, 1)
		}
		main, bar, err := m.plots()
		if err != nil {
			return nil, err
		}
		m.fitFigures(main, cells)
		up, beside := m.placesIn(main, cells)
		extra, left = max(extra, up), max(left, beside)
		main.X.Label.Text, main.Y.Label.Text = fit(main.X.Label.TextStyle, main.X.Label.Text, cells.X, 1), fit(main.Y.Label.TextStyle, main.Y.Label.Text, cells.Y+extra+vg.Centimeter, 1)
		main.Title.Text = fit(main.X.Tick.Label, m.Title, cells.X+left, titleLines)
		main.Title.TextStyle.Font.Size, main.Title.Padding = vg.Points(12), vg.Points(margin/2)
		pic.maps, pic.bar = append(pic.maps, main), bar
	}
	sty := pic.bar.Y.Tick.Label
	widest := vg.Length(0)
	for _, t := range pic.bar.Y.Tick.Marker.Ticks(lowest-kept[0].gap, highest+kept[0].gap) {
		widest = max(widest, sty.Width(t.Label))
	}
	pic.beside = max(3*vg.Centimeter, 2*vg.Centimeter+widest)
	titles := vg.Length(0)
	for _, m := range pic.maps {
		titles = max(titles, m.Title.TextStyle.Rectangle(m.Title.Text).Size().Y)
	}
	pic.each = vg.Point{X: cells.X + left + 1.3*vg.Centimeter, Y: cells.Y + extra + titles + 1.9*vg.Centimeter}
	pic.columns = max(1, min(int((panelsWidth-pic.beside)/pic.each.X), len(kept)))
	if len(kept) == 4 && pic.columns == 3 {
		pic.columns = 2
	}
	pic.width = vg.Length(pic.columns)*pic.each.X + pic.beside + vg.Points(2*margin)
	pic.head = newPlot().Title.TextStyle
	pic.head.XAlign, pic.head.YAlign = draw.XCenter, draw.YTop
	pic.title = fit(pic.head, p.title, pic.width-vg.Points(4*margin), titleLines)
	pic.over = pic.head.Rectangle(pic.title).Size().Y + vg.Points(margin)
	pic.sty = sty
	pic.sty.XAlign, pic.sty.YAlign, pic.sty.Font.Size = draw.XLeft, draw.YBottom, vg.Points(captionFont)
	pic.caption = fit(pic.sty, caption, pic.width-vg.Points(2*margin), captLines)
	pic.below = pic.sty.Rectangle(pic.caption).Size().Y + vg.Points(margin)
	down := (len(pic.maps) + pic.columns - 1) / pic.columns
	pic.height = vg.Length(down)*pic.each.Y + pic.over + pic.below + vg.Points(2*margin)
	return pic, nil
}

// render draws the picture.
func (p *panelsPicture) render(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
	c.FillText(p.sty, c.Min, p.caption)
	c.FillText(p.head, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: c.Max.Y}, p.title)
	for i, m := range p.maps {
		x, y := c.Min.X+vg.Length(i%p.columns)*p.each.X, c.Max.Y-p.over-vg.Length(i/p.columns+1)*p.each.Y
		at := c
		at.Rectangle = vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + p.each.X - vg.Points(margin), Y: y + p.each.Y - vg.Points(margin)}}
		m.Draw(at)
	}
	p.bar.Draw(draw.Crop(c, c.Size().X-p.beside+vg.Points(margin), 0, p.below, -p.over))
}
