package mutants

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim/mutant"
	"github.com/rdmasim/rdmasim/sim/rule"
)

var update = flag.Bool("update", false, "rewrite docs/mutants.md")

// stepFiles hold the lists of named steps: of the responder, the requester and the memory keys. A
// list is a function with a switch each of whose clauses returns; a clause is a step.
var stepFiles = []string{"sim/hca/responder_check.go", "sim/hca/responder_check_xrc.go", "sim/hca/requester_check.go", "sim/mkey/check.go", "sim/mkey/umr.go"}

// askedElsewhere are the rules of steps whose switch stands outside the step.
var askedElsewhere = map[string]string{
	"mayBegin: q.outOfReads(op)": "ReadsAreLimited",      // where the QP makes room for READs
	"checkXRC: s == nil":         "RequestNamesAnXRCSRQ", // which finds the SRQ
	"checkUpdate: k == nil":      "ChangedKeyExists",     // Update answers for it: the steps behind need the key
}

// step is a clause of a list.
type step struct {
	file, list, text string
	rules            []string
}

// Each named step has a mutant that breaks it and a case that notices; docs/mutants.md counts them.
// A new step needs a switch of sim/rule in its condition, in the function that it calls, or in
// askedElsewhere; CONTRIBUTING.md has the rest.
func TestGoldenEveryStepHasAMutant(t *testing.T) {
	byRule := map[string]mutant.Mutant{}
	for _, m := range mutant.All() {
		byRule[m.Rule] = m
	}
	explained, known, _, _ := committed(t)
	var page bytes.Buffer
	page.WriteString(stepsHead)
	page.Write(areasPage(t, explained, known))
	page.WriteString("\n## Steps\n\n| file | steps | mutants | survive |\n| --- | --- | --- | --- |\n")
	var file string
	var count, mutants, survive int
	flush := func() {
		if count > 0 {
			fmt.Fprintf(&page, "| %s | %d | %d | %d |\n", file, count, mutants, survive)
		}
		count, mutants, survive = 0, 0, 0
	}
	for _, s := range steps(t) {
		if len(s.rules) == 0 {
			t.Errorf("%s: step %s has no mutant: ask for a rule there, see \"Add a mutant\" in CONTRIBUTING.md", s.file, s.list+": "+s.text)
		}
		if s.file != file {
			flush()
			file = s.file
		}
		count++
		for _, name := range s.rules {
			m, ok := byRule[sentenceOf(t, name)]
			if !ok {
				t.Errorf("%s: rule %s of step %s is broken by no mutant of sim/mutant", s.file, name, s.list+": "+s.text)
				continue
			}
			mutants++
			if explained.Reason(m.Name) != "" {
				survive++
			} else if len(m.Killers) == 0 {
				t.Errorf("mutant %s: name the case that notices it under Killers", m.Name)
			}
		}
	}
	flush()
	const path = "../../docs/mutants.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, page.Bytes()) {
		t.Errorf("%s is not the table of the steps (%v): make golden rewrites it", path, err)
	}
}

const stepsHead = `# Mutants

A mutant is a simulator that breaks one rule of the device, the driver or the library; a case kills
it when one of its assertions fails. With mutants you see what the suite would miss.

| command or file | shows |
| --- | --- |
| ` + "`conform mutants --list`" + ` | each mutant, its area and the rule that it breaks |
| ` + "`conform mutants --filter RC`" + ` | runs the mutants of an area until a case kills each |
| ` + "`conform mutants --matrix`" + ` | runs every case on every mutant; [matrix.json](../fixtures/mutants/matrix.json) holds the result |
| [survivors.yaml](../fixtures/mutants/survivors.yaml) | the mutants that no case can kill, with reasons |
| [machine.json](../fixtures/mutants/machine.json) | a sample that [scripts/mutate](../CONTRIBUTING.md) has judged |
| [rows.yaml](../fixtures/mutants/rows.yaml) | the cases that kill no mutant, with reasons |

A test generates this page, and ` + "`make golden`" + ` rewrites it; [CONTRIBUTING.md](../CONTRIBUTING.md#add-a-rule-and-its-mutant)
says how to add a mutant. The device checks a request, a work request, a response and a memory key in a fixed
order, one named step each. Each [step](#steps) has a mutant that leaves it out.
`

// sentenceOf is what a rule says whose constant has a name.
func sentenceOf(t *testing.T, name string) string {
	t.Helper()
	sentence := ""
	for _, path := range []string{"sim/rule/sentences.go", "sim/rule/sentences_wire.go"} {
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
					sentence = strings.Trim(kv.Value.(*ast.BasicLit).Value, `"`)
				}
			}
			return true
		})
	}
	if !slices.ContainsFunc(rule.All(), func(r rule.Rule) bool { return r.String() == sentence }) {
		t.Fatalf("rule.%s has no sentence in sim/rule/sentences*.go", name)
	}
	return sentence
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// steps are those of all lists, in the order of the files.
func steps(t *testing.T) []step {
	t.Helper()
	var all []step
	unused := map[string]bool{}
	for k := range askedElsewhere {
		unused[k] = true
	}
	for _, path := range stepFiles {
		functions := functionsOf(t, path)
		for _, d := range parse(t, path).Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, clause := range listOf(f) {
				s := step{file: path, list: f.Name.Name, text: source(clause.List[0])}
				s.rules = rulesIn(clause)
				for _, callee := range calls(clause) {
					for _, g := range functions[callee] {
						if listOf(g) == nil {
							s.rules = append(s.rules, rulesIn(g.Body)...)
						}
					}
				}
				s.text = unbroken(s.text)
				if r, elsewhere := askedElsewhere[s.list+": "+s.text]; elsewhere {
					s.rules = append(s.rules, r)
					delete(unused, s.list+": "+s.text)
				}
				slices.Sort(s.rules)
				s.rules = slices.Compact(s.rules)
				all = append(all, s)
			}
		}
	}
	for k := range unused {
		t.Errorf("askedElsewhere: there is no step %q", k)
	}
	if len(all) < 60 {
		t.Errorf("%d steps", len(all))
	}
	return all
}

// listOf are the clauses of the first switch of a function, if it has no tag and each of them ends
// with a return.
func listOf(f *ast.FuncDecl) []*ast.CaseClause {
	for _, s := range f.Body.List {
		sw, ok := s.(*ast.SwitchStmt)
		if !ok || sw.Tag != nil {
			continue
		}
		var list []*ast.CaseClause
		for _, c := range sw.Body.List {
			clause := c.(*ast.CaseClause)
			if len(clause.Body) == 0 || len(clause.List) == 0 {
				return nil
			}
			if _, returns := clause.Body[len(clause.Body)-1].(*ast.ReturnStmt); !returns {
				return nil
			}
			list = append(list, clause)
		}
		return list
	}
	return nil
}

// functionsOf are the functions and methods that a file calls by their names: its own, and those of
// its package, where they have names that it has not.
func functionsOf(t *testing.T, file string) map[string][]*ast.FuncDecl {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../..", filepath.Dir(file), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	own, others := map[string][]*ast.FuncDecl{}, map[string][]*ast.FuncDecl{}
	for _, path := range paths {
		path = strings.TrimPrefix(path, "../../")
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		into := others
		if path == file {
			into = own
		}
		for _, d := range parse(t, path).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				into[f.Name.Name] = append(into[f.Name.Name], f)
			}
		}
	}
	maps.Copy(others, own)
	return others
}

// rulesIn are the rules that a piece of code asks for.
func rulesIn(n ast.Node) []string {
	var names []string
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "rule" && !slices.Contains([]string{"Rule", "Mutants", "Broken"}, s.Sel.Name) {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	return names
}

// calls are the functions, and the methods of a variable, that a clause calls.
func calls(n ast.Node) []string {
	var names []string
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			switch f := c.Fun.(type) {
			case *ast.Ident:
				names = append(names, f.Name)
			case *ast.SelectorExpr:
				if _, ok := f.X.(*ast.Ident); ok {
					names = append(names, f.Sel.Name)
				}
			}
		}
		return true
	})
	return names
}

func source(n ast.Node) string {
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return b.String()
}

// unbroken is a condition without its switches.
func unbroken(s string) string {
	for _, q := range []string{"q", "t"} {
		for {
			i := strings.Index(s, " && !"+q+".breaks(rule.")
			if i < 0 {
				break
			}
			end := i + strings.IndexByte(s[i:], ')') + 1
			s = s[:i] + s[end:]
		}
	}
	return s
}
