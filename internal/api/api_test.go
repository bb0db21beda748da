// Package api holds the exported packages that other projects build on to what the last release
// had.
package api

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdmasim/rdmasim/"

// stable are the packages that other projects import: docs/embed.md.
var stable = []string{"verbs", "conformance/spec", "prm", "roce"}

// released lists the exported names of the last release, one a line; CHANGELOG.md names that
// release.
const released = "released.txt"

var update = flag.Bool("update", false, "make the present names those of the release")

// TestReleasedNamesStay fails for each exported name of the last release that is gone or has
// another type. New names are compatible: implementations of the interfaces embed the Unimplemented
// types.
func TestReleasedNamesStay(t *testing.T) {
	if testing.Short() && !*update {
		t.Skip("compiles the packages that other projects import; make test does")
	}
	now := exported(t)
	if *update {
		if err := os.WriteFile(released, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(now, line) {
			gone = append(gone, line)
		}
	}
	if len(gone) > 0 {
		t.Errorf("removed or changed since the last release:\n%s\nIf that is meant, describe it under Incompatible in CHANGELOG.md and run\ngo test ./internal/api -update", strings.Join(gone, "\n"))
	}
}

// exported lists the exported names of the stable packages with their types, sorted.
func exported(t *testing.T) []string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range stable {
		args = append(args, module+p)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(at[path]) })
	var names []string
	for _, p := range stable {
		pkg, err := imp.Import(module + p)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				names = append(names, describe(p, o)...)
			}
		}
	}
	slices.Sort(names)
	return names
}

// describe is an exported object in lines: itself, and of a type each exported field and method.
func describe(room string, o types.Object) []string {
	short := func(p *types.Package) string { return strings.TrimPrefix(p.Path(), module) }
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, room+": "+format+"\n", args...) }
	named, isType := o.Type().(*types.Named)
	if _, ok := o.(*types.TypeName); !ok || !isType {
		line("%s", types.ObjectString(o, short))
		return split(&b)
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		line("type %s struct", o.Name())
		for f := range u.Fields() {
			if f.Exported() {
				line("type %s: field %s %s", o.Name(), f.Name(), types.TypeString(f.Type(), short))
			}
		}
	case *types.Interface:
		line("type %s interface", o.Name())
		for m := range u.Methods() {
			line("type %s: method %s%s", o.Name(), m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
		}
	default:
		line("type %s %s", o.Name(), types.TypeString(u, short))
	}
	for m := range named.Methods() {
		if m.Exported() {
			line("%s", types.ObjectString(m, short))
		}
	}
	return split(&b)
}

func split(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
