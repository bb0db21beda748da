package page

import (
	"cmp"
	"regexp"
	"slices"
)

// Bounds of the list of what several cases share.
const (
	leastAlike = 3 // cases
	mostAlike  = 5 // differences
	mostIDs    = 12
)

// alikeView is a difference that several cases show, such as "want SUCCESS, got RETRY_EXC_ERR":
// likely of one cause.
type alikeView struct {
	What        string
	Count, More int
	IDs         []string
}

var wantGot = regexp.MustCompile(`want ([^;\n]+), got ([A-Z_a-z0-9]+)`)

// alike lists what most of the cases have in common, the most frequent first.
func alike(cases []*caseView) []alikeView {
	var order []string
	of := map[string][]string{}
	for _, c := range cases {
		for _, s := range c.Sides {
			if m := wantGot.FindString(s.Reason); m != "" && s.Bad && !slices.Contains(of[m], c.ID) {
				if of[m] == nil {
					order = append(order, m)
				}
				of[m] = append(of[m], c.ID)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(of[b]), len(of[a])) })
	var out []alikeView
	for _, what := range order[:min(mostAlike, len(order))] {
		ids := of[what]
		if len(ids) < leastAlike {
			break
		}
		shown := ids[:min(mostIDs, len(ids))]
		out = append(out, alikeView{What: what, Count: len(ids), More: len(ids) - len(shown), IDs: shown})
	}
	return out
}
