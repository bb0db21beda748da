package runs

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
)

// Gaps are the cases that none of several runs has run.
type Gaps struct {
	List  []Gap // in the order of the suite
	Apart int   // cases that need what the machine lacks, which are not in List
	All   int   // cases of the suite
}

// Gap is a case that none of several runs has run, with the reason that the first record gives.
type Gap struct{ ID, Why string }

// FindGaps lists the items that are not-run in each record, or in none of them. A case whose call
// was refused (unsupported) has run. Items that need one of the capabilities in lacks are only
// counted, in Apart. The error is the first of the records, or says that no item needs one of
// lacks.
func FindGaps(items []conformance.Item, lacks []string, records iter.Seq2[*report.Run, error]) (*Gaps, error) {
	for _, token := range lacks {
		if !slices.ContainsFunc(items, func(i conformance.Item) bool { return slices.Contains(i.Entry.Needs, token) }) {
			return nil, fmt.Errorf("--machine-lacks %q: no case needs it; conform list --capabilities has the names", token)
		}
	}
	ran, why := map[string]bool{}, map[string]string{}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		for _, c := range r.Cases {
			if c.Outcome != report.NotRun {
				ran[c.ID] = true
			} else if why[c.ID] == "" {
				why[c.ID] = c.Reason
			}
		}
	}
	g := &Gaps{All: len(items)}
	for _, i := range items {
		id := i.Entry.ID
		if ran[id] {
			continue
		}
		if slices.ContainsFunc(lacks, func(token string) bool { return slices.Contains(i.Entry.Needs, token) }) {
			g.Apart++
			continue
		}
		why[id] = cmp.Or(why[id], "no run has chosen it")
		g.List = append(g.List, Gap{id, why[id]})
	}
	return g, nil
}
