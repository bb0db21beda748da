package chart

import (
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fit breaks s into lines that are not wider than width. What needs more lines loses its middle:
// names that are long mostly differ at their ends.
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

// broken breaks s at spaces, and inside words that are wider than a line; it reports whether lines
// are enough.
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
