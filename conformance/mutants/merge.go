package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// Part identifies the part and the whole run, in the report of a part.
type Part struct {
	Part   string `json:"part"`
	Of     string `json:"of"` // hash of what the whole run consists of (runs.Hash)
	Matrix bool   `json:"matrix,omitempty"`
}

// IsReport reports whether text is the JSON report of a run on mutants. A compressed report must be
// unpacked first.
func IsReport(text []byte) bool {
	var head struct {
		Schema string `json:"schema"`
	}
	return json.Unmarshal(text, &head) == nil && head.Schema == Schema
}

// Merge joins the reports of all parts of a run, in any order, and judges the whole run. read
// returns the text of the file names[i] and is called once for each. The errors name files that are
// not parts of one run, or that contradict each other, or say which parts are missing.
func Merge(items []conformance.Item, names []string, read func(i int) ([]byte, error)) (*Outcome, error) {
	var parts []string
	results, from := map[string]Result{}, map[string]int{}
	var whole *Report
	for i, name := range names {
		text, err := read(i)
		if err != nil {
			return nil, err
		}
		r := &Report{}
		if err := input.JSON(text, r); err != nil {
			return nil, fmt.Errorf("%s is not a report of conform mutants: %w", name, err)
		}
		if r.Schema != Schema || r.Part == nil {
			return nil, fmt.Errorf("%s is not a part of a run of conform mutants, which --shard writes", name)
		}
		if whole == nil {
			whole = &Report{Schema: r.Schema, Profile: r.Profile, Seed: r.Seed, Part: r.Part, Summary: map[string]int{Killed: 0, Survived: 0, Failed: 0}, Mutants: []Result{}}
		}
		if r.Profile != whole.Profile || r.Seed != whole.Seed || r.Part.Matrix != whole.Part.Matrix || r.Part.Of != whole.Part.Of {
			return nil, fmt.Errorf("%s and %s are not parts of one run: profile, seed, --matrix or the choice of mutants and cases differ", names[0], name)
		}
		parts = append(parts, r.Part.Part)
		whole.Incomplete = whole.Incomplete || r.Incomplete
		for _, m := range r.Mutants {
			if m.Outcome != Killed && m.Outcome != Survived && m.Outcome != Failed {
				return nil, fmt.Errorf("%s: mutant %s has the outcome %q, which is not %s, %s or %s", name, m.Name, m.Outcome, Killed, Survived, Failed)
			}
			if k, twice := from[m.Name]; twice && (k == i || parts[k] != parts[i] || !reflect.DeepEqual(results[m.Name], m)) {
				return nil, fmt.Errorf("mutant %s is in %s and in %s, and the two differ: leave one out, or run it again", m.Name, names[k], name)
			}
			results[m.Name], from[m.Name] = m, i
		}
	}
	if whole == nil {
		return nil, errors.New("no part of a run was given")
	}
	if err := runs.CheckParts(names, parts); err != nil {
		return nil, err
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
		return nil, fmt.Errorf("there is no mutant %s: merge with the program that ran the parts", slices.Sorted(maps.Keys(results))[0])
	}
	explained, err := ReadSurvivors()
	if err != nil {
		return nil, err
	}
	all := len(whole.Mutants) == len(mutant.All())
	findings := explained.judge(whole, all)
	if matrix && all {
		whole.Idle = idleCases(items, whole)
	}
	return &Outcome{Report: whole, Survivors: explained, Findings: findings}, nil
}
