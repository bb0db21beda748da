package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExportedFunctionsHaveComments: whoever reads go doc learns what each function and method
// does, also those of interfaces. The comment of a method may name others of its interface; an
// interface of one method says itself what that does.
func TestExportedFunctionsHaveComments(t *testing.T) {
	eachFile(t, func(set *token.FileSet, path string, f *ast.File, _ []byte) {
		if f.Name.Name == "main" || strings.HasSuffix(path, "_test.go") {
			return
		}
		bare := func(name *ast.Ident) {
			t.Errorf("%s: %s has no comment: begin one with the name, and say what the call does", set.Position(name.Pos()), name.Name)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, m := range bareMethods(d) {
					bare(m.Names[0])
				}
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type))) {
					bare(d.Name)
				}
			}
		}
	})
}

// eachFile calls look with each Go file of the tree that was not generated.
func eachFile(t *testing.T, look func(set *token.FileSet, path string, f *ast.File, text []byte)) {
	t.Helper()
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
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		files++
		if !ast.IsGenerated(f) {
			look(set, path, f, text)
		}
		return nil
	})
	if err != nil || files < 1000 {
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
