// Package layering checks, with go list, that imports run only down the table of
// docs/architecture.md.
package layering

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdmasim/rdmasim/"

// allowed is the table of docs/architecture.md: what a room may import of ours. A
// room covers its sub-packages, unless they have a line of their own; a room may
// import itself. "any" is for commands.
var allowed = map[string][]string{
	"verbs":                        {},
	"prm":                          {"internal/layout"}, // its tests
	"roce":                         {"internal/tshark"}, // its tests
	"uapi":                         {"internal/layout"}, // its tests
	"roce/fault":                   {"internal/cli/input"},
	"roce/fault/wirerule":          {"roce/fault", "verbs"},
	"internal/cli/input":           {},
	"internal/cli/input/commands":  {"internal/cli/input", "internal/cli/outfile", "internal/cli/plain", "internal/cli/rlimit"},
	"internal/cli/plain":           {},
	"internal/cli/rlimit":          {},
	"internal/cli/webpage":         {},
	"internal/cli/workers":         {},
	"internal/mutate":              {"internal/cli/outfile"},
	"fixtures":                     {},
	"findings":                     {},
	"internal/cli/outfile":         {},
	"workload/perftest":            {},
	"workload/perftest/exchange":   {"verbs"},
	"workload/perftest/perf":       {"verbs", "workload/perftest/exchange"},
	"sim":                          {"sim/rule"},
	"sim/rule":                     {},
	"sim/mem":                      {"sim"},
	"sim/pcie":                     {"sim", "sim/mem"},
	"sim/cpu":                      {"sim", "sim/mem", "sim/pcie"},
	"sim/os":                       {"sim", "sim/rule"},
	"sim/mgmt":                     {"roce"},
	"sim/link":                     {"sim", "sim/mgmt", "roce", "roce/fault"},
	"sim/sa":                       {"sim", "sim/link", "sim/mgmt", "roce"},
	"sim/uar":                      {"sim", "prm"},
	"sim/mkey":                     {"sim", "sim/mem", "sim/rule", "prm"},
	"sim/odp":                      {"sim", "sim/mem", "sim/mkey", "sim/rule", "prm"},
	"sim/gpu":                      {"sim", "sim/mem"},
	"sim/hca/dcqcn":                {"sim"},
	"sim/hca":                      {"sim", "sim/mem", "sim/pcie", "sim/uar", "sim/mkey", "sim/odp", "sim/hca/dcqcn", "sim/mgmt", "sim/rule", "prm", "roce"},
	"sim/kernel":                   {"sim", "sim/os", "sim/cpu", "sim/mem", "sim/pcie", "sim/rule", "prm", "verbs"},
	"sim/kernel/cm":                {"sim", "sim/kernel", "sim/rule", "roce", "verbs"},
	"sim/kernel/umad":              {"sim", "sim/kernel", "roce", "verbs"},
	"sim/provider":                 {"verbs", "prm", "roce", "sim", "sim/cpu", "sim/mem", "sim/kernel", "sim/kernel/cm", "sim/rule"},
	"sim/profile":                  {"internal/cli/input", "fixtures", "sim"},
	"sim/testbed":                  {"verbs", "sim", "prm", "roce", "roce/fault", "roce/fault/wirerule"},
	"sim/mutant":                   {"prm", "roce", "sim", "verbs"},
	"hw":                           {"verbs", "prm", "roce/fault", "roce/fault/wirerule", "internal/cli/outfile", "internal/cli/workers", "roce"},
	"attach":                       {"verbs", "sim", "prm", "roce", "uapi", "internal/cli/outfile", "internal/cli/plain", "roce/fault", "roce/fault/wirerule"},
	"conformance/model":            {"verbs", "roce", "roce/ether"},
	"conformance":                  {"conformance/model", "verbs", "prm", "roce", "uapi", "conformance/report", "internal/cli/outfile", "roce/fault", "fixtures", "internal/cli/input", "internal/cli/rlimit", "internal/cli/workers"},
	"workload":                     {"verbs", "workload/perftest/exchange"},
	"experiment/table":             {"internal/cli/plain"},
	"experiment/chart":             {"experiment/table", "sim", "internal/cli/input", "internal/cli/plain"},
	"experiment":                   {"experiment/table", "experiment/chart", "verbs", "roce", "roce/fault", "workload", "sim", "internal/cli/outfile", "internal/cli/input", "internal/cli/plain", "fixtures"},
	"experiment/studies":           {"experiment", "experiment/table", "experiment/chart", "verbs", "roce", "workload", "sim", "internal/cli/input", "fixtures"},
	"experiment/calibrate":         {"experiment", "experiment/table", "experiment/chart", "sim/profile", "internal/cli/outfile", "internal/cli/input", "internal/cli/plain", "fixtures", "workload/perftest", "conformance/report"},
	"experiment/report":            {"experiment", "experiment/table", "experiment/chart", "sim/profile", "internal/cli/plain", "internal/cli/webpage", "internal/browser"}, // the last in its tests
	"experiment/sweep":             {"experiment", "experiment/studies", "experiment/table", "experiment/chart", "experiment/sweep/grid", "experiment/sweep/store", "internal/cli/outfile", "internal/cli/input", "internal/cli/plain", "internal/cli/workers", "fixtures"},
	"experiment/sweep/grid":        {"internal/cli/input"},
	"experiment/sweep/store":       {},
	"experiment/sweep/shard":       {},
	"experiment/sweep/slurm":       {},
	"conformance/report":           {"internal/cli/input", "internal/cli/outfile", "internal/cli/plain"},
	"conformance/report/page":      {"conformance/report", "internal/cli/plain", "internal/cli/webpage", "roce", "verbs", "internal/browser"}, // the last in its tests
	"internal/browser":             {},
	"conformance/runs":             {"conformance", "conformance/report", "internal/cli/outfile", "internal/cli/plain", "roce"},
	"conformance/mutants":          {"conformance", "conformance/report", "conformance/runs", "conformance/target/simulator", "fixtures", "internal/cli/input", "sim"},
	"conformance/target/simulator": {"verbs", "conformance", "roce/fault", "sim"},
	"conformance/target/hardware":  {"verbs", "conformance", "roce/fault", "hw"},
	"examples":                     {"any"},
	"cmd":                          {"any"},
	"internal/layering":            {},
	"internal/layout":              {},
	"internal/deadcode":            {},
	"internal/modes":               {"verbs", "roce/fault", "sim", "experiment", "experiment/studies"},
	"internal/api":                 {},
	"internal/ci":                  {"roce"},
	"internal/legs":                {},
	"internal/readme":              {},
	"internal/recipes":             {},
	"internal/scripts":             {},
	"internal/tshark":              {"roce"},
}

// deep lists rooms whose permission covers all rooms below the named one.
var deep = map[string]string{"sim/profile": "sim", "sim/testbed": "sim", "sim/mutant": "sim", "attach": "sim", "experiment": "sim", "experiment/studies": "sim", "conformance/target/simulator": "sim", "conformance/mutants": "sim", "internal/modes": "sim"}

// formats are the only rooms that may shift bytes.
var formats = []string{"prm", "roce", "uapi", "workload/perftest/exchange"}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "hw", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // files of the tag hw import too
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// room finds the longest line of the table that covers a package.
func room(path string) string {
	rel := strings.TrimPrefix(path, module)
	for r := rel; r != "." && r != ""; r = filepath.ToSlash(filepath.Dir(r)) {
		if _, ok := allowed[r]; ok {
			return r
		}
	}
	return ""
}

func permitted(from, to string) bool {
	if from == to {
		return true
	}
	for _, a := range allowed[from] {
		if a == "any" || a == to {
			return true
		}
	}
	root, ok := deep[from]
	return ok && (to == root || strings.HasPrefix(to, root+"/"))
}

func TestImportsRunDown(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		if from == "" {
			t.Errorf("%s has no line in the import table", p.ImportPath)
			continue
		}
		imports := p.Imports
		if from != "sim/profile" { // tests of a room obey the table too
			imports = append(append(imports, p.TestImports...), p.XTestImports...)
		}
		for _, i := range imports {
			if !strings.HasPrefix(i, module) {
				continue
			}
			to := room(i)
			if (to == "internal/layout" || to == "internal/tshark" || to == "internal/browser") && from != to && slices.Contains(p.Imports, i) {
				t.Errorf("%s imports %s: only generators and tests may", p.ImportPath, i)
			}
			if !permitted(from, to) {
				t.Errorf("%s imports %s: %q may not import %q", p.ImportPath, i, from, to)
			}
		}
	}
}

// documented reads the table of rooms of docs/architecture.md: what each may import,
// as the last cell says.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rooms := map[string][]string{}
	_, table, _ := strings.Cut(string(page), "| package | what it is |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		imports := []string{}
		for _, m := range quoted.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			imports = append(imports, m[1])
		}
		if strings.TrimSpace(cells[len(cells)-1]) == "any" {
			imports = append(imports, "any")
		}
		slices.Sort(imports)
		for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
			name := strings.TrimSuffix(m[1], "/")
			if r := room(module + name); r != "" {
				name = r
			}
			rooms[name] = imports
		}
	}
	return rooms
}

// TestDocumentedTable: the table of the document and the one that is enforced are the
// same.
func TestDocumentedTable(t *testing.T) {
	doc := documented(t)
	for name, imports := range allowed {
		if strings.HasPrefix(name, "internal/") {
			continue
		}
		want := []string{}
		for _, i := range imports {
			if root, ok := deep[name]; ok && (i == root || strings.HasPrefix(i, root+"/")) {
				i = root + "/..."
			}
			if !slices.Contains(want, i) {
				want = append(want, i)
			}
		}
		slices.Sort(want)
		if _, ok := doc[name]; name != "cmd" && !ok {
			t.Errorf("%s has no line in docs/architecture.md", name)
		} else if ok && !slices.Equal(doc[name], want) {
			t.Errorf("%s: docs/architecture.md says it imports %v, the test allows %v", name, doc[name], want)
		}
	}
	for name := range doc {
		if _, ok := allowed[name]; !ok {
			t.Errorf("docs/architecture.md has a line for %s, the test has not", name)
		}
	}
}

func TestSimHasNoHiddenInputs(t *testing.T) {
	banned := map[string]string{
		"sync": "one goroutine at a time", "time": "virtual time only", "math/rand": "seeded draws only",
		"math/rand/v2": "seeded draws only", "os": "no environment", "sync/atomic": "one goroutine at a time",
	}
	exempt := map[string]bool{"sim/testbed": true, "sim/profile": true, "sim/provider": true, "sim/kernel/completion": true, "sim/kernel/completion/oracle": true}
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module)
		if rel != "sim" && !strings.HasPrefix(rel, "sim/") {
			continue
		}
		for _, i := range p.Imports {
			why, bad := banned[i]
			if bad && !(i == "time" && exempt[rel]) {
				t.Errorf("%s imports %s: %s", p.ImportPath, i, why)
			}
		}
	}
}

func TestOnlyFormatsShiftBytes(t *testing.T) {
	for _, p := range packages(t) {
		r := room(p.ImportPath)
		ok := false
		for _, f := range formats {
			ok = ok || r == f || strings.HasPrefix(r, f+"/")
		}
		for _, i := range p.Imports {
			if i == "encoding/binary" && !ok {
				t.Errorf("%s imports encoding/binary: layouts live in %v", p.ImportPath, formats)
			}
		}
	}
}
