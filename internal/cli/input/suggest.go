package input

import (
	"fmt"
	"strings"
)

// Suggest returns ` (did you mean "x"?)` for the choice nearest to word, or "" when
// none is near.
func Suggest(word string, choices []string) string {
	best, at := "", 1+(len(word)+1)/3
	for _, c := range choices {
		if strings.EqualFold(c, word) {
			return fmt.Sprintf(" (did you mean %q?)", c)
		}
		if d := distance(word, c); d < at || d == at && best == "" && d <= len(word)/2 {
			best, at = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is Levenshtein's, with a swap of neighbours as one step.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	prev2 := make([]int, len(rb)+1)
	prev := make([]int, len(rb)+1)
	cur := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		cur[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(rb)]
}
