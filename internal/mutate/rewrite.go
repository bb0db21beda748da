package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed mutation.go.txt
var mutationSource []byte

// importPath is where the package that mutants ask is overlaid.
const importPath = "internal/mutation"

// rewrite returns a file with all its mutants, each asleep until its number is active. Mutants that
// contain others keep them.
func rewrite(module string, src []byte, sites map[int]site) []byte {
	type numbered struct {
		edit
		n int
	}
	var edits []numbered
	for n, s := range sites {
		for _, e := range s.edits {
			edits = append(edits, numbered{e, n})
		}
	}
	// The outermost first; of several at one place the first mutant is outside.
	slices.SortFunc(edits, func(a, b numbered) int {
		if a.lo != b.lo {
			return a.lo - b.lo
		}
		if a.hi != b.hi {
			return b.hi - a.hi
		}
		return a.n - b.n
	})
	var render func(lo, hi, from int) string
	render = func(lo, hi, from int) string {
		var out strings.Builder
		at := lo
		for i := from; i < len(edits); i++ {
			e := edits[i]
			if e.lo < at || e.hi > hi {
				continue
			}
			if e.lo >= hi {
				break
			}
			out.Write(src[at:e.lo])
			out.WriteString(e.text(e.n, func(lo, hi int) string { return render(lo, hi, i+1) }))
			at = e.hi
		}
		out.Write(src[at:hi])
		return out.String()
	}
	return importing(module, render(0, len(src), 0))
}

// importing adds the import of the package that mutants ask.
func importing(module, text string) []byte {
	// The import goes on the line of the package clause, so that lines before the first mutant
	// stay.
	clause := regexp.MustCompile(`(?m)^package \w+`).FindStringIndex(text)
	return []byte(text[:clause[1]] + fmt.Sprintf("; import \"%s/%s\"", module, importPath) + text[clause[1]:])
}

// begins is where a case begins in the sources of the suite: the mutated program tells there whose
// what it reaches is.
var begins = struct{ path, line string }{"conformance/spec/c.go", "func NewRunning(id string, seed uint64, ledger ...Deviation) *Running {\n"}

// announced returns the file of begins with a call that tells which case begins.
func announced(root, module string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, begins.path))
	if err != nil {
		return nil, err
	}
	before, after, ok := strings.Cut(string(src), begins.line)
	if !ok {
		return nil, fmt.Errorf("%s has no line %q, where a case begins: change begins in internal/mutate/rewrite.go", begins.path, strings.TrimSpace(begins.line))
	}
	return importing(module, before+begins.line+"\tmutation.Case(id)\n"+after), nil
}

// compile builds a program with all sites, and returns the sites in the order of their numbers. One
// that does not compile, such as a constant that no longer fits its type, is refused.
func compile(root, module, main, dir string, sites []site, sources map[string][]byte, progress func(string)) (program string, kept []site, refused []string, err error) {
	program = filepath.Join(dir, "mutated")
	gone := map[int]bool{}
	for range 12 {
		byFile := map[string]map[int]site{}
		for n, s := range sites {
			if gone[n] {
				continue
			}
			if byFile[s.File] == nil {
				byFile[s.File] = map[int]site{}
			}
			byFile[s.File][n] = s
		}
		replace := map[string]string{}
		write := func(path string, text []byte) error {
			to := filepath.Join(dir, "overlay", path)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			replace[filepath.Join(root, path)] = to
			return os.WriteFile(to, text, 0o644)
		}
		if err := write(importPath+"/mutation.go", mutationSource); err != nil {
			return "", nil, nil, err
		}
		if main == suite {
			text, err := announced(root, module)
			if err != nil {
				return "", nil, nil, err
			}
			if err := write(begins.path, text); err != nil {
				return "", nil, nil, err
			}
		}
		for path, some := range byFile {
			if err := write(path, rewrite(module, sources[path], some)); err != nil {
				return "", nil, nil, err
			}
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return "", nil, nil, err
		}
		list := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(list, overlay, 0o644); err != nil {
			return "", nil, nil, err
		}
		progress(fmt.Sprintf("compiles %d mutants", len(sites)-len(gone)))
		cmd := exec.Command("go", "build", "-gcflags=-e", "-overlay", list, "-o", program, main)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err == nil {
			for n, s := range sites {
				if !gone[n] {
					kept = append(kept, s)
				} else {
					refused = append(refused, s.String())
				}
			}
			if len(gone) == 0 {
				return program, kept, refused, nil
			}
			// The numbers are those of the list that is kept.
			sites, gone = kept, map[int]bool{}
			kept = nil
			continue
		}
		more := blamed(dir, string(out))
		if len(more) == 0 {
			return "", nil, nil, fmt.Errorf("go build with mutants: %w\n%s", err, out)
		}
		for _, n := range more {
			gone[n] = true
		}
	}
	return "", nil, nil, fmt.Errorf("go build with mutants: it fails again and again for others of them")
}

var (
	compilerLine = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)
	numberInLine = regexp.MustCompile(`mutation\.(?:On|Pick|Next\[\w+\])\((\d+)`)
)

// blamed are the mutants on the lines that the compiler complains about.
func blamed(dir, out string) []int {
	var all []int
	for _, m := range compilerLine.FindAllStringSubmatch(out, -1) {
		path := m[1]
		if i := strings.Index(path, "overlay/"); i >= 0 {
			path = path[i+len("overlay/"):]
		}
		text, err := os.ReadFile(filepath.Join(dir, "overlay", path))
		if err != nil {
			continue
		}
		lines := strings.Split(string(text), "\n")
		if n, _ := strconv.Atoi(m[2]); n >= 1 && n <= len(lines) {
			for _, id := range numberInLine.FindAllStringSubmatch(lines[n-1], -1) {
				k, _ := strconv.Atoi(id[1])
				all = append(all, k)
			}
		}
	}
	return all
}
