package mutants

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// Schema names the format of a report.
const Schema = "rdmasim/mutants/1"

// Report holds the outcome of each mutant.
type Report struct {
	Schema     string         `json:"schema"`
	Profile    string         `json:"profile"`
	Seed       uint64         `json:"seed"`
	Part       *Part          `json:"shard,omitempty"`
	Incomplete bool           `json:"incomplete,omitempty"`
	Summary    map[string]int `json:"summary"`
	Mutants    []Result       `json:"mutants"`
	// Idle are the cases of strength E or S that kill no mutant, with --matrix of all mutants.
	Idle []string `json:"idle,omitempty"`
}

// Result is the outcome of a mutant. Case and Step are those of the assertion that killed it.
type Result struct {
	Name    string `json:"name"`
	Area    string `json:"area"`
	Rule    string `json:"rule"`
	Outcome string `json:"outcome"`
	Case    string `json:"case"`
	Step    string `json:"step"`
	// Kills is how many cases killed it, and Cases which, with --matrix.
	Kills int      `json:"kills,omitempty"`
	Cases []string `json:"cases,omitempty"`
	// Reason is that of the first case that ended by no assertion, if the outcome is Failed.
	Reason string `json:"reason,omitempty"`
}

func newReport(c *Config, mutants []mutant.Mutant, fates []fate, interrupted bool) *Report {
	r := &Report{Schema: Schema, Profile: c.Identity, Seed: c.Seed, Incomplete: interrupted,
		Summary: map[string]int{Killed: 0, Survived: 0, Failed: 0}, Mutants: []Result{}}
	for i, m := range mutants {
		f := fates[i]
		if !f.judged {
			r.Incomplete = true
			continue
		}
		res := Result{Name: m.Name, Area: m.Area, Rule: m.Rule, Outcome: f.outcome}
		switch f.outcome {
		case Killed:
			res.Case, res.Step = f.kill.ID, stepOf(f.kill)
		case Failed:
			res.Reason = f.reason
		}
		if c.Matrix && c.Every <= 1 {
			res.Kills, res.Cases = len(f.kills), slices.Sorted(slices.Values(f.kills))
		}
		r.Summary[f.outcome]++
		r.Mutants = append(r.Mutants, res)
	}
	return r
}

// idleCases are the cases of strength E or S that killed none of the mutants.
func idleCases(items []conformance.Item, r *Report) []string {
	m := &Matrix{}
	for _, res := range r.Mutants {
		m.Mutants = append(m.Mutants, MatrixRow{Name: res.Name, Kills: res.Cases})
	}
	return m.idle(items)
}

// mustKill says whether a row has to kill a mutant, or to say why it does not: those of strength H
// assert nothing firm.
func mustKill(e conformance.Entry) bool {
	return e.Strength == conformance.Exact || e.Strength == conformance.Set
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// Survivors is the committed list of mutants that no case can kill.
type Survivors struct {
	Survivors []Survivor `yaml:"survivors"`
}

// Survivor is a mutant that no case can kill, and why.
type Survivor struct {
	Name   string `yaml:"name"`
	Reason string `yaml:"reason"`
}

const survivorsFile = "mutants/survivors.yaml"

// ReadSurvivors returns the committed list, fixtures/mutants/survivors.yaml.
func ReadSurvivors() (*Survivors, error) {
	text, err := fixtures.Read(survivorsFile)
	if err != nil {
		return nil, err
	}
	return parseSurvivors(survivorsFile, text)
}

func parseSurvivors(file string, text []byte) (*Survivors, error) {
	s := &Survivors{}
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

// Reason returns why no case can kill a mutant, or "" if the mutant is not listed.
func (s *Survivors) Reason(name string) string {
	for _, v := range s.Survivors {
		if v.Name == name {
			return v.Reason
		}
	}
	return ""
}

// judge lists what is wrong with a run: mutants that survive without an explanation, and
// explanations of mutants that were killed or, in a run of all mutants, that do not exist.
func (s *Survivors) judge(r *Report, all bool) []string {
	var findings []string
	for _, m := range r.Mutants {
		why := s.Reason(m.Name)
		switch {
		case m.Outcome == Killed && why != "":
			findings = append(findings, fmt.Sprintf("%s is killed by %s: remove it from fixtures/%s", m.Name, m.Case, survivorsFile))
		case m.Outcome == Survived && why == "":
			findings = append(findings, fmt.Sprintf("%s survives: sharpen a case, or explain in fixtures/%s why none can see it", m.Name, survivorsFile))
		case m.Outcome == Failed && why == "":
			findings = append(findings, fmt.Sprintf("%s is killed by no assertion, and not all cases ended: %s", m.Name, m.Reason))
		}
	}
	if !all || r.Incomplete {
		return findings
	}
	for _, v := range s.Survivors {
		if !slices.ContainsFunc(r.Mutants, func(m Result) bool { return m.Name == v.Name }) {
			findings = append(findings, fmt.Sprintf("fixtures/%s explains %s, and there is no such mutant", survivorsFile, v.Name))
		}
	}
	return findings
}
