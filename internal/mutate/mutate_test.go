package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program prints one line for each function, so that a mutant of a function changes its line.
const program = `package main

import "fmt"

type pair struct{ a, b int }

func negate(x int) bool       { return x == 3 }
func both(x, y bool) bool     { return x && y }
func either(x, y bool) bool   { return x || y }
func below(x int) bool        { return x < 3 }
func mask(x uint8) uint8      { return x & 0xF }
func less(x, y int) int       { return x - y }
func branch(x bool) (s string) {
	s = "no"
	if x {
		s = "yes"
	}
	return s
}
func swap(x, y int) pair { return pair{a: x, b: y} }
func assigned(x, y int) (p pair) {
	p.a = x
	p.b = y
	return p
}

func main() {
	fmt.Println("negate", negate(3))
	fmt.Println("both", both(true, false), both(false, true))
	fmt.Println("either", either(true, false), either(false, true))
	fmt.Println("below", below(3))
	fmt.Println("mask", mask(0x21))
	fmt.Println("less", less(3, 1))
	fmt.Println("branch", branch(true), branch(false))
	fmt.Println("swap", swap(1, 2))
	fmt.Println("assigned", assigned(1, 2))
}
`

// module writes a module with one program and returns its folder.
func module(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{"go.mod": "module example.org/m\n\ngo 1.24\n", "cmd/p/main.go": source} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// output is what the program prints with a mutant.
func output(t *testing.T, path string, n int) []string {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "RDMASIM_MUTATION="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mutant %d: %v\n%s", n, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Each mutant changes what its own function does, as its kind says, and nothing else; asleep it
// changes nothing.
func TestMutantsChangeTheirOwnPlaceOnly(t *testing.T) {
	root := module(t, program)
	sites, sources, err := load(root, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	mutated, kept, refused, err := compile(root, "example.org/m", "./cmd/p", t.TempDir(), sites, sources, func(string) {})
	if err != nil || len(refused) > 0 {
		t.Fatalf("refused %v: %v", refused, err)
	}
	own := output(t, mutated, -1)
	want := []string{"negate true", "both false false", "either true true", "below false", "mask 1", "less 2", "branch yes no", "swap {1 2}", "assigned {1 2}"}
	if !slices.Equal(own, want) {
		t.Fatalf("asleep: %q, want %q", own, want)
	}
	got := map[string][]string{}
	for n, s := range kept {
		lines := output(t, mutated, n)
		for i, line := range lines {
			if line != own[i] {
				got[s.Kind+": "+s.Text] = append(got[s.Kind+": "+s.Text], line)
			}
		}
	}
	for key, line := range map[string]string{
		"negate: x == 3":                     "negate false",
		"constant: x == 3: 3 -> one more":    "negate false",
		"drop condition: y":                  "both true false",
		"off by one: x < 3 -> <=":            "below true",
		"constant: x < 3: 3 -> one more":     "below true",
		"wrap: x & 0xF without &":            "mask 33",
		"constant: x & 0xF: 0xF -> one more": "mask 0",
		"arithmetic: x - y -> +":             "less 4",
		"skip branch: if x never":            "branch no no",
		"force branch: if x always":          "branch yes yes",
		`skip statement: s = "yes"`:          "branch no no",
		`skip statement: s = "no"`:           "branch yes ",
		"swap: a, b":                         "swap {2 1}",
		"swap: p.a, p.b":                     "assigned {2 1}",
		"skip statement: p.b = y":            "assigned {1 0}",
	} {
		if !slices.Contains(got[key], line) {
			t.Errorf("%s: changed lines %q, want %q", key, got[key], line)
		}
		delete(got, key)
	}
	for key, lines := range got {
		if key != "drop condition: x" && key != "skip statement: p.a = x" {
			t.Errorf("%s: changed lines %q, which the test does not know", key, lines)
		}
	}
}

// What only hand-made mutants ask for, texts and panics have no mutants.
func TestWhatHasNoMutants(t *testing.T) {
	root := module(t, `package main

import "fmt"

type rule int

type unit struct{}

func (unit) breaks(rule) bool { return false }

const limit = 3

func (u unit) String() string { return fmt.Sprint(1 + len("x")) }

func main() {
	var u unit
	if u.breaks(2) {
		panic("x")
	}
	fmt.Println(u, uint8(255), limit+1)
}
`)
	sites, _, err := load(root, []string{"./..."})
	if err != nil || len(sites) != 0 {
		t.Errorf("%v, %v; want no mutants", sites, err)
	}
}

// A mutant that does not compile is left out and named; the others keep their meaning under new
// numbers.
func TestWhatDoesNotCompileIsLeftOut(t *testing.T) {
	root := module(t, program)
	sites, sources, err := load(root, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(sites, func(s site) bool { return s.Kind == "off by one" })
	bad := sites[i]
	bad.Text = "bad"
	bad.edits = []edit{{bad.edits[0].lo, bad.edits[0].hi, func(n int, _ func(lo, hi int) string) string { return fmt.Sprintf("mutation.On(%d) + 1", n) }}}
	sites = slices.Insert(sites, 2, bad)
	mutated, kept, refused, err := compile(root, "example.org/m", "./cmd/p", t.TempDir(), sites, sources, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(refused) == 0 || !slices.Contains(refused, bad.String()) || slices.ContainsFunc(kept, func(s site) bool { return s.Text == "bad" }) {
		t.Fatalf("kept %v, refused %v", kept, refused)
	}
	n := slices.IndexFunc(kept, func(s site) bool { return s.Kind == "wrap" })
	if got := output(t, mutated, n); got[4] != "mask 33" {
		t.Errorf("with %v: %q", kept[n], got)
	}
}

// The same seed draws the same mutants, and a part of a sample is in the order of the files.
func TestDraw(t *testing.T) {
	all := make([]site, 1000)
	for i := range all {
		all[i].Line = i
	}
	a, b, c := draw(all, 50, 1), draw(all, 50, 1), draw(all, 50, 2)
	same := func(a, b []site) bool {
		return slices.EqualFunc(a, b, func(x, y site) bool { return x.Line == y.Line })
	}
	if len(a) != 50 || !same(a, b) || same(a, c) {
		t.Errorf("a sample of %d, again the same: %v, other seed the same: %v", len(a), same(a, b), same(a, c))
	}
	if !slices.IsSortedFunc(a, func(x, y site) int { return x.Line - y.Line }) {
		t.Error("the sample is not in order")
	}
}

// Wrong usage is refused before anything is compiled.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--shard", "2/2"}, {"--shard", "1"}, {"--sample", "-1"}, {"--packages", "sim/none"}, {"--packages", "roce/oracle"}} {
		var out bytes.Buffer
		if err := command(context.Background(), args, &out, &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, printed %q", args, err, out.String())
		}
	}
}

// A session has the processes that were started in it, and the memory that they have.
func TestSession(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	some := session(cmd.Process.Pid)
	for len(some) == 1 && some[0].resident == 0 { // it has not begun its program
		time.Sleep(time.Millisecond)
		some = session(cmd.Process.Pid)
	}
	if len(some) != 1 || some[0].pid != cmd.Process.Pid || some[0].resident <= 0 {
		t.Errorf("%+v", some)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if some := session(cmd.Process.Pid); len(some) != 0 {
		t.Errorf("after its end: %+v", some)
	}
}
