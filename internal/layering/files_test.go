package layering

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// device is the package whose files are held to floors, as its comment says.
const device = "../../sim/hca"

// circles are the groups of files that may use each other: an idea in several files.
var circles = []string{"cq", "requester", "responder"}

// TestFilesRunDown: a file uses only files below it. Two files that use each other, by the objects
// that their names mean, are of one idea.
func TestFilesRunDown(t *testing.T) {
	uses := fileUses(t)
	below := map[string]map[string]bool{}
	for f := range uses {
		below[f] = reach(uses, f)
	}
	for from := range uses {
		for to := range uses[from] {
			if below[to][from] && !sameIdea(from, to) {
				t.Errorf("%s uses %s, which in the end uses it: what lies below must call by an interface of its own, or belongs elsewhere", from, to)
			}
		}
	}
}

func sameIdea(a, b string) bool {
	return slices.ContainsFunc(circles, func(c string) bool { return strings.HasPrefix(a, c) && strings.HasPrefix(b, c) })
}

// fileUses is which files name objects that are declared in which others.
func fileUses(t *testing.T) map[string]map[string]bool {
	fset := token.NewFileSet()
	names, err := filepath.Glob(device + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, n, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", exports(t))}
	pkg, err := conf.Check(module+"sim/hca", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]bool{}
	for id, o := range info.Uses {
		if o.Pkg() != pkg {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(o.Pos()).Filename)
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses
}

// exports opens what the compiler has noted of each package that the device imports.
func exports(t *testing.T) func(path string) (io.ReadCloser, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", device)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(at[path]) }
}

// reach is all that a file uses in the end.
func reach(uses map[string]map[string]bool, from string) map[string]bool {
	seen := map[string]bool{}
	for next := []string{from}; len(next) > 0; {
		f := next[0]
		next = next[1:]
		for to := range uses[f] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return seen
}
