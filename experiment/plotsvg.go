package experiment

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

// svgCanvas draws texts as the outlines of their letters. A viewer that lacks the font that was measured would take a wider
// one, and not all of them keep to textLength. Each text is there as a text too, which nobody sees, for those who search it,
// copy it or have it read to them.
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

// bytes is the picture. Its images fill the room that they are given, as on paper; texts cannot hold their mark, since < is
// escaped there.
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

// othersLetters is how large letters are that the font lacks, of the others: the room of one, which is that of the box for
// unknown letters, is then enough for those as wide as they are high.
const othersLetters = 0.75

// outlined is a text as SVG: its outlines are placed in units of the font, with y upwards like everything in the file.
func (c *svgCanvas) outlined(f plotfont.Face, pt vg.Point, s string) string {
	var b, strange strings.Builder
	em, size := fixed.Int26_6(f.Face.UnitsPerEm()), f.Font.Size.Points()
	fmt.Fprintf(&b, `<g transform="translate(%.5g,%.5g)"><text textLength="%.5g" lengthAdjust="spacingAndGlyphs" transform="scale(1,-1)" font-family="Liberation Serif, serif" font-size="%.5g" fill-opacity="0">%s</text>`,
		pt.X.Points(), pt.Y.Points(), f.Width(s).Points(), size, html.EscapeString(s))
	fmt.Fprintf(&b, `<g transform="scale(%.8g)">`, size/float64(em))
	var x, from fixed.Int26_6
	viewers := func() { // draws letters that the font lacks
		if strange.Len() > 0 {
			fmt.Fprintf(&b, `<text x="%d" transform="scale(1,-1)" font-size="%d" aria-hidden="true">%s</text>`, from, int(othersLetters*float64(em)), html.EscapeString(strange.String()))
			strange.Reset()
		}
	}
	var buf sfnt.Buffer
	var before sfnt.GlyphIndex
	for i, r := range s {
		glyph, _ := f.Face.GlyphIndex(&buf, r)
		if i > 0 {
			kern, _ := f.Face.Kern(&buf, before, glyph, em, font.HintingNone) // 0 if there is none
			x += kern
		}
		if glyph != 0 && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common) {
			viewers()
			c.use(&b, f, glyph, x)
		} else {
			if strange.Len() == 0 {
				from = x
			}
			strange.WriteRune(r)
		}
		advance, _ := f.Face.GlyphAdvance(&buf, glyph, em, font.HintingNone)
		x, before = x+advance, glyph
	}
	viewers()
	b.WriteString("</g></g>\n")
	return b.String()
}

// use places a letter, whose outline the file has once. Its id is the same in all pictures of a page that have one font.
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
