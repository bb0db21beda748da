package layering

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// lent are the modules of others that conform may need. It is the first command that a newcomer
// runs, from an empty cache: each module more is loaded and compiled by everybody.
var lent = []string{
	"github.com/Masterminds/semver/v3", "github.com/go-logr/logr", "golang.org/x/mod", "golang.org/x/sync", "golang.org/x/tools", // Ginkgo's
	"github.com/goccy/go-yaml",
	"github.com/google/gopacket",                                                      // the link layers of other programs' captures
	"github.com/mitchellh/colorstring", "github.com/rivo/uniseg", "golang.org/x/term", // of the progress bar
	"github.com/onsi/ginkgo/v2", "github.com/onsi/gomega",
	"github.com/schollz/progressbar/v3",
	"github.com/spf13/cobra", "github.com/spf13/pflag",
	"golang.org/x/sys",
}

// foreign are rooms of ours that conform has no use for, with what they bring: charts, Parquet,
// Slurm, statistics, loads.
var foreign = []string{"experiment", "experiment/sweep", "experiment/sweep/grid", "experiment/sweep/store", "experiment/sweep/slurm", "workload", "workload/perftest", "workload/perftest/perf", "attach"}

// most is how many packages conform may consist of, with those of the standard library: 373, and
// some room for the toolchain's own.
const most = 400

// TestWhatConformNeeds: what conform compiles without the tag hw stays as little as it is.
func TestWhatConformNeeds(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", "./cmd/conform")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n, used := 0, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		n++
		path, mod, _ := strings.Cut(strings.TrimSpace(line), " ")
		used[mod] = true
		switch {
		case mod == strings.TrimSuffix(module, "/"):
			if r := room(path); slices.Contains(foreign, r) {
				t.Errorf("conform compiles %s, of %s: go list -deps ./cmd/conform; move what it needs to a package of its own", path, r)
			}
		case mod != "" && !slices.Contains(lent, mod):
			t.Errorf("conform compiles %s, of module %s, which it did not need: does it give as much as it costs?", path, mod)
		}
		if strings.HasPrefix(path, "github.com/onsi/gomega") && path != "github.com/onsi/gomega/types" {
			t.Errorf("conform compiles %s: only Gomega's types are cheap, and package match has matchers", path)
		}
	}
	if n > most {
		t.Errorf("conform consists of %d packages, at most %d", n, most)
	}
	for _, mod := range lent {
		if !used[mod] {
			t.Errorf("conform no longer needs %s: strike it out", mod)
		}
	}
}
