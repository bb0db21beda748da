package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

var updatePyverbs = flag.Bool("update-pyverbs", false, "write the tables of rdma-core's tests, fixtures/pyverbs")

// pyverbsTable is a run of rdma-core's tests: the file in fixtures/pyverbs, by whom and with what.
type pyverbsTable struct {
	file, user string
	flags      []string
	newest     bool // release of the newest Debian, whose user space takes the place of this machine's
	says       string
}

var pyverbsTables = []pyverbsTable{
	{file: "44-root", says: "44, root"},
	{file: "44-nobody", user: "nobody", says: "44, nobody"},
	{file: "44-most", flags: []string{"--profile", "../../fixtures/pyverbs/most.yaml"}, says: "44, root, `--profile fixtures/pyverbs/most.yaml`"},
	{file: "65-root", newest: true, says: "65, root"},
}

const pyverbsFolder = "../../fixtures/pyverbs"

// counts are how many tests of a table had each outcome. Each that is not ok has a reason.
func (p *pyverbsTable) counts(t *testing.T) map[string]int {
	b, err := os.ReadFile(filepath.Join(pyverbsFolder, p.file+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 3 || (f[1] == "ok") != (f[2] == "") {
			t.Fatalf("%s: %q", p.file, line)
		}
		n[f[1]]++
		n["all"]++
	}
	return n
}

// TestTablesOfPyverbs: docs/exec.md says what the tables say, and no test of release 44 fails.
func TestTablesOfPyverbs(t *testing.T) {
	page, err := os.ReadFile("../../docs/exec.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pyverbsTables {
		n := p.counts(t)
		failed := n["fail"] + n["error"]
		if row := fmt.Sprintf("| %s | %d | %d | %d | %d |", p.says, n["all"], n["ok"], n["skip"], failed); !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/exec.md has no row %q", row)
		}
		if !p.newest && (failed > 0 || n["all"] != 273) {
			t.Errorf("%s: %v", p.file, n)
		}
	}
}

// TestPyverbs runs rdma-core's tests where they are, and compares with the tables: release 44 in
// the folder that RDMASIM_PYVERBS names, with Debian's python3-pyverbs and python3-scapy of that
// release, and the newest in the user space that attach/vm/scripts/root has unpacked.
func TestPyverbs(t *testing.T) {
	if runtime.GOARCH != "amd64" || os.Geteuid() != 0 {
		t.Skip("needs Linux on x86-64, and root")
	}
	if testing.Short() {
		t.Skip("takes minutes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pyverbsTables {
		t.Run(p.file, func(t *testing.T) {
			tests, root := os.Getenv("RDMASIM_PYVERBS"), ""
			if p.newest {
				root, _ = filepath.Abs(cmp.Or(os.Getenv("LAB_CACHE"), "../../out/lab") + "/user-space")
				tests = root + "/usr/src/rdma-core/tests"
			} else if b, _ := osexec.Command("dpkg-query", "-W", "-f", "${Version}", "python3-pyverbs").Output(); !strings.HasPrefix(string(b), "44.") {
				t.Skip("needs Debian's python3-pyverbs 44")
			}
			if _, err := os.Stat(filepath.Join(tests, "args_parser.py")); err != nil {
				t.Skipf("the tests of rdma-core are not there: %v", err)
			}
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // another user runs what is there
				t.Fatal(err)
			}
			copied, wrapper := filepath.Join(dir, "rdmasim.test"), filepath.Join(dir, "rdmasim")
			for name, b := range map[string][]byte{copied: readFile(t, self), wrapper: fmt.Appendf(nil, "#!/bin/sh\nexec %s %s \"$@\"\n", commands.Quoted(copied), mainArg)} {
				if err := os.WriteFile(name, b, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{tests}
			if root != "" {
				args = append(args, root)
			}
			c := osexec.Command("../../scripts/pyverbs", append(append(args, "--"), p.flags...)...)
			c.Env = append(os.Environ(), "RDMASIM="+wrapper, "PYVERBS_USER="+p.user)
			c.Stderr = os.Stderr
			got, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			got = pyverbsNoise.ReplaceAll(got, []byte("N"))
			file := filepath.Join(pyverbsFolder, p.file+".tsv")
			if *updatePyverbs {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := strings.Split(string(readFile(t, file)), "\n")
			for i, line := range strings.Split(string(got), "\n") {
				if i >= len(want) || line != want[i] {
					t.Errorf("line %d: %q, the table has %q", i+1, line, want[min(i, len(want)-1)])
				}
			}
		})
	}
}

// pyverbsNoise is what differs from run to run in a reason: numbers of devices and addresses.
var pyverbsNoise = regexp.MustCompile(`0x[0-9a-f]{6,}|renderD[0-9]+`)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
