package kit_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The index in the package comment names only what there is, and every function of the package.
func TestIndexIsWhole(t *testing.T) {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, "github.com/rdmasim/rdmasim/conformance/kit")
	if err != nil {
		t.Fatal(err)
	}
	there, functions := map[string]bool{}, map[string]bool{}
	values := func(all []*doc.Value) {
		for _, v := range all {
			for _, name := range v.Names {
				there[name] = true
			}
		}
	}
	add := func(all []*doc.Func) {
		for _, f := range all {
			there[f.Name], functions[f.Name] = true, true
		}
	}
	values(p.Consts)
	values(p.Vars)
	add(p.Funcs)
	for _, typ := range p.Types {
		there[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		add(typ.Funcs)
		for _, m := range typ.Methods {
			there[typ.Name+"."+m.Name] = true
		}
	}
	if len(functions) < 50 {
		t.Fatalf("%d functions found", len(functions))
	}
	for _, m := range regexp.MustCompile(`\[([A-Z][\w.]*)\]`).FindAllStringSubmatch(p.Doc, -1) {
		if !there[m[1]] {
			t.Errorf("the index names %s, which the package does not have", m[1])
		}
		delete(functions, m[1])
	}
	for name := range functions {
		t.Errorf("the index in the package comment (doc.go) lacks %s", name)
	}
}
