package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/report"
)

// enough is how many cases a record shows to pass at least.
const enough = 250

// provenance is what a record does not say of itself.
type provenance struct {
	KernelPackage string `yaml:"kernel_package"`
	RDMACore      string `yaml:"rdma_core"`
	Emulator      string `yaml:"emulator"`
	Command       string `yaml:"command"`
	Date          string `yaml:"date"`
	Commit        string `yaml:"commit"`
	// Open are the cases that nothing explains yet, each with what is known.
	Open map[string]string `yaml:"open"`
}

// recordings are the records of Soft-RoCE, by path.
func recordings(t *testing.T) map[string]*report.Run {
	t.Helper()
	paths, err := filepath.Glob("../../fixtures/recordings/*.json.gz")
	if err != nil || len(paths) < 2 {
		t.Fatalf("recordings %v, %v", paths, err)
	}
	runs := map[string]*report.Run{}
	for _, path := range paths {
		if runs[path], err = report.ReadFile(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	return runs
}

func TestRecordingsHoldWithCatalogueAndLedger(t *testing.T) {
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for path, run := range recordings(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			open := checkProvenance(t, path, run).Open
			if pass := conformance.Passed(run.Cases); pass < enough || len(run.Findings) > 0 || run.Incomplete || run.Target.Profile != "hw-rxe" {
				t.Errorf("%s: %d cases pass, %v, findings %q", run.Target.Profile, pass, run.Summary, run.Findings)
			}
			entries := ledger.Of(run.Platform())
			for _, c := range run.Cases {
				if c.Outcome.Bad() && open[c.ID] == "" {
					t.Errorf("%s is %s: %s", c.ID, c.Outcome, c.Reason)
				}
				if e, ok := cat.Find(c.ID); !ok || e.Area != c.Area || string(e.Strength) != c.Strength {
					t.Errorf("%s, strength %s, is not of the catalogue", c.ID, c.Strength)
				}
				for _, o := range c.Observations {
					if o.Deviation != "" && !predicted(entries, o.Deviation, c.ID, o.Step) {
						t.Errorf("%s: the ledger has no deviation %s of step %q on %v", c.ID, o.Deviation, o.Step, run.Platform())
					}
				}
			}
		})
	}
}

// predicted reports whether an entry says something of a step of a case.
func predicted(entries []*report.Deviation, entry, id, step string) bool {
	return slices.ContainsFunc(entries, func(d *report.Deviation) bool {
		return d.ID == entry && slices.ContainsFunc(d.Predicts, func(x report.Prediction) bool { return x.Of(id) && x.Step == step })
	})
}

// checkProvenance reads how a record was made, and holds it to what the record says.
func checkProvenance(t *testing.T, record string, run *report.Run) provenance {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(record, ".json.gz") + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p provenance
	if err := yaml.UnmarshalWithOptions(text, &p, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	kernel := run.Environment[report.KeyKernel]
	if kernel == "" || p.KernelPackage != "linux-image-"+kernel {
		t.Errorf("package %q, and the record is of kernel %q", p.KernelPackage, kernel)
	}
	if core := run.Environment[report.KeyRDMACore]; core == "" || !strings.Contains(p.RDMACore, core) {
		t.Errorf("rdma-core %q, and the record is of %q", p.RDMACore, core)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil || p.Commit == "" || p.Emulator == "" || !strings.Contains(p.Command, "--target=hw") {
		t.Errorf("%+v: %v", p, err)
	}
	return p
}

// The simulator against Soft-RoCE: every difference is one that the ledger or the catalogue explains, but for the
// cases that are called open, which are bad there or different.
func TestSimulatorAgainstRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the whole suite")
	}
	path := filepath.Join(t.TempDir(), "sim.json")
	if code, out, stderr := command(t, "--target=sim", "--report", path); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	sim, err := report.ReadFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	for path, run := range recordings(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			open := checkProvenance(t, path, run).Open
			c, err := report.Diff(sim, run, report.DiffOptions{Common: true, Ledger: ledger})
			if err != nil || len(c.Cases) < len(run.Cases) {
				t.Fatalf("%d of %d cases compared: %v", len(c.Cases), len(run.Cases), err)
			}
			for _, x := range c.Cases {
				if _, known := open[x.ID]; known != (x.Class.Bad() || x.B.Bad()) {
					t.Errorf("%s is %s, and open %t: %s %+v", x.ID, x.Class, known, x.Reason, x.Differences)
				}
			}
		})
	}
}
