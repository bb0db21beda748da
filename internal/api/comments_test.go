package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExportedFunctionsHaveComments: whoever reads go doc learns what each function and method
// does, also those of interfaces. The comment of a method may name others of its interface; an
// interface of one method says itself what that does.
func TestExportedFunctionsHaveComments(t *testing.T) {
	const root = "../.."
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "out") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files++
		if f.Name.Name == "main" || ast.IsGenerated(f) {
			return nil
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				for _, m := range bareMethods(g) {
					t.Errorf("%s: %s has no comment: begin one with the name, and say what the call does", set.Position(m.Pos()), m.Names[0].Name)
				}
			}
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Doc == nil && fn.Name.IsExported() && (fn.Recv == nil || ast.IsExported(typeName(fn.Recv.List[0].Type))) {
				t.Errorf("%s: %s has no comment: begin one with the name, and say what the call does", set.Position(fn.Pos()), fn.Name.Name)
			}
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files: %v", files, err)
	}
}

// typeName is the name of a receiver's type.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return ""
}

// bareMethods returns the methods of exported interfaces that no comment describes.
func bareMethods(g *ast.GenDecl) []*ast.Field {
	var bare []*ast.Field
	for _, spec := range g.Specs {
		typ, ok := spec.(*ast.TypeSpec)
		if !ok || !typ.Name.IsExported() {
			continue
		}
		i, ok := typ.Type.(*ast.InterfaceType)
		if !ok || len(i.Methods.List) == 1 && (g.Doc != nil || typ.Doc != nil) {
			continue
		}
		told := g.Doc.Text() + typ.Doc.Text()
		for _, m := range i.Methods.List {
			told += m.Doc.Text() + "\n"
			named := len(m.Names) == 1 && m.Names[0].IsExported()
			if named && m.Doc == nil && m.Comment == nil && !regexp.MustCompile(`\b`+m.Names[0].Name+`\b`).MatchString(told) {
				bare = append(bare, m)
			}
		}
	}
	return bare
}
