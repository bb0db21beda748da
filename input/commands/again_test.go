package commands

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A line gives the words back that it was made of; a text that is no such line gives none.
func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		if got, ok := Words(Line(words)); !ok || !slices.Equal(got, words) {
			t.Fatalf("%q: %q, %t", words, got, ok)
		}
	})
	for _, line := range []string{"", " ", "a  b", "a ", "a;b", "$(a)", "`a`", "a\nb", `"a"`, `a\ b`, "'a", "a'b'", "''a", "~", "a>b", "'a'\\", "#a", "{a,b}"} {
		if got, ok := Words(line); ok {
			t.Errorf("%q: %q", line, got)
		}
	}
}
