package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unraced are the packages with goroutines that `make race` does not run, and why.
var unraced = map[string]string{
	"cmd/rdmasim":      "waits for what attach, sweep and outfile do, which are raced",
	"hw/mlx5":          "needs libibverbs, and its goroutines wait for threads of cases",
	"experiment/sweep": "its processes are those of internal/cli/workers, which is raced; with Parquet and plots it is half of what this leg would compile",
	"internal/mutate":  "a tool for developers, whose goroutines each have a mutant of their own",
	"internal/modes":   "each goroutine of the test has a simulator of its own",
}

var starts = regexp.MustCompile(`(?m)^\s*go (func\b|[\w.]+\()|\.Go\(func\b`)

// TestPackagesWithGoroutinesAreRaced: a package that starts goroutines, in its tests or otherwise,
// is in the recipe of `make race`.
func TestPackagesWithGoroutinesAreRaced(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(text), "\nrace:\n")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	raced := map[string]bool{}
	for _, m := range regexp.MustCompile(`\s\./([\w/.]+)`).FindAllStringSubmatch(recipe, -1) {
		raced[m[1]] = true
	}
	found := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if starts.Match(source) {
				found[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("goroutines in %v only", found)
	}
	for pkg := range found {
		if in, out := covered(raced, pkg), unraced[pkg] != ""; in == out {
			t.Errorf("%s starts goroutines: in the recipe of race in the Makefile: %v, in unraced: %v", pkg, in, out)
		}
	}
	for pkg := range unraced {
		if !found[pkg] {
			t.Errorf("%s starts no goroutines", pkg)
		}
	}
}

// covered tells whether a package, or a folder above it with /..., is among the raced.
func covered(raced map[string]bool, pkg string) bool {
	for up := pkg; up != "."; up = filepath.Dir(up) {
		if raced[up+"/..."] {
			return true
		}
	}
	return raced[pkg]
}
