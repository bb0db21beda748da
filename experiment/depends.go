package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Guessed returns the values of a profile that act on a limit (a word of column limited_by) and
// have no source: those that are assumed, fitted or a hypothesis. Another value of one of them may
// change the result.
func Guessed(limit string, p *profile.Profile) (all []profile.Value) {
	up, ok := raise{}, false
	for r, has := range raises {
		if r.String() == limit {
			up, ok = has, true
		}
	}
	if limit == latencyLimit {
		up, ok = latencyRaise, true
	}
	if !ok {
		return nil
	}
	for _, v := range p.Values() {
		section, _, _ := strings.Cut(v.Key, ".")
		given := slices.ContainsFunc(up.set, func(s Setting) bool { return s.Key == v.Key })
		acts := given || slices.Contains(up.half, v.Key) || slices.Contains(up.double, v.Key) || slices.Contains(up.sections, section) && v.Kind == profile.Time
		if acts && (v.Hypothesis || v.Source == profile.Assumed || v.Source == profile.Fitted) {
			all = append(all, v)
		}
	}
	return all
}

// Limit is a limit that rows name in column limited_by.
type Limit struct {
	Word string
	Unit string  // of the first row
	Busy float64 // of that unit, in percent; 0: none is busy for it
	Rows int
}

// Limits returns what limits the points or loads, the most frequent first.
func (r *Result) Limits() (all []Limit) {
	for i := range r.Rows {
		row := &r.Rows[i]
		kind := row.Get("row")
		word, ok := row.Get(LimitedBy).(string)
		if !ok || kind == "client" || kind == "thread" || kind == "total" {
			continue
		}
		at := slices.IndexFunc(all, func(l Limit) bool { return l.Word == word })
		if at < 0 {
			at = len(all)
			busy, _ := row.Float(limitPercent)
			unit, _ := row.Get(limitUnit).(string)
			all = append(all, Limit{Word: word, Unit: unit, Busy: busy})
		}
		all[at].Rows++
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(b.Rows, a.Rows) })
	return all
}

// Guesses returns what Guessed returns for the limits of the result.
func (r *Result) Guesses(p *profile.Profile) (all []profile.Value) {
	for _, l := range r.Limits() {
		for word := range strings.SplitSeq(l.Word, ", ") { // with other seeds another one
			for _, v := range Guessed(word, p) {
				if !slices.ContainsFunc(all, func(g profile.Value) bool { return g.Key == v.Key }) {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// mostGuesses is how many values a line names.
const mostGuesses = 3

// Depends makes tables say what would change the result, which ran with profile p: the values
// without a source that act on what limits it. A result that names no limit, or has a sensitivity,
// stays unchanged. swept: the result has several points.
func (r *Result) Depends(p *profile.Profile, swept bool) {
	if r.Sensitivity != nil || len(r.Limits()) == 0 {
		return
	}
	var keys []string
	for _, v := range r.Guesses(p) {
		keys = append(keys, v.Key)
	}
	more := "--sensitivity tries all values"
	switch {
	case swept:
		more += " at one point"
	case !slices.ContainsFunc(r.Rows, func(row table.Row) bool { return row.Get(Confirmed) != nil }):
		more += ", --confirm raises the limit"
	}
	says := "no assumed or fitted value acts on what limits it"
	if n := len(keys); n > 0 {
		if n > mostGuesses {
			keys = append(keys[:mostGuesses:mostGuesses], plain.Count(n-mostGuesses, "other"))
		}
		last := len(keys) - 1
		if says = keys[last]; last > 0 {
			says = strings.Join(keys[:last], ", ") + " and " + says
		}
		says += map[bool]string{true: " acts", false: " act"}[n == 1] + " on what limits it, and no source gives " + map[bool]string{true: "it", false: "them"}[n == 1]
	}
	r.depends = fmt.Sprintf("What would change it: %s; %s.", says, more)
}

// Profile returns the profile with the settings of a request: in a sweep, with those that all
// points share.
func (p *Prepared) Profile() (*profile.Profile, error) {
	if p.base != nil {
		sc, err := p.scenario(nil)
		if err != nil {
			return nil, err
		}
		return sc.LoadProfile()
	}
	name := p.req.Profile
	if name == "" {
		name = p.x.Profile
	}
	prof, err := p.stored(name)
	if err != nil {
		return nil, err
	}
	for _, kv := range p.over {
		if err := prof.Set(kv.Key, kv.Value); err != nil {
			return nil, err
		}
	}
	return prof, nil
}
