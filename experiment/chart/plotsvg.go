package chart

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas draws texts as the outlines of their letters. A viewer that lacks the font that was
// measured would take a wider one, and not all of them keep to textLength. Each text is there as a
// text too, which nobody sees, for those who search it, copy it or have it read to them.
type svgCanvas struct {
	*vgsvg.Canvas
	texts    []string // as they are to stand in the file
	fonts    []*sfnt.Font
	ids      map[letter]string // of outlines
	outlines strings.Builder
}

type letter struct {
	font  *sfnt.Font
	glyph sfnt.GlyphIndex
}

func newSVG(width, height vg.Length) *svgCanvas {
	return &svgCanvas{Canvas: vgsvg.New(width, height), ids: map[letter]string{}}
}

// FillString draws a text.
func (c *svgCanvas) FillString(f plotfont.Face, pt vg.Point, s string) {
	c.texts = append(c.texts, c.outlined(f, pt, s))
	c.Canvas.FillString(f, pt, "") // keeps the place, and has the colour
}

var (
	placeOfText  = regexp.MustCompile(`(?s)<text .*?</text>\n`)
	colourOfText = regexp.MustCompile(`;fill:(#[0-9A-F]{6})"`)
)

// bytes is the picture. Its images fill the room that they are given, as on paper; texts cannot
// hold their mark, since < is escaped there.
func (c *svgCanvas) bytes() ([]byte, error) {
	var raw bytes.Buffer
	if _, err := c.WriteTo(&raw); err != nil {
		return nil, err
	}
	// vgsvg calls its PNG data a JPEG, which librsvg then does not draw.
	images := strings.NewReplacer("<image ", `<image preserveAspectRatio="none" `, "data:image/jpg;", "data:image/png;")
	head, body, _ := strings.Cut(images.Replace(raw.String()), "<g ")
	n := -1
	body = placeOfText.ReplaceAllStringFunc(body, func(place string) string {
		n++
		if m := colourOfText.FindStringSubmatch(place); m != nil {
			return strings.Replace(c.texts[n], "<g ", `<g fill="`+m[1]+`" `, 1)
		}
		return c.texts[n]
	})
	return fmt.Appendf(nil, "%s<defs>\n%s</defs>\n<g %s", head, c.outlines.String(), body), nil
}

// othersLetters is how large letters are that the font lacks, as a part of the others: the room of
// one, which is that of the box for unknown letters, is then enough for those as wide as they are
// high.
const othersLetters = 0.75

// outlined is a text as SVG: its outlines are placed in units of the font, with y upwards like
// everything in the file.
func (c *svgCanvas) outlined(f plotfont.Face, pt vg.Point, s string) string {
	p := letterPen{c: c, f: f, em: fixed.Int26_6(f.Face.UnitsPerEm())}
	size := f.Font.Size.Points()
	fmt.Fprintf(&p.out, `<g transform="translate(%.5g,%.5g)"><text textLength="%.5g" lengthAdjust="spacingAndGlyphs" transform="scale(1,-1)" font-family="Liberation Serif, serif" font-size="%.5g" fill-opacity="0">%s</text>`,
		pt.X.Points(), pt.Y.Points(), f.Width(s).Points(), size, html.EscapeString(s))
	fmt.Fprintf(&p.out, `<g transform="scale(%.8g)">`, size/float64(p.em))
	for _, r := range s {
		p.letter(r)
	}
	p.others()
	p.out.WriteString("</g></g>\n")
	return p.out.String()
}

// letterPen draws the letters of a text where the width of the text, as it was measured, has them.
type letterPen struct {
	c       *svgCanvas
	f       plotfont.Face
	em      fixed.Int26_6
	buf     sfnt.Buffer
	out     strings.Builder
	x       fixed.Int26_6
	before  sfnt.GlyphIndex // 0: none
	strange []rune          // letters before x that the font lacks
	from    fixed.Int26_6   // where they begin
}

func (p *letterPen) letter(r rune) {
	glyph, _ := p.f.Face.GlyphIndex(&p.buf, r)
	if p.before != 0 {
		kern, _ := p.f.Face.Kern(&p.buf, p.before, glyph, p.em, font.HintingNone) // 0 if there is none
		p.x += kern
	}
	if glyph != 0 && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common) {
		p.others()
		p.c.use(&p.out, p.f, glyph, p.x)
	} else {
		if len(p.strange) == 0 {
			p.from = p.x
		}
		p.strange = append(p.strange, r)
	}
	advance, _ := p.f.Face.GlyphAdvance(&p.buf, glyph, p.em, font.HintingNone)
	p.x, p.before = p.x+advance, glyph
}

// others leaves letters to the viewer's fonts that the font lacks, or of scripts that want more
// than letters side by side.
func (p *letterPen) others() {
	if len(p.strange) == 0 {
		return
	}
	fmt.Fprintf(&p.out, `<text x="%d" transform="scale(1,-1)" font-size="%d" aria-hidden="true">%s</text>`, p.from, int(othersLetters*float64(p.em)), html.EscapeString(string(p.strange)))
	p.strange = p.strange[:0]
}

// use places a letter, whose outline the file has once. Its id is the same in all pictures of a
// page that have one font.
func (c *svgCanvas) use(b *strings.Builder, f plotfont.Face, glyph sfnt.GlyphIndex, x fixed.Int26_6) {
	k := letter{f.Face, glyph}
	id, known := c.ids[k]
	if !known {
		if !slices.Contains(c.fonts, f.Face) {
			c.fonts = append(c.fonts, f.Face)
		}
		if path := outline(f, glyph); path != "" {
			id = fmt.Sprintf("%c%d", 'a'+slices.Index(c.fonts, f.Face), glyph)
			fmt.Fprintf(&c.outlines, "<path id=\"%s\" d=\"%s\"/>\n", id, path)
		}
		c.ids[k] = id
	}
	if id != "" { // a space has no outline
		fmt.Fprintf(b, `<use xlink:href="#%s" x="%d"/>`, id, x)
	}
}

// outline is the path of a letter in units of the font, each point relative to the one before.
func outline(f plotfont.Face, glyph sfnt.GlyphIndex) string {
	segments, err := f.Face.LoadGlyph(nil, glyph, fixed.Int26_6(f.Face.UnitsPerEm()), nil)
	if err != nil {
		return ""
	}
	var b strings.Builder
	var at, start fixed.Point26_6
	for i, s := range segments {
		points := 1
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			if i > 0 {
				b.WriteByte('z')
				at = start
			}
			b.WriteByte('m')
			start = s.Args[0]
		case sfnt.SegmentOpLineTo:
			b.WriteByte('l')
		case sfnt.SegmentOpQuadTo:
			b.WriteByte('q')
			points = 2
		case sfnt.SegmentOpCubeTo:
			b.WriteByte('c')
			points = 3
		}
		for k, p := range s.Args[:points] {
			if k > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d %d", p.X-at.X, at.Y-p.Y)
		}
		at = s.Args[points-1]
	}
	if b.Len() > 0 {
		b.WriteByte('z')
	}
	return b.String()
}
