package experiment

import (
	"slices"
	"strings"
	"testing"
)

func TestRunsShareNotes(t *testing.T) {
	env := &Env{Out: &Result{}}
	env.Note("before")
	for _, x := range [][2]string{{"a", "off by 3 %"}, {"b", "lost"}, {"c", "off by 4 %"}, {"d", "lost"}, {strings.Repeat("e", 100), "lost"}, {"f", "alone"}} {
		env.NoteOf(x[0], x[1])
	}
	env.Note("after")
	want := []string{"before", "a; c: off by 3 % (Figures differ from run to run; these come from a.)", "b; d and 1 more: lost", "f: alone", "after"}
	if !slices.Equal(env.Out.Notes, want) {
		t.Errorf("%q, want %q", env.Out.Notes, want)
	}
}
