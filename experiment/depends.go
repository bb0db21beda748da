package experiment

import (
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// Guessed are the values of a profile that act on a limit, as column limited_by names it, and that no source gives: those that are assumed,
// fitted or a hypothesis. Another value of one of them may change the result.
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

// Profile is the profile of a request with its settings: of a sweep, those that all points have in common.
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
