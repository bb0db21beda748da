package experiment

import (
	"bytes"
	"fmt"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// fit breaks s into lines that are not wider than width. What needs more lines loses its middle: names that are
// long mostly differ at their ends.
func fit(sty draw.TextStyle, s string, width vg.Length, lines int) string {
	if t, ok := broken(sty, s, width, lines); ok {
		return t
	}
	r := []rune(s)
	best, low, high := "…", 0, len(r)-1 // characters that are kept
	for low <= high {
		keep := (low + high) / 2
		t, ok := broken(sty, string(r[:(keep+1)/2])+"…"+string(r[len(r)-keep/2:]), width, lines)
		if !ok {
			high = keep - 1
			continue
		}
		best, low = t, keep+1
	}
	return best
}

// broken breaks s at spaces, and inside words that are wider than a line; it reports whether lines are enough.
func broken(sty draw.TextStyle, s string, width vg.Length, lines int) (string, bool) {
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		next := word
		if line != "" {
			next = line + " " + word
		}
		if sty.Width(next) <= width {
			line = next
			continue
		}
		if line != "" {
			out = append(out, line)
		}
		line = ""
		for _, r := range word {
			if line != "" && sty.Width(line+string(r)) > width {
				out = append(out, line)
				line = ""
			}
			line += string(r)
			if len(out) > lines {
				return "", false
			}
		}
	}
	out = append(out, line)
	return strings.Join(out, "\n"), len(out) <= lines
}

// svgCanvas notes how wide each text is in the font that was measured, so that a viewer with another font gives it the
// same room.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString draws a text.
func (c *svgCanvas) FillString(f font.Face, pt vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, pt, s)
}

// bytes is the picture, with the width of each text. Its images fill the room that they are given, as on paper; texts cannot
// hold their mark, since < is escaped there.
func (c *svgCanvas) bytes() ([]byte, error) {
	var raw, out bytes.Buffer
	if _, err := c.WriteTo(&raw); err != nil {
		return nil, err
	}
	const element = "<text "
	for i, part := range bytes.Split(raw.Bytes(), []byte(element)) {
		if i > 0 {
			fmt.Fprintf(&out, `%stextLength="%.5g" lengthAdjust="spacingAndGlyphs" `, element, c.widths[i-1].Points())
		}
		out.Write(part)
	}
	// vgsvg calls its PNG data a JPEG, which librsvg then does not draw.
	images := strings.NewReplacer("<image ", `<image preserveAspectRatio="none" `, "data:image/jpg;", "data:image/png;")
	return []byte(images.Replace(out.String())), nil
}
