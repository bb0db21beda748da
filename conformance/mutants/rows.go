package mutants

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// rowsFile is the checked-in list of the rows that kill no mutant.
const rowsFile = "mutants/rows.yaml"

// rows say why rows of strength E or S kill no mutant, and which cases take long.
type rows struct {
	// Idle are rows for which nobody knows a mutant.
	Idle []idleRow `yaml:"idle"`
	// Elsewhere are cases that the usual profile lacks something for, and profiles on which they
	// run.
	Elsewhere []elsewhere `yaml:"elsewhere"`
	// Long are cases that take many times as much CPU time as the others: a part of the matrix has
	// few of their pairs.
	Long []string `yaml:"long"`
}

type idleRow struct {
	ID     string `yaml:"id"`
	Reason string `yaml:"reason"`
}

type elsewhere struct {
	Profile string   `yaml:"profile"`
	Cases   []string `yaml:"cases"`
}

func readRows() (*rows, error) {
	text, err := fixtures.Read(rowsFile)
	if err != nil {
		return nil, err
	}
	return parseRows(rowsFile, text)
}

func parseRows(file string, text []byte) (*rows, error) {
	r := &rows{}
	doc, err := input.Decode(file, text, r)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, v := range r.Idle {
		if v.ID == "" || v.Reason == "" || seen[v.ID] {
			return nil, doc.Errorf("idle."+strconv.Itoa(i), "%q lacks an id or a reason, or is listed twice", v.ID)
		}
		seen[v.ID] = true
	}
	return r, nil
}

func (r *rows) reason(id string) string {
	for _, v := range r.Idle {
		if v.ID == id {
			return v.Reason
		}
	}
	return ""
}

// profile is where a case runs; empty: on the usual profile.
func (r *rows) profile(id string) string {
	for _, e := range r.Elsewhere {
		if slices.Contains(e.Cases, id) {
			return e.Profile
		}
	}
	return ""
}

// seldom says whether a part of the matrix has few pairs of a case: one that takes long, or needs a
// worker of its own.
func (r *rows) seldom(id string) bool { return slices.Contains(r.Long, id) || r.profile(id) != "" }

// judge lists the rows of strength E or S that kill no mutant and do not say why, and explanations
// of rows that kill one, or need not, or have no case. Idle are the rows that kill none.
func (r *rows) judge(items []conformance.Item, idle []string) []string {
	var findings []string
	for _, id := range idle {
		if r.reason(id) == "" {
			findings = append(findings, fmt.Sprintf("%s kills no mutant: add one that breaks its rule, sharpen the case, or say in fixtures/%s why there is none", id, rowsFile))
		}
	}
	known := map[string]bool{}
	for _, i := range items {
		known[i.Entry.ID] = true
	}
	for _, v := range r.Idle {
		if !slices.Contains(idle, v.ID) {
			findings = append(findings, fmt.Sprintf("fixtures/%s explains why %s kills no mutant, and it kills one, is of strength H, or has no case: remove the entry", rowsFile, v.ID))
		}
	}
	named := slices.Clone(r.Long)
	for _, e := range r.Elsewhere {
		named = append(named, e.Cases...)
	}
	for _, id := range named {
		if !known[id] {
			findings = append(findings, fmt.Sprintf("fixtures/%s names %s, which is not a case", rowsFile, id))
		}
	}
	return findings
}
