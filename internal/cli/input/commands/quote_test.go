package commands

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWordsAreThoseOfTheShell(t *testing.T) {
	for _, words := range [][]string{{"rdmasim", "exec", "--"}, {"a b", "", "it's", "'", "''", `\'`, "$(x)", "a\nb", "--set", "x=1;y"}} {
		if got, ok := Words(Shell(words)); !ok || !slices.Equal(got, words) {
			t.Errorf("%q became %q, %t", words, got, ok)
		}
	}
	for _, text := range []string{"", "a; b", "a $(b)", "a | b", "a 'b", "a\nb", "a  b", "a\tb", "`a`", "a &"} {
		if got, ok := Words(text); ok {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Whatever stands behind the program is the program's.
func TestCommandUpToTheProgram(t *testing.T) {
	for want, tt := range map[string]struct {
		line    []string
		program int
	}{
		"rdmasim exec --devices 2 --":    {[]string{"rdmasim", "exec", "--devices", "2", "env", "X=1", "conform"}, 3},
		"rdmasim exec --":                {[]string{"rdmasim", "exec", "sh", "-c", "conform", "--", "hello"}, 5},
		"'/my tools/rdmasim' exec -v --": {[]string{"/my tools/rdmasim", "exec", "-v", "--", "conform"}, 1},
		"--":                             {[]string{"test"}, 2},
	} {
		if got := UpTo(tt.line, tt.program); got != want {
			t.Errorf("%q of %q, want %q", got, tt.line, want)
		}
	}
}

// A line gives the words back that it was made of; a text that is no such line gives none.
func TestWordsUndoesShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		if got, ok := Words(Shell(words)); !ok || !slices.Equal(got, words) {
			t.Fatalf("%q: %q, %t", words, got, ok)
		}
	})
	for _, line := range []string{"", " ", "a  b", "a ", "a;b", "$(a)", "`a`", "a\nb", `"a"`, `a\ b`, "'a", "a'b'", "''a", "~", "a>b", "'a'\\", "#a", "{a,b}"} {
		if got, ok := Words(line); ok {
			t.Errorf("%q: %q", line, got)
		}
	}
}
