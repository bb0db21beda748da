package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/experiment/sweep/shard"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// partKey is the entry of a record's environment that says which part of a run it is: "1/4". wholeKey has a hash of what the whole
// run consists of: parts of another choice of cases have the same numbers.
const (
	partKey  = "shard"
	wholeKey = "shard_of"
)

// wholeOf is the hash of what a run consists of.
func wholeOf(names []string, more ...any) string {
	h := sha256.New()
	fmt.Fprintln(h, more...)
	for _, n := range names {
		fmt.Fprintln(h, n)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

const shardHelp = "run one part: `i/n` with i from 0, auto/n or auto (the task of a Slurm array or of a Kubernetes indexed job); conform merge puts the reports together"

// part is one of several parts of a run; the zero value is all of it.
type part struct{ index, parts int }

// readPart reads --shard.
func readPart(text, reportFile string) (part, error) {
	if text == "" {
		return part{}, nil
	}
	i, n, err := shard.Parse(text, os.Getenv)
	if err != nil {
		return part{}, usagef("--shard %s: %w", text, err)
	}
	if reportFile == "" {
		return part{}, usagef("--shard %s: conform merge puts parts together by their reports: add --report FILE.json", text)
	}
	return part{i, n}, nil
}

func (p part) String() string { return fmt.Sprintf("%d/%d", p.index, p.parts) }

// of is what belongs to the part.
func of[T any](p part, all []T) []T {
	if p.parts == 0 {
		return all
	}
	var some []T
	for i := p.index; i < len(all); i += p.parts {
		some = append(some, all[i])
	}
	return some
}

// checkParts says what is missing of the parts of a run. A part that is there twice, as after a task that ran again, is used once.
func checkParts(names, parts []string) error {
	have := map[part]string{}
	n := 0
	for i, text := range parts {
		var p part
		if _, err := fmt.Sscanf(text, "%d/%d", &p.index, &p.parts); err != nil || p.index < 0 || p.index >= p.parts || p.String() != text {
			return usagef("%s is not a part of a run that --shard wrote", names[i])
		}
		if n == 0 {
			n = p.parts
		}
		if p.parts != n {
			return usagef("%s is a part of %d, and %s is one of %d: give the parts of one run", names[0], n, names[i], p.parts)
		}
		have[p] = names[i]
	}
	var missing []string
	for i := 0; i < n && len(missing) < mostNamedParts; i++ {
		if p := (part{i, n}); have[p] == "" {
			missing = append(missing, p.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if left := n - len(have) - len(missing); left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	return usagef("parts are missing: run --shard %s%s", strings.Join(missing, ", "), more)
}

// mostNamedParts bounds the missing parts that are named: a record says by itself how many there are.
const mostNamedParts = 20

// mostReport bounds a report of conform mutants, as records are.
const mostReport = 64 << 20

type mergeOptions struct {
	report, today string
	ledgers       []string
	minPass       int
}

func newMerge() *cobra.Command {
	o := &mergeOptions{}
	cmd := &cobra.Command{
		Use:   "merge PART.json...",
		Short: "Put the reports of the parts of a run together",
		Long: "merge reads the reports of all parts of a run (conform --shard i/n, or conform mutants --shard i/n) in any order, writes the\n" +
			"report that the whole run would have written, byte for byte, and judges the run as a whole. Exit status: as of that run.",
		Example: "  conform --shard 0/2 --report 0.json; conform --shard 1/2 --report 1.json\n  conform merge 0.json 1.json --report all.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("merge needs the reports of the parts of a run: conform merge PART.json...")
			}
			if err := input.NamesGiven(cmd.Flags(), "report"); err != nil {
				return usagef("%w", err)
			}
			if _, err := dayOf(o.today); err != nil {
				return err
			}
			toStandard(cmd, &o.report)
			if err := o.distinct(args); err != nil {
				return usagef("%w", err)
			}
			first, err := input.ReadUpTo(cmd.Context(), args[0], mostReport) // once: it may be a pipe
			if err != nil {
				return usagef("%w", err)
			}
			read := func(i int) ([]byte, error) {
				if cmd.Context().Err() != nil {
					return nil, &status{exitInterrupted, fmt.Errorf("interrupted before %s was read", args[i])}
				}
				if i == 0 {
					return first, nil
				}
				text, err := input.ReadUpTo(cmd.Context(), args[i], mostReport)
				if err != nil {
					err = usagef("%w", err)
				}
				return text, err
			}
			if isMutants(first) {
				return mergeMutants(cmd, o, args, read)
			}
			return mergeRuns(cmd, o, args, read)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.report, "report", "", "write the report of the whole run as JSON to `FILE`; - is standard output")
	f.IntVar(&o.minPass, "min-pass", 0, "fail a run in which fewer cases pass than this")
	f.StringArrayVar(&o.ledgers, "ledger", nil, "YAML `FILE` of known deviations that the parts were given; may be repeated")
	f.StringVar(&o.today, "today", "", "`DATE` by which entries of the ledger must have been reviewed (default: today)")
	return cmd
}

// distinct refuses a report that would overwrite a part.
func (o *mergeOptions) distinct(parts []string) error {
	var inputs []outfile.Named
	for _, path := range parts {
		inputs = append(inputs, outfile.Named{Flag: "a part", Path: path})
	}
	for _, path := range o.ledgers {
		inputs = append(inputs, outfile.Named{Flag: "--ledger", Path: path})
	}
	return outfile.Distinct([]outfile.Named{{Flag: "--report", Path: o.report}}, inputs)
}

// write writes the report of the whole run, if one was asked for.
func (o *mergeOptions) write(ctx context.Context, fill func(io.Writer) error) error {
	if o.report == "" {
		return nil
	}
	file, err := create(ctx, o.report)
	if err != nil {
		return err
	}
	if err := file.Commit(fill); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}

// isMutants says whether a text is the report of conform mutants. A packed record is none, or what its reader says.
func isMutants(text []byte) bool {
	var head struct {
		Schema string `json:"schema"`
	}
	return json.Unmarshal(text, &head) == nil && head.Schema == mutantsSchema
}

// reading gives the text of an input by its number.
type reading func(i int) ([]byte, error)

func mergeRuns(cmd *cobra.Command, o *mergeOptions, names []string, read reading) error {
	var runs []*report.Run
	var parts []string
	for i, name := range names {
		text, err := read(i)
		if err != nil {
			return err
		}
		r, err := report.Read(name, bytes.NewReader(text))
		if err != nil {
			return usagef("%w", err)
		}
		runs, parts = append(runs, r), append(parts, r.Environment[partKey])
		if whole := r.Environment[wholeKey]; whole != runs[0].Environment[wholeKey] {
			return usagef("%s and %s are not parts of one run: --label-filter, --repeat or --full differ", names[0], name)
		}
		delete(r.Environment, partKey)
		if err := sameRun(runs[0], r); err != nil {
			return usagef("%s and %s are not parts of one run: %w", names[0], name, err)
		}
	}
	delete(runs[0].Environment, wholeKey)
	if err := checkParts(names, parts); err != nil {
		return err
	}
	if err := sameTwice(names, parts, runs); err != nil {
		return err
	}
	run, err := o.join(cmd.Context(), parts, runs)
	if err != nil {
		return err
	}
	lost := o.write(cmd.Context(), run.WriteJSON)
	printRun(cmd.OutOrStdout(), &runOptions{ledgers: o.ledgers}, run)
	switch {
	case lost != nil:
		return lost
	case run.Incomplete:
		return &status{code: exitInterrupted}
	case !run.OK():
		return &status{code: exitFailed}
	}
	return nil
}

// sameRun says what differs between the records of two parts that only one run can have.
func sameRun(a, b *report.Run) error {
	switch {
	case a.Target != b.Target:
		return fmt.Errorf("they tested %v and %v", a.Target, b.Target)
	case a.Seed != b.Seed:
		return fmt.Errorf("their seeds are %d and %d", a.Seed, b.Seed)
	}
	for _, k := range slices.Sorted(maps.Keys(a.Environment)) {
		if a.Environment[k] != b.Environment[k] {
			return fmt.Errorf("%s is %q and %q", k, a.Environment[k], b.Environment[k])
		}
	}
	if len(a.Environment) != len(b.Environment) {
		return fmt.Errorf("their environments differ")
	}
	return nil
}

// sameTwice refuses a part that is there twice and not the same: one of them would hide what the other saw.
func sameTwice(names, parts []string, runs []*report.Run) error {
	first := map[string]int{}
	for i, p := range parts {
		k, twice := first[p]
		if !twice {
			first[p] = i
			continue
		}
		a, aerr := json.Marshal(runs[k].Cases)
		b, berr := json.Marshal(runs[i].Cases)
		if aerr != nil || berr != nil || !bytes.Equal(a, b) {
			return usagef("%s and %s are both part %s, and differ: conform diff shows where; leave one out", names[k], names[i], p)
		}
	}
	return nil
}

// join makes the record of the whole run.
func (o *mergeOptions) join(ctx context.Context, parts []string, runs []*report.Run) (*report.Run, error) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, err
	}
	ledgers, err := readLedgers(ctx, o.ledgers)
	if err != nil {
		return nil, err
	}
	cases, of := map[string]report.Case{}, map[string]string{}
	run := *runs[0]
	run.Cases, run.Findings = nil, nil
	var late []string // findings that a run adds behind those about it as a whole
	for n, r := range runs {
		for _, c := range r.Cases {
			if p, twice := of[c.ID]; twice && p != parts[n] {
				return nil, usagef("%s is in part %s and in part %s, and a run has each case in one part: run one of them again", c.ID, p, parts[n])
			}
			cases[c.ID], of[c.ID] = c, parts[n]
		}
		run.Incomplete = run.Incomplete || r.Incomplete
		for _, f := range r.Findings {
			list := &run.Findings
			if f == noBaseline {
				list = &late
			}
			if !slices.Contains(*list, f) {
				*list = append(*list, f)
			}
		}
	}
	for _, i := range items {
		if c, ok := cases[i.Entry.ID]; ok {
			run.Cases = append(run.Cases, c)
			delete(cases, i.Entry.ID)
		}
	}
	if len(cases) > 0 {
		return nil, usagef("this suite has no case %s: merge with the program that ran the parts", slices.Sorted(maps.Keys(cases))[0])
	}
	run.Count()
	j := &job{runOptions: &runOptions{minPass: o.minPass, today: o.today}, whole: len(run.Cases) == len(items)}
	policy, err := conformance.LoadPolicy(run.Target.Profile, run.Environment)
	if err != nil {
		return nil, err
	}
	ledger, err := conformance.LoadLedger(ledgers...)
	if err != nil {
		return nil, err
	}
	j.judge(&run, policy, ledger)
	run.Findings = append(run.Findings, late...)
	return &run, nil
}

// mutantPart says in the report of a part of conform mutants what the whole is.
type mutantPart struct {
	Part   string `json:"part"`
	Of     string `json:"of"` // hash of what the whole run consists of
	Matrix bool   `json:"matrix,omitempty"`
}

func mergeMutants(cmd *cobra.Command, o *mergeOptions, names []string, read reading) error {
	if o.minPass > 0 || len(o.ledgers) > 0 || o.today != "" {
		return usagef("--min-pass, --ledger and --today are for runs of the suite, and %s is a report of conform mutants: leave them out", names[0])
	}
	var parts []string
	results, from := map[string]mutantResult{}, map[string]int{}
	var whole *mutantReport
	for i, name := range names {
		text, err := read(i)
		if err != nil {
			return err
		}
		r := &mutantReport{}
		if err := input.JSON(text, r); err != nil {
			return usagef("%s is not a report of conform mutants: %w", name, err)
		}
		if r.Schema != mutantsSchema || r.Part == nil {
			return usagef("%s is not a part of a run of conform mutants, which --shard writes", name)
		}
		if whole == nil {
			whole = &mutantReport{Schema: r.Schema, Profile: r.Profile, Seed: r.Seed, Part: r.Part, Summary: map[string]int{killed: 0, survived: 0, mutantFail: 0}, Mutants: []mutantResult{}}
		}
		if r.Profile != whole.Profile || r.Seed != whole.Seed || r.Part.Matrix != whole.Part.Matrix || r.Part.Of != whole.Part.Of {
			return usagef("%s and %s are not parts of one run: profile, seed, --matrix or the choice of mutants and cases differ", names[0], name)
		}
		parts = append(parts, r.Part.Part)
		whole.Incomplete = whole.Incomplete || r.Incomplete
		for _, m := range r.Mutants {
			if m.Outcome != killed && m.Outcome != survived && m.Outcome != mutantFail {
				return usagef("%s: mutant %s has the outcome %q, which is not %s, %s or %s", name, m.Name, m.Outcome, killed, survived, mutantFail)
			}
			if k, twice := from[m.Name]; twice && (k == i || parts[k] != parts[i] || !reflect.DeepEqual(results[m.Name], m)) {
				return usagef("mutant %s is in %s and in %s, and the two differ: leave one out, or run it again", m.Name, names[k], name)
			}
			results[m.Name], from[m.Name] = m, i
		}
	}
	if err := checkParts(names, parts); err != nil {
		return err
	}
	matrix := whole.Part.Matrix
	whole.Part = nil
	for _, m := range mutant.All() {
		if r, ok := results[m.Name]; ok {
			whole.Summary[r.Outcome]++
			whole.Mutants = append(whole.Mutants, r)
			delete(results, m.Name)
		}
	}
	if len(results) > 0 {
		return usagef("there is no mutant %s: merge with the program that ran the parts", slices.Sorted(maps.Keys(results))[0])
	}
	explained, err := readSurvivors()
	if err != nil {
		return err
	}
	all := len(whole.Mutants) == len(mutant.All())
	findings := explained.judge(whole, all)
	if matrix && all {
		items, err := conformance.Items(conformance.Suite())
		if err != nil {
			return err
		}
		whole.Idle = idleCases(items, whole)
	}
	lost := o.write(cmd.Context(), whole.writeJSON)
	printMutants(cmd.OutOrStdout(), whole, explained, findings)
	switch {
	case lost != nil:
		return lost
	case whole.Incomplete:
		return &status{code: exitInterrupted}
	case len(findings) > 0:
		return &status{code: exitFailed}
	}
	return nil
}
