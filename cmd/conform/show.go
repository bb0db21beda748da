package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

func newShow() *cobra.Command {
	var ledgers []string
	cmd := &cobra.Command{
		Use:     "show ID...",
		Short:   "Print what cases assert, expect and need, or what entries of the ledger of deviations say",
		Example: "  conform show RC-013\n  conform show RXE-12",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("show needs the ID of a case, for example RC-013, or of an entry of the ledger, for example RXE-12")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			more, err := readLedgers(cmd.Context(), ledgers)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), ids, more)
		},
	}
	cmd.Flags().StringArrayVar(&ledgers, "ledger", nil, "add a YAML `FILE` of known deviations to those that come with the program; its mistakes are reported")
	return cmd
}

func show(w io.Writer, ids []string, more []conformance.LedgerFile) error {
	cat, done, err := suiteItems()
	if err != nil {
		return err
	}
	ledger, err := conformance.LoadLedger(more...)
	if err != nil {
		return err
	}
	rules, err := conformance.LoadRules()
	if err != nil {
		return err
	}
	for n, id := range ids {
		id = strings.ToUpper(id)
		e, ok := cat.Find(id)
		d := ledger.Find(id)
		if !ok && d == nil {
			if err := meantCase(id); err != nil {
				return err
			}
			const where = "; conform list shows the areas, and conform list RC the cases of one"
			return usagef("unknown case %q%s", id, cmp.Or(input.Suggest(id, append(allIDs(cat), entryIDs(ledger)...)), where))
		}
		if n > 0 {
			fmt.Fprintln(w)
		}
		if d != nil {
			showEntry(w, cat, d)
			continue
		}
		fmt.Fprintf(w, "%s  %s\n", e.ID, e.Text)
		strength := map[conformance.Strength]string{conformance.Exact: "exactly", conformance.Set: "one of a set, recorded",
			conformance.Record: "to be recorded on hardware first"}[e.Strength]
		expected := cmp.Or(e.Expected, "as asserted")
		fmt.Fprintf(w, "  expected  %s (%s: %s)\n", expected, e.Strength, strength)
		fmt.Fprintf(w, "  needs     %s\n", orNone(e.Needs))
		fmt.Fprintf(w, "  sources   %s\n", orNone(e.Sources))
		fmt.Fprintf(w, "  runs      %s\n", e.Runs)
		if e.Judges != "" {
			fmt.Fprintf(w, "  judges    the %s alone\n", e.Judges)
		}
		if i, ok := done[id]; ok {
			fmt.Fprintf(w, "  code      %s\n", i.Case.Where)
		} else {
			fmt.Fprintf(w, "  code      missing: it waits for %s\n", cat.Waits(e))
		}
		for _, r := range rules.All() {
			if of, err := path.Match(r.Case, id); err == nil && of {
				fmt.Fprintf(w, "  compared  %q: %s, since: %s\n", r.Step, &r, r.Because)
			}
		}
		if known := entriesOf(ledger, id); len(known) > 0 {
			fmt.Fprintf(w, "  deviates  on some targets, as in %s\n", strings.Join(known, ", "))
		}
	}
	return nil
}

// showEntry explains an entry of the ledger.
func showEntry(w io.Writer, cat *conformance.Catalogue, d *report.Deviation) {
	fmt.Fprintf(w, "%s  %s\n", d.ID, d.Title)
	fmt.Fprintf(w, "  provider  %s\n", d.Provider)
	var where []string
	for _, k := range slices.Sorted(maps.Keys(d.Where)) {
		where = append(where, k+" "+d.Where[k])
	}
	fmt.Fprintf(w, "  where     %s\n", strings.Join(where, ", "))
	fmt.Fprintf(w, "  kind      %s\n", d.Kind)
	fmt.Fprintf(w, "  evidence  %s\n", d.Evidence)
	fmt.Fprintf(w, "  owner     %s, opened %s, to be looked at again by %s\n", d.Owner, d.Opened, d.ReviewBy)
	for i := range d.Predicts {
		p := &d.Predicts[i]
		step := p.Step
		if p.Field != "" {
			step += ", field " + p.Field
		}
		bound := ""
		if p.Sometimes {
			bound = ", or what is expected"
		}
		if p.AtMost > 0 {
			bound += fmt.Sprintf(" (in %s of a run at most)", plain.Count(p.AtMost, "step"))
		}
		fmt.Fprintf(w, "  predicts  %s, step %q: %s%s\n", p.Case, step, p.Got, bound)
		if e, ok := cat.Find(p.Case); ok && (i == 0 || d.Predicts[i-1].Case != p.Case) {
			fmt.Fprintf(w, "            %s: %s (%s)\n", e.Text, cmp.Or(e.Expected, "as asserted"), e.Strength)
		}
	}
}

// entriesOf names the entries that predict something of a case.
func entriesOf(l *report.Ledger, id string) []string {
	var out []string
	for _, d := range l.Entries {
		if slices.ContainsFunc(d.Predicts, func(p report.Prediction) bool { return p.Case == id }) {
			out = append(out, d.ID)
		}
	}
	return out
}

func entryIDs(l *report.Ledger) []string {
	var out []string
	for _, d := range l.Entries {
		out = append(out, d.ID)
	}
	return out
}
