// Package deadcode checks that no function of the module is unreachable from its programs and
// tests.
package deadcode

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// reached lists what is called from where the analysis does not see, and from where.
var reached = map[string]string{
	"hw/mlx5: pd.caller":                  "called by hwAlloc and hwFree",
	"hw/mlx5: hwAlloc":                    "called by libibverbs, through C",
	"hw/mlx5: hwFree":                     "called by libibverbs, through C",
	"hw/mlx5: thread.holdPanic":           "called by hwAlloc and hwFree",
	"roce: PutVCRC":                       "exported, for programs that build native InfiniBand packets",
	"conformance/target/hardware: Player": "for a test binary of another project (docs/embed.md)",
	"attach/exec_test: ExampleRun":        "shown by go doc and compiled; what it prints depends on the machine",
}

// All code is looked at, that of the tag hw too; generated code is not reported.
func TestNoDeadCode(t *testing.T) {
	if os.Getenv("RDMASIM_DEADCODE") == "" {
		t.Skip("needs RDMASIM_DEADCODE=1, as make deadcode and make soak set it: the analysis takes more than a minute of CPU time")
	}
	if _, err := os.Stat("/usr/include/infiniband/mlx5dv.h"); err != nil && os.Getenv("RDMASIM_NEED_HEADERS") != "1" {
		t.Skip("needs infiniband/mlx5dv.h for code with the tag hw (package libibverbs-dev)")
	}
	program, err := exec.Command("go", "tool", "-n", "deadcode").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strings.TrimSpace(string(program)), "-json", "-test", "-tags", "hw,netgo,osusergo", "./...")
	cmd.Dir = "../.."
	// cgo's output names the folder that it was made in. A build cache of several checkouts hands
	// out that of another one for some variants of a package, and what is called in one variant
	// seems dead in the other: a cache for here.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOCACHE="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []struct {
		Path  string
		Funcs []struct {
			Name     string
			Position struct{ Line int }
		}
	}
	if err := json.Unmarshal(out, &packages); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range packages {
		folder := strings.TrimPrefix(strings.TrimSuffix(p.Path, ".test"), "github.com/rdmasim/rdmasim/")
		for _, f := range p.Funcs {
			if strings.HasPrefix(f.Name, "_cgoexp_") {
				continue // what cgo makes of an exported function
			}
			name := folder + ": " + f.Name
			if seen[name] = true; reached[name] == "" {
				t.Errorf("%s (line %d): remove it, or say in this test from where it is called", name, f.Position.Line)
			}
		}
	}
	for name := range reached {
		if !seen[name] {
			t.Errorf("%s is listed here as called from outside, but the analysis reaches it or it is gone", name)
		}
	}
}
