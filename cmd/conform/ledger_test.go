package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

// mustFail are the cases that an entry predicts for certain, and may those that it predicts
// sometimes.
func mustFail(d *report.Deviation) (must, may map[string]bool) {
	must, may = map[string]bool{}, map[string]bool{}
	for _, p := range d.Predicts {
		switch {
		case p.Field != "":
		case p.Sometimes:
			may[p.Case] = true
		default:
			must[p.Case] = true
		}
	}
	return must, may
}

// failsWithout are the cases of a record that fail if an entry is removed: those with a step that
// the entry explains, and that is not as expected.
func failsWithout(t *testing.T, run *report.Run, id string) []string {
	t.Helper()
	var out []string
	for _, c := range run.Cases {
		for _, o := range c.Observations {
			if o.Deviation != id {
				continue
			}
			if asExpected(o) {
				t.Errorf("%s: step %q is explained by %s, and as expected", c.ID, o.Step, id)
			}
			out = append(out, c.ID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// met reports whether a record has a step of a case that an entry predicts for certain: an older
// record may have none.
func met(run *report.Run, d *report.Deviation, id string) bool {
	return slices.ContainsFunc(d.Predicts, func(p report.Prediction) bool {
		return !p.Sometimes && p.Of(id) && slices.ContainsFunc(run.Cases, func(c report.Case) bool {
			return c.ID == id && slices.ContainsFunc(c.Observations, func(o report.Observation) bool { return o.Step == p.Step })
		})
	})
}

// asExpected reports whether an observation meets its own expectation.
func asExpected(o report.Observation) bool {
	got := fmt.Sprint(o.Got)
	if fields, ok := o.Got.(map[string]any); ok {
		got = fmt.Sprint(fields["status"])
	}
	set, ok := o.Want.([]any)
	if !ok {
		set = []any{o.Want}
	}
	return slices.ContainsFunc(set, func(w any) bool { return fmt.Sprint(w) == got })
}

func ledgerAndRules(t *testing.T) (*report.Ledger, *report.Rules) {
	t.Helper()
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := conformance.LoadRules()
	if err != nil {
		t.Fatal(err)
	}
	return ledger, rules
}

// Each entry is taken away in turn: exactly its cases fail, on each record of Soft-RoCE where it
// holds.
func TestRecordsWithoutAnEntry(t *testing.T) {
	ledger, rules := ledgerAndRules(t)
	sim, err := report.ReadFile(t.Context(), simRecord("connectx-5"))
	if err != nil {
		t.Fatal(err)
	}
	bad := func(run *report.Run, l *report.Ledger, by string) (ids []string) {
		c, err := report.Diff(sim, run, report.DiffOptions{Common: true, Ledger: l, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range c.Cases {
			if by == "" && x.Class.Bad() || by != "" && slices.ContainsFunc(x.Differences, func(d report.Difference) bool { return d.Deviation == by && d.Follows == "" }) {
				ids = append(ids, x.ID)
			}
		}
		return ids
	}
	seen := map[string]bool{}
	for path, run := range recordings(t) {
		for _, d := range ledger.Of(run.Platform()) {
			must, may := mustFail(d)
			maps.DeleteFunc(must, func(id string, _ bool) bool { return !met(run, d, id) })
			got := failsWithout(t, run, d.ID)
			for _, id := range got {
				if !must[id] && !may[id] && !may["*"] {
					t.Errorf("%s without %s: %s fails, which it does not predict", path, d.ID, id)
				}
				seen[d.ID] = true
				delete(must, id)
			}
			if len(must) > 0 {
				t.Errorf("%s without %s: nothing happens to %v", path, d.ID, slices.Sorted(maps.Keys(must)))
			}
			if slices.ContainsFunc(d.Predicts, func(p report.Prediction) bool { return p.Field != "" }) { // it explains where two runs are compared
				open := bad(run, ledger, "")
				want := append(bad(run, ledger, d.ID), open...)
				slices.Sort(want)
				got := bad(run, ledger.Without(d.ID), "")
				slices.Sort(got)
				if len(want) == len(open) || !slices.Equal(got, slices.Compact(want)) {
					t.Errorf("%s compared without %s: %v, want %v", path, d.ID, got, want)
				}
				seen[d.ID] = true
			}
		}
	}
	for _, d := range ledger.Entries {
		// The stored records have none of the drawn programs, which Soft-RoCE runs in the lab's
		// short runs only.
		drawn := len(d.Predicts) > 0 && !slices.ContainsFunc(d.Predicts, func(p report.Prediction) bool { return !strings.HasPrefix(p.Case, "RAND-") })
		// Nor is a record of a simulated peer stored: scripts/vm-peer makes one, and fails where an
		// entry is missing.
		withPeer := d.Where[report.KeyPeer] == report.SimulatedPeer || strings.HasSuffix(d.Where[report.KeyProfile], report.ResponderSuffix)
		if d.Provider == "rxe" && !seen[d.ID] && !drawn && !withPeer {
			t.Errorf("%s: no committed record shows it", d.ID)
		}
	}
}

// On the simulator the cases that deviate run again without each entry.
func TestSimulatorWithoutAnEntry(t *testing.T) {
	ledger, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, profile := range []string{"connectx-5", "connectx-4", "connectx-5-ib"} {
		platform := report.PlatformOf(profile, nil)
		all := map[string]bool{} // that any entry predicts
		for _, d := range ledger.Of(platform) {
			must, _ := mustFail(d)
			maps.Copy(all, must)
		}
		target, err := simulator.New(simulator.Config{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		runner, _, err := conformance.Prepare(target, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		fails := func(l *report.Ledger) map[string]bool {
			runner.Ledger = l
			out := map[string]bool{}
			for _, it := range items {
				if all[it.Entry.ID] {
					if c := runner.Run(it.Entry, it.Case); c.Outcome.Bad() {
						out[c.ID] = true
					}
				}
			}
			return out
		}
		if got := fails(ledger); len(got) > 0 {
			t.Errorf("%s: %v fail with the whole ledger", profile, got)
		}
		for _, d := range ledger.Of(platform) {
			must, _ := mustFail(d)
			if len(must) == 0 { // of fields alone, which matter where two runs are compared
				continue
			}
			if got := fails(ledger.Without(d.ID)); !maps.Equal(got, must) {
				t.Errorf("%s without %s: %v fail, want %v", profile, d.ID, got, must)
			}
			seen[d.ID] = true
		}
	}
	parts, err := filepath.Glob("../../fixtures/recordings/part/*.json")
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	for _, path := range parts {
		run, err := report.ReadFile(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(seen, seenInPart(t, ledger, run, path))
	}
	for _, d := range ledger.Entries {
		onlyFields := !slices.ContainsFunc(d.Predicts, func(p report.Prediction) bool { return p.Field == "" })
		if d.Provider == "mlx5" && !onlyFields && !seen[d.ID] {
			t.Errorf("%s: neither the simulator nor a committed record shows it", d.ID)
		}
	}
}

// seenInPart are the entries of which a record of the machine's own libmlx5 or kernel on the
// adapter has each case. The record has few cases: without an entry exactly its cases of these
// fail.
func seenInPart(t *testing.T, ledger *report.Ledger, run *report.Run, path string) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range ledger.Of(run.Platform()) {
		must, _ := mustFail(d)
		all := len(must)
		maps.DeleteFunc(must, func(id string, _ bool) bool {
			return !slices.ContainsFunc(run.Cases, func(c report.Case) bool { return c.ID == id })
		})
		if got, want := failsWithout(t, run, d.ID), slices.Sorted(maps.Keys(must)); !slices.Equal(got, want) {
			t.Errorf("%s without %s: %v fail, want %v", path, d.ID, got, want)
		}
		if all > 0 && len(must) == all {
			seen[d.ID] = true
		}
	}
	return seen
}

// Entries of attributes explain where a guest's kernel is compared with the simulator's: without
// one, exactly its cases differ.
func TestGuestsWithoutAnEntryOfAttributes(t *testing.T) {
	ledger, rules := ledgerAndRules(t)
	path := filepath.Join(t.TempDir(), "sim.json")
	if code, out, stderr := command(t, "--profile", "connectx-5-ib", "--label-filter", "DEV-017", "--report", path); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	sim, err := report.ReadFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for kernel, ids := range map[string][]string{"6.1": {"MLX-26"}, "6.12": {"MLX-26", "MLX-29"}, "newest": {"MLX-26", "MLX-29"}} {
		run, err := report.ReadFile(t.Context(), "../../fixtures/recordings/part/guest-"+kernel+".json")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(run.Cases, func(c report.Case) bool { return c.ID == "DEV-017" }) {
			t.Errorf("%s: the record has no DEV-017; make it anew as fixtures/recordings/README.md says", kernel)
			continue
		}
		bad := func(l *report.Ledger) (ids []string) {
			c, err := report.Diff(sim, run, report.DiffOptions{Common: true, Ledger: l, Rules: rules})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range c.Cases {
				if x.Class.Bad() {
					ids = append(ids, x.ID)
				}
			}
			return ids
		}
		if got := bad(ledger); len(got) > 0 {
			t.Errorf("%s: %v differ with the whole ledger", kernel, got)
		}
		for _, id := range ids {
			if got := bad(ledger.Without(id)); !slices.Equal(got, []string{"DEV-017"}) {
				t.Errorf("%s without %s: %v differ, want DEV-017", kernel, id, got)
			}
		}
	}
}

// Whose date of review has passed fails a run; the date can be given.
func TestOverdueEntryFailsTheRun(t *testing.T) {
	args := []string{"--target=sim", "--label-filter", "DEV-001"}
	if code, out, stderr := command(t, append(args, "--today", "2026-11-24")...); code != exitOK {
		t.Errorf("in time: exit %d\n%s%s", code, out, stderr)
	}
	code, out, _ := command(t, append(args, "--today", "2029-01-01")...)
	if code != exitFailed || !strings.Contains(out, "finding: deviation MLX-16 was to be looked at again by 2027-11-20 (owner rdmasim)") {
		t.Errorf("overdue: exit %d\n%s", code, out)
	}
	if code, _, stderr := command(t, append(args, "--today", "21.11.2026")...); code != exitUsage || !strings.Contains(stderr, "not a date such as 2026-11-21") {
		t.Errorf("no date: exit %d, %s", code, stderr)
	}
}

func TestShowExplainsAnEntry(t *testing.T) {
	code, out, stderr := command(t, "show", "rxe-12")
	for _, want := range []string{"RXE-12  an extended CQ: librxe checks wc_flags alone\n", "  provider  rxe\n", "  where     profile hw-rxe\n", "  kind      errno\n",
		"rxe_create_cq_ex of providers/rxe/rxe.c", "to be looked at again by 2027-11-20", "predicts  CQ-006, step \"unknown comp_mask bit\": no errno\n",
		"Extended create with an unknown comp_mask or flag is refused"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, stderr)
		}
	}
	if _, out, _ := command(t, "show", "CQ-006"); !strings.Contains(out, "deviates  on some targets, as in RXE-12\n") {
		t.Errorf("the case does not name its entries:\n%s", out)
	}
	if code, _, stderr := command(t, "show", "RXE-1"); code != exitUsage || !strings.Contains(stderr, "did you mean") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A user's own entries count like those that come with the program, in a run and in a comparison,
// and are checked like them.
func TestLedgerOfTheUser(t *testing.T) {
	head := "provider: mlx5\ndeviations:\n- {id: MINE-01, title: t, where: {profile: connectx-5}, kind: errno, evidence: e, owner: o, opened: \"2026-11-24\", review_by: \"2027-05-01\", predicts: ["
	mine := fileOf(t, "mine.yaml", []byte(head+`{case: DEV-006, step: "query_port 0", got: EIO}]}`+"\n"))
	code, out, _ := command(t, "--target=sim", "--label-filter", "DEV-006", "--ledger", mine)
	if code != exitFailed || !strings.Contains(out, "deviation MINE-01, which predicts EIO, is stale") || !strings.Contains(strings.ReplaceAll(out, "'", ""), "--ledger "+mine) {
		t.Errorf("an entry that does not hold: exit %d\n%s", code, out)
	}
	if code, _, stderr := command(t, "--ledger", fileOf(t, "bad.yaml", []byte(head+"{case: DEV-899, step: s, got: EIO}]}\n"))); code != exitUsage || !strings.Contains(stderr, `bad.yaml:3:`) && !strings.Contains(stderr, `case "DEV-899" is unknown`) {
		t.Errorf("a mistake: exit %d, %s", code, stderr)
	}
	card := func(name string, flags int) string {
		r := &report.Run{Schema: report.Schema, Seed: 1, Target: report.Target{Kind: "hw", Profile: "hw-mlx5"}, Environment: map[string]string{report.KeyProvider: "mlx5"},
			Cases: []report.Case{{ID: "RC-001", Strength: "E", Outcome: report.Pass, Observations: []report.Observation{
				{Step: "receive", Kind: "wc", Want: "SUCCESS", Got: map[string]any{"status": "SUCCESS", "wc_flags": flags}}}}}}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return fileOf(t, name, text)
	}
	field := fileOf(t, "field.yaml", []byte(strings.Replace(head, "connectx-5", "hw-mlx5", 1)+`{case: RC-001, step: receive, field: wc_flags, got: "1"}]}`+"\n"))
	a, b := card("a.json", 0), card("b.json", 1)
	if code, out, _ := command(t, "diff", a, b); code != exitFailed || !strings.Contains(out, "REGRESSION RC-001 receive: wc_flags: 0 -> 1\n") {
		t.Errorf("without the entry: exit %d\n%s", code, out)
	}
	if code, out, stderr := command(t, "diff", "-v", "--ledger", field, a, b); code != exitOK || !strings.Contains(out, "EXPECTED-DEVIATION RC-001 receive: wc_flags: 0 -> 1 (MINE-01)\n") {
		t.Errorf("with it: exit %d\n%s%s", code, out, stderr)
	}
}
