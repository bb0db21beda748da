package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// candidate is an assumed or fitted value, with those that it is tried with: the upper bound, the
// lower one, and what else a word may be.
type candidate struct {
	key, value, source, bounds string
	tries                      []string
}

// costPrefix is that of keys of assumed costs, which no profile has.
const costPrefix = "cost."

// cutCost is the name and the value of an assignment to a cost.
func cutCost(kv string) (name, text string, ok bool) {
	kv, ok = strings.CutPrefix(kv, costPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(kv, "=")
}

// candidates are all values that the user has not set and that have no measurement behind them: of
// the profile, of the parameters that say that they are assumed, and of the experiment's own costs.
// The second result says which cannot be varied.
func candidates(x *experiment.Experiment, req experiment.Request) (all []*candidate, not []string, err error) {
	p, err := profileOf(x, req)
	if err != nil {
		return nil, nil, err
	}
	cal, err := LoadCalibration(context.Background()) // of embedded files
	if err != nil {
		return nil, nil, err
	}
	isGiven := func(key string) bool {
		return slices.ContainsFunc(req.Set, func(kv string) bool { return strings.HasPrefix(strings.TrimPrefix(kv, "set."), key+"=") })
	}
	for _, v := range p.Values() {
		if x.NoProfile || v.Source != profile.Assumed && v.Source != profile.Fitted && v.Source != profile.Hypothesis || isGiven(v.Key) {
			continue
		}
		c := &candidate{key: v.Key, value: v.Text, source: v.Source}
		cal.bound(c, p, v)
		if why := c.onlyValid(p); why != "" {
			not = append(not, why)
		}
		if slices.ContainsFunc(c.tries, func(s string) bool { return s != "" }) {
			all = append(all, c)
		}
	}
	for i := range x.Params {
		if q := &x.Params[i]; q.Assumed && !isGiven(q.Key) {
			all = append(all, assumed(q))
		}
	}
	for _, k := range x.Costs {
		c := &candidate{key: costPrefix + k.Name, value: k.Value, source: profile.Assumed, bounds: halfAndTwice}
		d, _ := input.ParseTime(k.Value) // it was formatted
		c.tries = []string{input.FormatTime(2 * d), input.FormatTime(d / 2)}
		all = append(all, c)
	}
	return all, not, nil
}

const halfAndTwice = "half and twice"

// assumed is a parameter that no source gives, at half and twice its default.
func assumed(p *experiment.Param) *candidate {
	c := &candidate{key: p.Key, value: p.Default, source: profile.Assumed, bounds: halfAndTwice}
	n, _ := strconv.Atoi(p.Default) // only whole numbers are assumed
	for _, v := range []int{min(2*n, p.Max), max(n/2, p.Min)} {
		text := ""
		if v != n {
			text = strconv.Itoa(v)
		}
		c.tries = append(c.tries, text)
	}
	return c
}

// profileOf is the profile of a run.
func profileOf(x *experiment.Experiment, req experiment.Request) (*profile.Profile, error) {
	if x.OfScenario() != nil {
		var changes []experiment.Setting
		if req.Profile != "" {
			changes = append(changes, experiment.Setting{Key: "profile", Value: req.Profile})
		}
		for _, kv := range req.Set {
			k, v, _ := strings.Cut(kv, "=") // the first run has checked it
			changes = append(changes, experiment.Setting{Key: k, Value: v})
		}
		s, err := x.OfScenario().With(changes...)
		if err != nil {
			return nil, err
		}
		return s.LoadProfile()
	}
	p, err := profile.Load(cmp.Or(req.Profile, x.Profile))
	if err != nil {
		return nil, err
	}
	_, over, err := x.Settings(req.Set)
	if err != nil {
		return nil, err
	}
	for _, kv := range over {
		if err := p.Set(kv.Key, kv.Value); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// bound gives a candidate its bounds: those of the fit, or half and twice the value and what other
// profiles have.
func (c *Calibration) bound(cand *candidate, p *profile.Profile, v profile.Value) {
	for g := range c.Groups {
		for i := range c.Groups[g].Parameters {
			q := &c.Groups[g].Parameters[i]
			if q.Key == v.Key && q.Profile != "" && q.Profile == p.GivenBy(v.Key) {
				cand.tries, cand.bounds = []string{q.text(q.high), q.text(q.low)}, "of the fit"
				return
			}
		}
	}
	switch v.Kind {
	case profile.Bool:
		cand.tries, cand.bounds = []string{strconv.FormatBool(v.Text != "true")}, "the other one"
		return
	case profile.Word:
		for _, w := range profile.Words(v.Key) {
			if w != v.Text {
				cand.tries = append(cand.tries, w)
			}
		}
		cand.bounds = "all words"
		return
	}
	n, ok := v.Kind.Amount(v.Text)
	if !ok {
		return
	}
	low, high, bounds := n/2, 2*n, halfAndTwice
	if n > math.MaxInt64/2 {
		high = n
	}
	for _, name := range keysOf(c.profiles) {
		if m, ok := v.Kind.Amount(c.profiles[name].Get(v.Key)); ok && (m < low || m > high) {
			low, high, bounds = min(low, m), max(high, m), halfAndTwice+", and what other profiles have"
		}
	}
	cand.bounds, cand.tries = bounds, make([]string, 2)
	for i, m := range []uint64{high, low} {
		if m != n {
			cand.tries[i] = v.Kind.Format(m)
		}
	}
}

// onlyValid takes out what the profile's own checks refuse, and says why if nothing is left.
func (c *candidate) onlyValid(p *profile.Profile) (why string) {
	left := false
	for i, text := range c.tries {
		if text == "" {
			continue
		}
		q := p.Clone()
		err := q.Set(c.key, text)
		if err == nil {
			err = q.Validate()
		}
		if err != nil {
			c.tries[i] = ""
			why = fmt.Sprintf("%s=%s: %v", c.key, text, err)
			continue
		}
		left = true
	}
	if left {
		return ""
	}
	return why
}
