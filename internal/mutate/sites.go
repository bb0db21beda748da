package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Kinds of mutants, in the order of the tables.
var kinds = []string{"negate", "drop condition", "skip branch", "force branch", "off by one", "constant", "arithmetic", "wrap", "skip statement", "swap"}

// site is one mutant: a change of one kind at one place, made by edits of the source.
type site struct {
	Package string `json:"package"` // below the module
	Kind    string `json:"kind"`
	File    string `json:"file"` // below the module, from its root
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Text    string `json:"text"` // what is changed, and how

	edits []edit
}

func (s site) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", s.File, s.Line, s.Column, s.Kind, s.Text)
}

// edit replaces the source from lo to hi. render gives the source of a part, with the edits of
// other mutants inside.
type edit struct {
	lo, hi int
	text   func(n int, render func(lo, hi int) string) string
}

// finder collects the sites of one file.
type finder struct {
	pkg    *packages.Package
	room   string
	path   string // below the module
	src    []byte
	base   token.Pos
	parent map[ast.Node]ast.Node
	sites  []site
}

// load finds the sites of packages, in the order of files and places.
func load(root string, patterns []string) ([]site, map[string][]byte, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile | packages.NeedModule,
		Dir:  root,
	}, patterns...)
	if err != nil {
		return nil, nil, err
	}
	var all []site
	sources := map[string][]byte{}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		for i, f := range p.Syntax {
			src, err := os.ReadFile(p.CompiledGoFiles[i])
			if err != nil {
				return nil, nil, err
			}
			path, err := filepath.Rel(root, p.CompiledGoFiles[i])
			if err != nil {
				return nil, nil, err
			}
			if ast.IsGenerated(f) {
				continue
			}
			sources[path] = src
			fd := &finder{pkg: p, room: room(p, path), path: path, src: src, base: f.FileStart, parent: map[ast.Node]ast.Node{}}
			fd.find(f)
			all = append(all, fd.sites...)
		}
	}
	slices.SortStableFunc(all, func(a, b site) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.edits[0].lo - b.edits[0].lo
	})
	return all, sources, nil
}

// room is the name of a package in the tables. The Ethernet functions of the adapter have their own
// row: verbs do not reach them.
func room(p *packages.Package, path string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/")
	if name == "sim/hca" && strings.HasPrefix(filepath.Base(path), "eth_") {
		name += " (Ethernet)"
	}
	return name
}

func (f *finder) off(p token.Pos) int { return int(p - f.base) }

func (f *finder) source(n ast.Node) string { return string(f.src[f.off(n.Pos()):f.off(n.End())]) }

func (f *finder) typeOf(e ast.Expr) types.Type { return f.pkg.TypesInfo.TypeOf(e) }

func (f *finder) constant(e ast.Expr) bool { return f.pkg.TypesInfo.Types[e].Value != nil }

// add notes a mutant at a node.
func (f *finder) add(kind string, at ast.Node, text string, edits ...edit) {
	p := f.pkg.Fset.Position(at.Pos())
	f.sites = append(f.sites, site{Package: f.room, Kind: kind, File: f.path, Line: p.Line, Column: p.Column, Text: short(text), edits: edits})
}

// short keeps a text to one line of a table.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 90 {
		s = string(r[:87]) + "..."
	}
	return s
}

// around replaces a node by a format with verbs: %[1]d is the number of the mutant, %[2]s the node.
func (f *finder) around(n ast.Node, format string) edit {
	lo, hi := f.off(n.Pos()), f.off(n.End())
	return edit{lo, hi, func(n int, render func(lo, hi int) string) string { return fmt.Sprintf(format, n, render(lo, hi)) }}
}

// operands replaces a binary expression by a format with verbs: %[2]s and %[3]s are its operands.
func (f *finder) operands(b *ast.BinaryExpr, format string) edit {
	return edit{f.off(b.Pos()), f.off(b.End()), func(n int, render func(lo, hi int) string) string {
		return fmt.Sprintf(format, n, render(f.off(b.X.Pos()), f.off(b.X.End())), render(f.off(b.Y.Pos()), f.off(b.Y.End())))
	}}
}

// find looks at each node of a file. What only hand-made mutants ask for, and what ends or
// describes the program, has no mutant.
func (f *finder) find(file *ast.File) {
	var path []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		if len(path) > 0 {
			f.parent[n] = path[len(path)-1]
		}
		skip := false
		switch n := n.(type) {
		case *ast.GenDecl:
			skip = n.Tok == token.CONST || n.Tok == token.IMPORT || n.Tok == token.TYPE
		case *ast.FuncDecl:
			skip = n.Body == nil || n.Name.Name == "String" || n.Name.Name == "Error" || n.Name.Name == "init" || n.Name.Name == "breaks" || n.Type.TypeParams != nil
		case *ast.CallExpr:
			skip = f.apart(n)
		}
		if skip {
			return false
		}
		path = append(path, n)
		f.look(n)
		return true
	})
}

// apart says whether a call is one of a hand-made mutant, or makes a text.
func (f *finder) apart(c *ast.CallExpr) bool {
	switch fun := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		return fun.Name == "panic"
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "fmt" || x.Name == "errors") {
			return true
		}
		return fun.Sel.Name == "breaks" || fun.Sel.Name == "Has" && strings.Contains(f.source(c), "roken")
	}
	return false
}

func (f *finder) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		if !f.constant(n.Cond) && !f.isApart(n.Cond) {
			f.add("skip branch", n.Cond, "if "+f.source(n.Cond)+" never", f.around(n.Cond, "(!mutation.On(%[1]d) && (%[2]s))"))
			f.add("force branch", n.Cond, "if "+f.source(n.Cond)+" always", f.around(n.Cond, "(mutation.On(%[1]d) || (%[2]s))"))
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		f.literal(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.CompositeLit:
		f.composite(n)
	}
}

// isApart says whether an expression is a question of a hand-made mutant.
func (f *finder) isApart(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && f.apart(c)
}

// swaps are comparisons that differ at the limit only.
var swaps = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}

func (f *finder) binary(b *ast.BinaryExpr) {
	if f.constant(b) {
		return
	}
	switch b.Op {
	case token.LAND, token.LOR:
		for _, x := range []ast.Expr{b.X, b.Y} {
			if f.constant(x) || f.isApart(x) {
				continue
			}
			format := "(mutation.On(%[1]d) || (%[2]s))"
			if b.Op == token.LOR {
				format = "(!mutation.On(%[1]d) && (%[2]s))"
			}
			f.add("drop condition", x, f.source(x), f.around(x, format))
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		other := swaps[b.Op]
		f.add("off by one", b, f.source(b)+" -> "+other, f.operands(b, "(mutation.On(%[1]d) && (%[2]s) "+other+" (%[3]s) || !mutation.On(%[1]d) && (%[2]s) "+b.Op.String()+" (%[3]s))"))
	case token.EQL, token.NEQ:
		f.add("negate", b, f.source(b), f.around(b, "(mutation.On(%[1]d) != (%[2]s))"))
	case token.ADD, token.SUB:
		if f.integer(b) && f.pure(b) {
			other := "-"
			if b.Op == token.SUB {
				other = "+"
			}
			f.add("arithmetic", b, f.source(b)+" -> "+other, f.operands(b, "mutation.Pick(%[1]d, (%[2]s) "+other+" (%[3]s), (%[2]s) "+b.Op.String()+" (%[3]s))"))
		}
	case token.AND, token.REM, token.AND_NOT:
		if f.integer(b) && f.pure(b) && !f.constant(b.X) && types.Identical(f.typeOf(b.X), f.typeOf(b)) {
			f.add("wrap", b, f.source(b)+" without "+b.Op.String(), f.operands(b, "mutation.Pick(%[1]d, (%[2]s), (%[2]s) "+b.Op.String()+" (%[3]s))"))
		}
	}
}

// integer says whether an expression is a typed integer that is not known when the program is
// compiled.
func (f *finder) integer(e ast.Expr) bool {
	b, ok := f.typeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0 && b.Info()&types.IsUntyped == 0 && !f.constant(e)
}

// pure says whether an expression may be evaluated twice: it calls nothing and receives nothing.
func (f *finder) pure(e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			tv := f.pkg.TypesInfo.Types[n.Fun]
			ok = ok && (tv.IsType() || f.isLen(n))
		case *ast.FuncLit, *ast.IndexExpr, *ast.SliceExpr:
			ok = false // an index may be out of range for the other value
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		case *ast.BinaryExpr:
			ok = ok && n.Op != token.QUO && n.Op != token.REM || n == e
		}
		return ok
	})
	return ok
}

func (f *finder) isLen(c *ast.CallExpr) bool {
	id, ok := c.Fun.(*ast.Ident)
	return ok && (id.Name == "len" || id.Name == "cap" || id.Name == "min" || id.Name == "max") && f.pkg.TypesInfo.Uses[id] != nil && f.pkg.TypesInfo.Uses[id].Pkg() == nil
}

// literal adds one to a whole number of a statement, unless more of its expression is constant too
// or it names a place, a type or a case.
func (f *finder) literal(l *ast.BasicLit) {
	if l.Kind != token.INT {
		return
	}
	basic, ok := f.typeOf(l).(*types.Basic)
	if !ok || basic.Info()&types.IsInteger == 0 || basic.Info()&types.IsUntyped != 0 {
		return
	}
	v, exact := constant.Uint64Val(constant.ToInt(f.pkg.TypesInfo.Types[l].Value))
	if !exact || v >= 1<<7-1 && strings.HasSuffix(basic.Name(), "int8") {
		return
	}
	switch p := f.parent[l].(type) {
	case *ast.BinaryExpr:
		if f.constant(p) || p.Op == token.SHL || p.Op == token.SHR {
			return
		}
	case *ast.ReturnStmt:
	case *ast.CallExpr:
		if f.constant(p) || f.pkg.TypesInfo.Types[p.Fun].IsType() || f.isLen(p) || f.builtin(p) {
			return
		}
	case *ast.AssignStmt:
		if p.Tok == token.SHL_ASSIGN || p.Tok == token.SHR_ASSIGN {
			return
		}
	case *ast.KeyValueExpr:
		if lit, ok := f.parent[p].(*ast.CompositeLit); !ok || !isStruct(f.typeOf(lit)) || p.Value != ast.Expr(l) {
			return
		}
	default:
		return
	}
	lo, hi := f.off(l.Pos()), f.off(l.End())
	f.add("constant", l, f.source(f.parent[l])+": "+l.Value+" -> one more", edit{lo, hi, func(n int, _ func(lo, hi int) string) string {
		return fmt.Sprintf("mutation.Next[%s](%d, %s)", basic.Name(), n, f.src[lo:hi])
	}})
}

func (f *finder) builtin(c *ast.CallExpr) bool {
	return f.pkg.TypesInfo.Types[c.Fun].IsBuiltin()
}

func isStruct(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// statements leaves out calls and assignments, and swaps the values of two assignments that follow
// each other.
func (f *finder) statements(list []ast.Stmt) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); !ok || f.apart(c) || f.never(c) {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s) {
				continue
			}
			if i > 0 {
				f.swapAssigned(list[i-1], s)
			}
		default:
			continue
		}
		f.add("skip statement", s, f.source(s), f.around(s, "if !mutation.On(%[1]d) { %[2]s }"))
	}
}

// never says whether a call does not return, so that what is behind it needs none.
func (f *finder) never(c *ast.CallExpr) bool {
	src := f.source(c.Fun)
	return src == "os.Exit" || src == "runtime.Goexit"
}

func blank(s *ast.AssignStmt) bool {
	id, ok := s.Lhs[0].(*ast.Ident)
	return ok && id.Name == "_"
}

// swapAssigned swaps the values of two fields.
func (f *finder) swapAssigned(a ast.Stmt, b *ast.AssignStmt) {
	first, ok := a.(*ast.AssignStmt)
	if !ok || first.Tok != token.ASSIGN || b.Tok != token.ASSIGN || len(first.Lhs) != 1 || len(b.Lhs) != 1 {
		return
	}
	_, one := first.Lhs[0].(*ast.SelectorExpr)
	_, two := b.Lhs[0].(*ast.SelectorExpr)
	if one && two && types.Identical(f.typeOf(first.Lhs[0]), f.typeOf(b.Lhs[0])) {
		f.swap(b, f.source(first.Lhs[0])+", "+f.source(b.Lhs[0]), first.Rhs[0], b.Rhs[0])
	}
}

// composite swaps the values of two fields of the same type.
func (f *finder) composite(l *ast.CompositeLit) {
	if !isStruct(f.typeOf(l)) {
		return
	}
	for i := 1; i < len(l.Elts); i++ {
		a, ok1 := l.Elts[i-1].(*ast.KeyValueExpr)
		b, ok2 := l.Elts[i].(*ast.KeyValueExpr)
		if ok1 && ok2 {
			f.swap(b, f.source(a.Key)+", "+f.source(b.Key), a.Value, b.Value)
		}
	}
}

// swap changes two values for each other, where both have the same type and may be evaluated twice.
func (f *finder) swap(at ast.Node, text string, a, b ast.Expr) {
	ta, tb := f.typeOf(a), f.typeOf(b)
	if ta == nil || tb == nil || !types.Identical(ta, tb) || !f.pure(a) || !f.pure(b) || f.constant(a) || f.constant(b) || f.source(a) == f.source(b) {
		return
	}
	if basic, ok := ta.(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
		return
	}
	al, ah, bl, bh := f.off(a.Pos()), f.off(a.End()), f.off(b.Pos()), f.off(b.End())
	// Neither renders the other's edits: a mutant inside would be at two places, which is one more
	// than it has edits for.
	f.add("swap", at, text,
		edit{al, ah, func(n int, render func(lo, hi int) string) string {
			return fmt.Sprintf("mutation.Pick(%d, %s, %s)", n, f.src[bl:bh], render(al, ah))
		}},
		edit{bl, bh, func(n int, render func(lo, hi int) string) string {
			return fmt.Sprintf("mutation.Pick(%d, %s, %s)", n, f.src[al:ah], render(bl, bh))
		}})
}
