// Package readme keeps the outputs in README.md equal to what the programs print.
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

var update = flag.Bool("update", false, "rewrite the outputs in README.md")

// block is a command with its output: <!-- run: rdmasim list; lines 1-9 -->, then a
// fenced text.
var block = regexp.MustCompile("(?s)<!-- run: ([^;>]+?)(?:; lines (\\d+)-(\\d+))? -->\n```\n(.*?)```\n")

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
	const path = "../../README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	got := block.ReplaceAllFunc(text, func(b []byte) []byte {
		runs++
		m := block.FindSubmatch(b)
		out := run(t, bin, string(m[1]), string(m[2]), string(m[3]))
		if !bytes.Equal(out, m[4]) && !*update {
			t.Errorf("README.md shows for %s:\n%s\nit prints:\n%s\nmake golden rewrites it", m[1], m[4], out)
		}
		head := b[:bytes.Index(b, []byte("```\n"))+4]
		return append(append(bytes.Clone(head), out...), "```\n"...)
	})
	if runs == 0 {
		t.Fatal("README.md shows no output")
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, bin, line, from, to string) []byte {
	t.Helper()
	args := strings.Fields(line)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, t.TempDir()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stderr.Bytes())
	}
	out := stamp.ReplaceAllString(stdout.String(), "$1")
	if from == "" {
		return []byte(out)
	}
	lines := strings.SplitAfter(out, "\n")
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	if a < 1 || b > len(lines) || a > b {
		t.Fatalf("%s printed %d lines, not %d-%d", line, len(lines), a, b)
	}
	return []byte(strings.Join(lines[a-1:b], ""))
}
