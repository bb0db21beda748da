// Package readme keeps the outputs in README.md and docs equal to what the programs print.
package readme

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in the documents")

// documents are those that show outputs.
var documents = []string{"README.md", "docs/wire.md"}

// block is a command with its output: <!-- run: rdmasim list; lines 1-9 -->, then a
// fenced text. "last 9" are the last lines.
var block = regexp.MustCompile("(?s)<!-- run: ([^;>]+?)(?:; (lines|last) ([0-9-]+))? -->\n```\n(.*?)```\n")

// file is a file that commands of the same document read: <!-- file: a.yaml -->, then a
// fenced text.
var file = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```\\w*\n(.*?)```\n")

// stamp is the commit in a version, which a build from a clone has.
var stamp = regexp.MustCompile(`(rdmasim 0\.\d+\.\d+)\+[0-9a-f]+`)

func TestGoldenReadme(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("runs the whole suite; make test does")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./cmd/...")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range documents {
		t.Run(name, func(t *testing.T) { document(t, bin, name) })
	}
}

// document compares, or rewrites, what one document shows.
func document(t *testing.T, bin, name string) {
	path, dir := filepath.Join("../..", name), t.TempDir()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range file.FindAllSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, string(m[1])), m[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	got := block.ReplaceAllFunc(text, func(b []byte) []byte {
		runs++
		m := block.FindSubmatch(b)
		out := run(t, bin, dir, string(m[1]), string(m[2]), string(m[3]))
		if !bytes.Equal(out, m[4]) && !*update {
			t.Errorf("%s shows for %s:\n%s\nit prints:\n%s\nmake golden rewrites it", name, m[1], m[4], out)
		}
		head := b[:bytes.Index(b, []byte("```\n"))+4]
		return append(append(bytes.Clone(head), out...), "```\n"...)
	})
	if runs == 0 {
		t.Fatalf("%s shows no output", name)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run is what a command prints: all, or the lines that are asked for.
func run(t *testing.T, bin, dir, line, which, lines string) []byte {
	t.Helper()
	args := strings.Fields(line)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, dir
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stderr.Bytes())
	}
	out := stamp.ReplaceAllString(stdout.String(), "$1")
	if which == "" {
		return []byte(out)
	}
	all := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	all[len(all)-1] += "\n"
	from, to, _ := strings.Cut(lines, "-")
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	if which == "last" {
		a, b = len(all)-a+1, len(all)
	}
	if a < 1 || b > len(all) || a > b {
		t.Fatalf("%s printed %d lines, not %s %s", line, len(all), which, lines)
	}
	return []byte(strings.Join(all[a-1:b], ""))
}
