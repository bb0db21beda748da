package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each command that help shows has a manual page, and groff formats the pages without a complaint.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	var out, errs strings.Builder
	if status := program.Execute(t.Context(), []string{"man", dir}, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s%s", status, &out, &errs)
	}
	for _, c := range newRoot(io.Discard, io.Discard).Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		file := filepath.Join(dir, "conform-"+c.Name()+".1")
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), ".SH SYNOPSIS\n.B conform "+c.Name()) {
			t.Errorf("%s: %v\n%s", c.Name(), err, text)
		}
		if groff, err := exec.LookPath("groff"); err == nil {
			if out, err := exec.Command(groff, "-man", "-ww", "-z", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
	}
}

// The shell completes commands, cases, areas, profiles and targets.
func TestShellCompletion(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"sho"}, "show\t"}, {[]string{"show", "RC-0"}, "RC-013\n"}, {[]string{"show", "RC-013", "UD-00"}, "UD-001\n"}, {[]string{"list", "X"}, "XRC\t"},
		{[]string{"--profile", "generic"}, "generic-roce\n"}, {[]string{"run", "--target", ""}, "sim,hw\n"},
		{[]string{"--label-filter", "RC-01"}, "RC-013\n"}, {[]string{"run", "--label-filter", "(RC || OD"}, "(RC || ODP\n"}, {[]string{"--label-filter", "RC && !ta"}, "RC && !tap\n"},
		{[]string{"list", "--format", ""}, "json\n"},
	} {
		var out, errs strings.Builder
		if status := program.Execute(t.Context(), append([]string{"__complete"}, c.words...), &out, &errs); status != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: status %d, no %q in:\n%s%s", c.words, status, c.want, &out, &errs)
		}
	}
}

// Commands stand in help by use, and the topics are pages of text.
func TestHelpIsOrderedByUse(t *testing.T) {
	var names []string
	for _, c := range newRoot(io.Discard, io.Discard).Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got, "run list show diff ") || !strings.HasSuffix(got, " completion help") && !strings.HasSuffix(got, " help completion") {
		t.Error(got)
	}
	var out, errs strings.Builder
	if status := program.Execute(t.Context(), []string{"help", "outcomes"}, &out, &errs); status != 0 || !strings.Contains(out.String(), "pass-deviation") || strings.Contains(out.String(), "Usage:") {
		t.Errorf("status %d: %s%s", status, &out, &errs)
	}
}
