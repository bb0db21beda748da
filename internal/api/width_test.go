package api

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the width of a line of comment at most, with a tab for four.
const columns = 100

// TestCommentsAreNarrow: a line that is a comment has at most 100 columns. Directives, code and
// words that are wider themselves are left out.
func TestCommentsAreNarrow(t *testing.T) {
	eachFile(t, func(set *token.FileSet, path string, f *ast.File, text []byte) {
		lines := strings.Split(string(text), "\n")
		for _, group := range f.Comments {
			for _, c := range group.List {
				if n := set.Position(c.Pos()).Line; tooWide(lines[n-1]) {
					t.Errorf("%s:%d: a comment of more than %d columns: wrap it", path, n, columns)
				}
			}
		}
	})
}

// tooWide tells whether a line that is a comment, and prose, could be wrapped.
func tooWide(line string) bool {
	text, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
	if !ok || strings.HasPrefix(text, "\t") {
		return false
	}
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > columns && strings.Contains(strings.TrimLeft(text, " "), " ")
}

func TestTooWide(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for line, want := range map[string]bool{
		"// " + long:                              true,
		"//   - " + long:                          true,
		"// " + long[:96]:                         false,
		"\t// " + long[:96]:                       true,
		"//\t" + long:                             false,
		"//go:embed " + long:                      false,
		"x := 1 // " + long:                       false,
		"// https://" + strings.Repeat("x", 100):  false,
		"// " + strings.Repeat("µ", 90) + " a µs": false,
	} {
		if got := tooWide(line); got != want {
			t.Errorf("tooWide(%q) = %v", line, got)
		}
	}
}
