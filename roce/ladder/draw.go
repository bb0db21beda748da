package ladder

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// lost are the fates after which a frame does not arrive as it was sent.
var lost = []string{"dropped", "truncated", "corrupted"}

// Lost reports whether a fate says that the frame did not arrive.
func Lost(fate string) bool {
	return slices.ContainsFunc(lost, func(word string) bool { return strings.Contains(fate, word) })
}

// Sides are the first two nodes of a ladder: the left one is the first that sends.
func Sides(rows []Row) (left, right string) {
	for _, r := range rows {
		switch {
		case left == "":
			left, right = r.From, r.To
		case right == left && r.From != left:
			right = r.From
		}
	}
	return left, right
}

// Draw is the ladder as lines of text: the time in microseconds, the arrow between the first two
// nodes, and what the frame is. A frame between others names them.
func Draw(rows []Row) []string {
	left, right := Sides(rows)
	wide := utf8.RuneCountInString(right)
	lines := make([]string, len(rows))
	for i, r := range rows {
		shaft, tip := "--", ">"
		if Lost(r.Fate) {
			shaft, tip = "-x", " "
		}
		arrow := fmt.Sprintf("%s %s%s %-*s", left, shaft, tip, wide, right)
		switch {
		case r.From == right && r.To == left && left != right:
			tip = strings.Replace(tip, ">", "<", 1)
			shaft = map[string]string{"--": "--", "-x": "x-"}[shaft]
			arrow = fmt.Sprintf("%s %s%s %-*s", left, tip, shaft, wide, right)
		case r.From != left || r.To != right:
			arrow = fmt.Sprintf("%s %s%s %s", r.From, shaft, tip, r.To)
		}
		lines[i] = fmt.Sprintf("%12.3f us  %s  %s", float64(r.AtNs)/1e3, arrow, r.Text)
		if r.Fate != "" {
			lines[i] += "  [" + r.Fate + "]"
		}
	}
	return lines
}
