package chart

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// lettersOf has, for each text of a picture, what it says, how wide it is and its letters.
var lettersOf = regexp.MustCompile(`<text textLength="([0-9.]+)" lengthAdjust="spacingAndGlyphs" [^>]*fill-opacity="0">([^<]*)</text><g transform="scale\(([0-9.e-]+)\)">(.*)</g></g>`)

// A viewer draws the letters that were measured whatever fonts it has, and whether or not it knows
// textLength.
func TestPlotTextsAreOutlines(t *testing.T) {
	p, rows, caption := hardPlots()["long names"]()
	h, cells := hardMaps()["profiles"]()
	for name, draw := range map[string]func() (png, svg []byte, err error){
		"plot": func() (png, svg []byte, err error) { return p.Draw(rows, caption) },
		"map":  func() (png, svg []byte, err error) { return h.Draw(cells, caption) },
	} {
		_, svg, err := draw()
		if err != nil {
			t.Fatal(err)
		}
		texts := lettersOf.FindAllSubmatch(svg, -1)
		if all := strings.Count(string(svg), "<text "); all < 8 || len(texts) != all {
			t.Errorf("%s: %d texts, of which %d are outlines", name, all, len(texts))
		}
		for _, m := range texts {
			width, _ := strconv.ParseFloat(string(m[1]), 64)
			scale, _ := strconv.ParseFloat(string(m[3]), 64)
			letters := strings.ReplaceAll(html.UnescapeString(string(m[2])), " ", "")
			uses := regexp.MustCompile(`<use xlink:href="#(\w+)" x="([0-9]+)"/>`).FindAllStringSubmatch(string(m[4]), -1)
			if len(uses) != len([]rune(letters)) {
				t.Fatalf("%s: %q has %d letters", name, m[2], len(uses))
			}
			for _, u := range uses {
				if x, _ := strconv.ParseFloat(u[2], 64); x*scale >= width || strings.Count(string(svg), fmt.Sprintf(`<path id="%s" `, u[1])) != 1 {
					t.Errorf("%s: %q: the letter %s at %s is beyond %g, or has no outline of its own", name, m[2], u[1], u[2], width)
				}
			}
		}
	}
}

// Letters that the font of the pictures lacks are those of the viewer's, with the room that was
// measured.
func TestLettersThatTheFontLacks(t *testing.T) {
	c := newSVG(100, 100)
	sty := newPicture().legend.TextStyle
	got := c.outlined(plot.DefaultTextHandler.Cache().Lookup(sty.Font, sty.Font.Size), vg.Point{}, "a & 測試 b")
	if !strings.Contains(got, `aria-hidden="true">測試</text>`) || strings.Count(got, "<use ") != 3 {
		t.Error(got)
	}
	if each := sty.Width("測試") / 2; each < othersLetters*sty.Font.Size {
		t.Errorf("a letter has %g, and needs %g", each, othersLetters*sty.Font.Size)
	}
}

// A letter's outline has y upwards, as the rest of a picture, and is closed.
func TestOutline(t *testing.T) {
	face := plot.DefaultTextHandler.Cache().Lookup(newPicture().legend.TextStyle.Font, 10)
	glyph, err := face.Face.GlyphIndex(nil, 'l')
	if err != nil {
		t.Fatal(err)
	}
	path := outline(face, glyph)
	if !regexp.MustCompile(`^m[0-9]+ [0-9]+l.*z$`).MatchString(path) {
		t.Error(path)
	}
	if space, _ := face.Face.GlyphIndex(nil, ' '); outline(face, space) != "" {
		t.Error("a space has an outline")
	}
}
