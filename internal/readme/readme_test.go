// Package readme keeps README.md and docs equal to what the programs print and draw.
package readme

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	update = flag.Bool("update", false, "rewrite the outputs and pictures in the documents")
	all    = flag.Bool("all", false, "run the long commands too, as -update does")
)

// long are commands that take more than a minute; make soak runs them. A document that shows one
// shows a shorter form of it too.
var long = []string{"rdmasim run xrc --set scenario=long-server"}

func left(line string) bool { return slices.Contains(long, line) && !*all && !*update }

const root = "../.."

// documents are those that show outputs or pictures.
var documents = []string{"README.md", "docs/results.md", "docs/validate.md", "docs/fidelity.md", "docs/wire.md", "docs/questions/odp-cost.md", "docs/questions/xrc-lifetime.md", "docs/questions/o2iblnd-completions.md", "docs/questions/peer-failure.md", "docs/questions/loss-recovery.md"}

// output is a command with what it prints: <!-- run: rdmasim list; lines 1-4,9 -->, then a fenced
// text. "last 9" are the last nine lines, "last 9-8" the first two of these. The lines are chosen
// from each of several commands with && between them. "notes REGEXP", alone or behind lines, are
// the notes below the tables whose beginning it matches: lines that come and go above them do not
// move it.
var output = regexp.MustCompile("(?s)<!-- run: ([^;>]+?)(?:; (lines|last) ([0-9,-]+))?(?:; notes ([^\n]+?))? -->\n```\n(.*?)```\n")

// picture is a command with a file that it draws into its folder DIR:
// <!-- draws: rdmasim run uar-sharing -o DIR -->, then the picture, whose name the file has.
var picture = regexp.MustCompile(`<!-- draws: ([^>]+?) -->\n!\[[^\]]*\]\(([^)]+)\)`)

// file is a file that commands of the same document read: <!-- file: a.yaml -->, then a
// fenced text.
var file = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```\\w*\n(.*?)```\n")

// stamp is the commit in a version, which a build from a clone has.
var stamp = regexp.MustCompile(`(rdmasim 0\.\d+\.\d+)\+[0-9a-f]+`)

// took is how long a run of the suite took, which differs from run to run.
var took = regexp.MustCompile(`(?m)^((?:ok|FAILED): .* cases on .*) \([0-9a-zµ.]+\)$`)

func TestGoldenReadme(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("runs the whole suite; make test does")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range long {
		if left(line) {
			t.Run(line, func(t *testing.T) { t.Skip("takes more than a minute: make soak runs it") })
		}
	}
	seen := outputs{printed: map[string]func() (string, error){}}
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document(t, bin, name, &seen)
		})
	}
}

// outputs are what commands printed that read no files of a document. Each runs once.
type outputs struct {
	mu      sync.Mutex
	printed map[string]func() (string, error)
}

// of is what a command printed, which run starts if it is the first that wants it.
func (o *outputs) of(line string, run func() (string, error)) (string, error) {
	o.mu.Lock()
	printed := o.printed[line]
	if printed == nil {
		printed = sync.OnceValues(run)
		o.printed[line] = printed
	}
	o.mu.Unlock()
	return printed()
}

// document compares, or rewrites, what one document shows.
func document(t *testing.T, bin, name string, seen *outputs) {
	path, dir := filepath.Join(root, name), t.TempDir()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := file.FindAllSubmatch(text, -1)
	for _, m := range files {
		if err := os.WriteFile(filepath.Join(dir, string(m[1])), m[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !output.Match(text) {
		t.Fatalf("%s shows no output", name)
	}
	drawn := map[string]string{} // the folders of commands, which may draw several pictures, and print what they do without them
	for _, m := range picture.FindAllSubmatch(text, -1) {
		if line := string(m[1]); drawn[line] == "" && !left(strings.TrimSuffix(line, " -o DIR")) {
			drawn[line] = t.TempDir()
			// A document before may have wanted what it prints: then it runs again, for its
			// pictures.
			ran := false
			draws := func() (string, error) {
				ran = true
				return run(bin, dir, line, drawn[line])
			}
			_, err := seen.of(strings.TrimSuffix(line, " -o DIR"), draws)
			if err == nil && !ran {
				_, err = draws()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	got := output.ReplaceAllFunc(text, func(b []byte) []byte {
		m := output.FindSubmatch(b)
		if left(string(m[1])) {
			return b
		}
		var out []byte
		for line := range strings.SplitSeq(string(m[1]), " && ") {
			runs := func() (string, error) { return run(bin, dir, line, "") }
			var printed string
			if slices.ContainsFunc(files, func(f [][]byte) bool { return strings.Contains(line, string(f[1])) }) {
				printed, err = runs()
			} else {
				printed, err = seen.of(line, runs)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(m[2]) > 0 || len(m[4]) == 0 {
				out = append(out, choose(t, line, printed, string(m[2]), string(m[3]))...)
			}
			if len(m[4]) > 0 {
				out = append(out, notes(t, line, printed, string(m[4]))...)
			}
		}
		if !bytes.Equal(out, m[5]) && !*update {
			t.Errorf("%s shows for %s:\n%s\nit prints:\n%s\nmake golden rewrites it", name, m[1], m[5], out)
		}
		head := b[:bytes.Index(b, []byte("```\n"))+4]
		return append(append(bytes.Clone(head), out...), "```\n"...)
	})
	for _, m := range picture.FindAllSubmatch(text, -1) {
		if drawn[string(m[1])] == "" {
			continue // left out
		}
		draw(t, drawn[string(m[1])], string(m[1]), filepath.Join(filepath.Dir(path), string(m[2])))
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// draw compares, or rewrites, one picture, which a command has drawn.
func draw(t *testing.T, dir, line, path string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		t.Fatalf("%s did not draw %s: %v", line, filepath.Base(path), err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, got) {
		t.Errorf("%s is not what %s draws (%v): make golden rewrites it", path, line, err)
	}
}

// run is what a command prints, which draws into a folder in place of DIR. It must end with status
// 0.
func run(bin, dir, line, drawn string) (string, error) {
	args := strings.Fields(line)
	if drawn != "" {
		args[slices.Index(args, "DIR")] = drawn
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, dir
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", line, err, stdout.Bytes(), stderr.Bytes())
	}
	return took.ReplaceAllString(stamp.ReplaceAllString(stdout.String(), "$1"), "$1"), nil
}

// choose is an output, or those of its lines that are asked for.
func choose(t *testing.T, line, out, which, lines string) []byte {
	t.Helper()
	if which == "" {
		return []byte(out)
	}
	all := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	all[len(all)-1] += "\n"
	var chosen []byte
	for part := range strings.SplitSeq(lines, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, _ := strconv.Atoi(from)
		b, _ := strconv.Atoi(to)
		switch {
		case which == "last":
			a, b = len(all)-a+1, len(all)-max(b, 1)+1
		case !isRange:
			b = a
		}
		if a < 1 || b > len(all) || a > b {
			t.Fatalf("%s printed %d lines, not %s %s", line, len(all), which, lines)
		}
		if within(all, a-1) {
			t.Errorf("%s: %s %s begins within a note, at %q: say which notes instead, with their beginning", line, which, lines, all[a-1])
		}
		chosen = append(chosen, strings.Join(all[a-1:b], "")...)
	}
	return chosen
}

// goesOn says whether a line may be a later one of a note, which is indented by two.
func goesOn(line string) bool {
	return len(line) > 2 && strings.HasPrefix(line, "  ") && line[2] != ' '
}

// within says whether line i belongs to a note that begins before it.
func within(all []string, i int) bool {
	for ; i > 0 && goesOn(all[i]); i-- {
		if before := all[i-1]; !strings.HasPrefix(before, " ") {
			return before != "\n"
		}
	}
	return false
}

// notes are the notes of an output whose beginning an expression matches.
func notes(t *testing.T, line, out, which string) (chosen []byte) {
	t.Helper()
	begins := regexp.MustCompile("^(?:" + which + ")")
	taken := false
	for l := range strings.Lines(out) {
		if !goesOn(l) {
			taken = begins.MatchString(l)
		}
		if taken {
			chosen = append(chosen, l...)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("%s prints no note that begins with %q", line, which)
	}
	return chosen
}

// link is a link or picture in a document.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Each link of README, CONTRIBUTING and docs leads to a file of the tree, and to a heading of it,
// each page and picture in docs is linked from another page, and README is short enough to be read
// to its end.
func TestDocuments(t *testing.T) {
	names, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("docs: %v, %v", names, err)
	}
	questions, _ := filepath.Glob(root + "/docs/questions/*.md")
	names = append(names, questions...)
	linked := map[string]bool{}
	for _, path := range append(names, root+"/README.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); filepath.Base(path) == "README.md" && n >= 150 {
			t.Errorf("README.md has %d lines; long outputs belong to docs/results.md", n)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			to, heading, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := filepath.Join(filepath.Dir(path), to)
			if to == "" {
				at = path
			}
			page, err := os.ReadFile(at)
			if info, serr := os.Stat(at); serr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s links to %s, which is not there", path, to)
			}
			if heading != "" && !slices.Contains(anchors(page), heading) {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
			if to == "" {
				continue
			}
			linked[filepath.Clean(at)] = true
		}
	}
	pictures, _ := filepath.Glob(root + "/docs/*.svg")
	more, _ := filepath.Glob(root + "/docs/questions/*.svg")
	for _, p := range slices.Concat(pictures, more, names) {
		if !linked[filepath.Clean(p)] {
			t.Errorf("no page links to %s", p)
		}
	}
}

var (
	headingLine = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors returns the names by which links reach the headings of a page.
func anchors(page []byte) (names []string) {
	for _, m := range headingLine.FindAllSubmatch(page, -1) {
		names = append(names, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(string(m[1])), ""), " ", "-"))
	}
	return names
}

// TestNotes: notes are found by their beginning, with all of their lines, and lines that begin
// within one are known.
func TestNotes(t *testing.T) {
	const out = "  a  b\n  1  2\n\nfirst: so\n  and so\nsecond (3): yes\n  no\n  maybe\nthird\n"
	if got := string(notes(t, "x", out, `second \(\d\)|third`)); got != "second (3): yes\n  no\n  maybe\nthird\n" {
		t.Errorf("%q", got)
	}
	all := strings.SplitAfter(out, "\n")
	for i, want := range []bool{false, false, false, false, true, false, true, true, false} {
		if within(all, i) != want {
			t.Errorf("line %d: %v", i+1, !want)
		}
	}
}
