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
	"github.com/rdmasim/rdmasim/conformance/report"
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

// The simulator against Soft-RoCE: every difference is one that the ledger or the catalogue
// explains, but for the cases that are called open, which are bad there or different.
func TestSimulatorAgainstRecordings(t *testing.T) {
	sim, err := report.ReadFile(t.Context(), simRecord("connectx-5")) // that the simulator shows the same is another test
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := conformance.LoadRules()
	if err != nil {
		t.Fatal(err)
	}
	for path, run := range recordings(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			open := checkProvenance(t, path, run).Open
			c, err := report.Diff(sim, run, report.DiffOptions{Common: true, Ledger: ledger, Rules: rules})
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

// Soft-RoCE of two kernels: a line for each case that is worth a look, each with the class that it
// has by what the kernels' sources say, and nothing fails.
func TestTwoKernels(t *testing.T) {
	const folder = "../../fixtures/recordings/"
	want := map[string]string{
		"PD-010": "CHANGED", "QPS-012": "CHANGED", "UD-013": "CHANGED", "SRQ-005": "CHANGED", "MW-020": "CHANGED", "ERR-018": "CHANGED",
		"QPS-010": "IMPROVEMENT", "POST-002": "IMPROVEMENT", "POST-003": "IMPROVEMENT", "UD-006": "IMPROVEMENT", "ERR-012": "IMPROVEMENT", "WIRE-031": "IMPROVEMENT",
		"POST-012": "NEW-DEVIATION", "UC-006": "NEW-DEVIATION", "SRQ-016": "NEW-DEVIATION", "MR-001": "NEW-DEVIATION", "MR-017": "NEW-DEVIATION",
		"MW-004": "NEW-DEVIATION", "MW-005": "NEW-DEVIATION", "MW-009": "DRIFT-IN-SET",
	}
	code, out, stderr := command(t, "diff", folder+"rxe-6.1.json.gz", folder+"rxe-6.12.json.gz")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || len(lines) >= 30 {
		t.Errorf("exit %d, %d lines\n%s%s", code, len(lines), out, stderr)
	}
	for _, line := range lines[:len(lines)-3] { // the command, the sum, the end
		class, rest, _ := strings.Cut(line, " ")
		id, _, _ := strings.Cut(rest, " ")
		if want[id] != class || !strings.Contains(line, " -> ") {
			t.Errorf("not %q: %s", want[id], line)
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("not printed: %v", want)
	}
	for i, part := range []string{"again: conform --target=hw --device rxe0 --seed 1 --label-filter 'PD-010 || ", " SAME, ", "ok: 381 of 453 cases compared, kernel 6.1.0-56-amd64 against kernel 6.12.117"} {
		if line := lines[len(lines)-3+i]; !strings.Contains(line, part) {
			t.Errorf("%q is not in %s", part, line)
		}
	}
	// What a case saw is all there with -v.
	if _, all, _ := command(t, "diff", "-v", folder+"rxe-6.1.json.gz", folder+"rxe-6.12.json.gz"); !strings.Contains(all, "granted max_wr") || !strings.Contains(all, `follows from "reg_mr of 1073741824 bytes at offset 1"`) {
		t.Errorf("with -v:\n%s", all)
	}
}
