package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// mutantsSchema names the format of the report.
const mutantsSchema = "rdmasim/mutants/1"

// mutantReport is what --report writes.
type mutantReport struct {
	Schema     string         `json:"schema"`
	Profile    string         `json:"profile"`
	Seed       uint64         `json:"seed"`
	Part       *mutantPart    `json:"shard,omitempty"`
	Incomplete bool           `json:"incomplete,omitempty"`
	Summary    map[string]int `json:"summary"`
	Mutants    []mutantResult `json:"mutants"`
	// Idle are the cases of strength E or S that kill no mutant, with --matrix of all mutants.
	Idle []string `json:"idle,omitempty"`
}

// mutantResult is one mutant in it. Case and Step are those of the assertion that killed it.
type mutantResult struct {
	Name    string `json:"name"`
	Area    string `json:"area"`
	Rule    string `json:"rule"`
	Outcome string `json:"outcome"`
	Case    string `json:"case"`
	Step    string `json:"step"`
	// Kills is how many cases killed it, and Cases which, with --matrix.
	Kills int      `json:"kills,omitempty"`
	Cases []string `json:"cases,omitempty"`
	// Reason is what the first case met that ended by no assertion, of an error.
	Reason string `json:"reason,omitempty"`
}

func newMutantReport(o *mutantOptions, mutants []mutant.Mutant, fates []fate, interrupted bool) *mutantReport {
	r := &mutantReport{Schema: mutantsSchema, Profile: o.sim.identity(), Seed: o.seed, Incomplete: interrupted,
		Summary: map[string]int{killed: 0, survived: 0, mutantFail: 0}, Mutants: []mutantResult{}}
	for i, m := range mutants {
		f := fates[i]
		if !f.judged {
			r.Incomplete = true
			continue
		}
		res := mutantResult{Name: m.Name, Area: m.Area, Rule: m.Rule, Outcome: f.outcome}
		switch f.outcome {
		case killed:
			res.Case, res.Step = f.kill.ID, stepOf(f.kill)
		case mutantFail:
			res.Reason = f.reason
		}
		if o.matrix && o.every == 1 {
			res.Kills, res.Cases = len(f.kills), slices.Sorted(slices.Values(f.kills))
		}
		r.Summary[f.outcome]++
		r.Mutants = append(r.Mutants, res)
	}
	return r
}

// idleCases are the cases of strength E or S that killed none of the mutants.
func idleCases(items []conformance.Item, r *mutantReport) []string {
	m := &matrix{}
	for _, res := range r.Mutants {
		m.Mutants = append(m.Mutants, matrixRow{Name: res.Name, Kills: res.Cases})
	}
	return m.idle(items)
}

// mustKill says whether a row has to kill a mutant, or to say why it does not: those of strength H assert nothing firm.
func mustKill(e conformance.Entry) bool {
	return e.Strength == conformance.Exact || e.Strength == conformance.Set
}

func (r *mutantReport) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// survivors is the checked-in list of the mutants that no case can kill.
type survivors struct {
	Survivors []survivor `yaml:"survivors"`
}

type survivor struct {
	Name   string `yaml:"name"`
	Reason string `yaml:"reason"`
}

const survivorsFile = "mutants/survivors.yaml"

func readSurvivors() (*survivors, error) {
	text, err := fixtures.Read(survivorsFile)
	if err != nil {
		return nil, err
	}
	return parseSurvivors(survivorsFile, text)
}

func parseSurvivors(file string, text []byte) (*survivors, error) {
	s := &survivors{}
	doc, err := input.Decode(file, text, s)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, v := range s.Survivors {
		if v.Name == "" || v.Reason == "" || seen[v.Name] {
			return nil, doc.Errorf("survivors."+strconv.Itoa(i), "%q lacks a name or a reason, or is listed twice", v.Name)
		}
		seen[v.Name] = true
	}
	return s, nil
}

func (s *survivors) reason(name string) string {
	for _, v := range s.Survivors {
		if v.Name == name {
			return v.Reason
		}
	}
	return ""
}

// judge lists what is wrong with a run: mutants that survive without an explanation, and
// explanations of mutants that were killed or, in a run of all mutants, that do not exist.
func (s *survivors) judge(r *mutantReport, all bool) []string {
	var findings []string
	for _, m := range r.Mutants {
		why := s.reason(m.Name)
		switch {
		case m.Outcome == killed && why != "":
			findings = append(findings, fmt.Sprintf("%s is killed by %s: remove it from fixtures/%s", m.Name, m.Case, survivorsFile))
		case m.Outcome == survived && why == "":
			findings = append(findings, fmt.Sprintf("%s survives: sharpen a case, or explain in fixtures/%s why none can see it", m.Name, survivorsFile))
		case m.Outcome == mutantFail && why == "":
			findings = append(findings, fmt.Sprintf("%s is killed by no assertion, and not all cases ended: %s", m.Name, m.Reason))
		}
	}
	if !all || r.Incomplete {
		return findings
	}
	for _, v := range s.Survivors {
		if !slices.ContainsFunc(r.Mutants, func(m mutantResult) bool { return m.Name == v.Name }) {
			findings = append(findings, fmt.Sprintf("fixtures/%s explains %s, and there is no such mutant", survivorsFile, v.Name))
		}
	}
	return findings
}

func listMutants(w io.Writer, mutants []mutant.Mutant) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tAREA\tRULE THAT IT BREAKS")
	for _, m := range mutants {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", m.Name, m.Area, m.Rule)
	}
	return tw.Flush()
}

// printMutants is the result for people.
func printMutants(w io.Writer, r *mutantReport, s *survivors, findings []string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tAREA\tOUTCOME\tCASE\tASSERTION")
	for _, m := range r.Mutants {
		outcome, how := m.Outcome, m.Step
		if m.Outcome != killed {
			how = m.Reason
			if why := s.reason(m.Name); why != "" {
				outcome, how = outcome+" (explained)", why
			}
		}
		if m.Kills > 1 {
			how += fmt.Sprintf(" (and %d more cases)", m.Kills-1)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Area, outcome, m.Case, how)
	}
	_ = tw.Flush()
	if len(r.Idle) > 0 {
		fmt.Fprintf(w, "%s of strength E or S kill none: %s\n", plain.Count(len(r.Idle), "case"), strings.Join(r.Idle, ", "))
	}
	for _, f := range findings {
		fmt.Fprintln(w, "fail:", f)
	}
	head := "ok:"
	if len(findings) > 0 {
		head = "FAIL:"
	}
	if r.Incomplete {
		head = "interrupted:"
	}
	fmt.Fprintf(w, "%s %s on sim %s, seed %d: %d killed, %d survived, %d error\n", head, plain.Count(len(r.Mutants), "mutant"), r.Profile, r.Seed,
		r.Summary[killed], r.Summary[survived], r.Summary[mutantFail])
}
