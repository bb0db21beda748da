package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Place says where a load stands among others: what decides how it is simulated, in the keys of
// scenario files. Loads that are alike have equal places.
type Place struct {
	Words map[string]string  `json:"words"`
	Sizes map[string]float64 `json:"sizes"`
	// Changed are the values of the profile that differ from the stored one.
	Changed []string `json:"changed,omitempty"`
}

// Axes on which loads differ. How far apart two words are, and two sizes for each factor of two, is
// assumed: what a distance means for the error of a prediction is measured on published figures
// (package calibrate).
var wordAxes = map[string]float64{"profile": 1, "link": 1, "verb": 2, "transport": 2, "measure": 2, "td": 1, "on_demand": 3, "memory": 3, "page_size": 1,
	"receive": 1, "churn": 5, "access": 0.5, "drain": 1, "faults": 2, "ack_timeout": 0.5, "retry_cnt": 0.5}

const (
	perDoubling = 0.25
	perChange   = 1
)

// inBytes are the sizes that are bytes.
var inBytes = []string{"payload", "registered", "mtu"}

// Places are those of the scenario's loads, each once. The clients of a load have one place.
func (s *Scenario) Places() (all []Place) { return s.places(s.Profile) }

func (s *Scenario) places(prof string) (all []Place) {
	var changed []string
	if s.Set != nil {
		changed = slices.Sorted(maps.Keys(s.Set))
	}
	name := func(i int) string { return cmp.Or(s.Traffic[i].group, s.loadName(i)) }
	clients := map[string]int{}
	for i := range s.Traffic {
		clients[name(i)]++
	}
	for i := range s.Traffic {
		p := s.Traffic[i].place(float64(clients[name(i)]))
		p.Words["profile"], p.Words["link"] = prof, cmp.Or(s.Link, "cable")
		if p.Words["faults"] = "none"; len(s.Faults) > 0 {
			p.Words["faults"] = "some"
		}
		p.Sizes["loads"] = float64(len(clients))
		p.Changed = changed
		if !slices.ContainsFunc(all, func(q Place) bool { return p.Distance(q) == 0 }) {
			all = append(all, p)
		}
	}
	return all
}

func (t *Traffic) place(clients float64) Place {
	code := func(v *int) string {
		if v == nil {
			return "default"
		}
		return strconv.Itoa(*v)
	}
	verb := t.Verb
	for i, m := range t.Mix {
		if verb = m.Verb; i > 0 {
			verb = "mix"
			break
		}
	}
	qps := float64(t.Threads*t.QPs) / float64(max(t.QPSharing, 1))
	outstanding := qps * float64(t.Window)
	switch {
	case t.Measure == "latency":
		outstanding = float64(t.Threads)
	case t.Spread > 0:
		outstanding = float64(t.Threads * t.Spread)
	}
	return Place{
		Words: map[string]string{"verb": cmp.Or(verb, "write"), "transport": cmp.Or(t.Transport, "rc"), "measure": cmp.Or(t.Measure, "rate"), "td": cmp.Or(t.TD, "none"), "on_demand": cmp.Or(t.OnDemand, "none"),
			"memory": cmp.Or(t.Memory, "host"), "page_size": cmp.Or(t.PageSize, "4KiB"), "receive": cmp.Or(t.Receive, "post"), "churn": cmp.Or(t.Churn, "none"), "access": cmp.Or(t.Access, "fixed"), "drain": strconv.FormatBool(t.Drain), "ack_timeout": code(t.AckTimeout), "retry_cnt": code(t.RetryCnt)},
		Sizes: map[string]float64{"payload": float64(t.Payload), "threads": float64(t.Threads), "queue pairs": qps, "outstanding": outstanding,
			"registered": float64(t.MRSize) * float64(max(t.MRs, 1)), "postlist": float64(t.Postlist), "signal_every": float64(t.SignalEvery),
			"mtu": float64(mtus[t.MTU].Bytes()), "clients": clients},
	}
}

// apart is the distance of two sizes.
func apart(a, b float64) float64 { return perDoubling * math.Abs(math.Log2(max(a, 1)/max(b, 1))) }

// Distance is how unlike two loads are: 0 for loads that are alike on all axes, and some 2 for
// WRITEs in place of READs, or for 256 threads in place of one.
func (p Place) Distance(q Place) (d float64) {
	// Sums of floating-point numbers depend on their order.
	for _, axis := range slices.Sorted(maps.Keys(wordAxes)) {
		if p.Words[axis] != q.Words[axis] {
			d += wordAxes[axis]
		}
	}
	for _, axis := range slices.Sorted(maps.Keys(p.Sizes)) {
		d += apart(p.Sizes[axis], q.Sizes[axis])
	}
	for _, only := range [][2][]string{{p.Changed, q.Changed}, {q.Changed, p.Changed}} {
		for _, key := range only[0] {
			if !slices.Contains(only[1], key) {
				d += perChange
			}
		}
	}
	return table.Rounded(d) // the last bit of a logarithm depends on the processor
}

// farOut are the sizes beyond which something new may limit a load: a cache that overflows, a queue
// that fills. twiceAsFar is how much farther than all published figures a load may go.
var farOut = []string{"threads", "queue pairs", "outstanding", "payload", "pages", "clients"}

const twiceAsFar = 2

// newWays are the words that another part of the device or of the host stands behind: where no
// figure has one, nothing is known of it.
var newWays = []string{"transport", "measure", "drain", "receive", "on_demand", "memory", "churn", "faults"}

// kind is what loads have in common whose sizes can be compared: a mix of verbs with any.
func (p Place) kind() string {
	switch verb := p.Words["verb"]; verb {
	case "cas", "faa":
		return "atomics"
	case "write_imm":
		return "write"
	case "mix":
		return ""
	default:
		return verb
	}
}

// size is a size, or the number of pages that are registered.
func (p Place) size(axis string) float64 {
	if axis != "pages" {
		return p.Sizes[axis]
	}
	page, err := input.ParseSize(p.Words["page_size"])
	if err != nil {
		return 0
	}
	return math.Ceil(p.Sizes["registered"] / float64(page))
}

// Beyond names the axes on which a load goes more than twice as far as all others of its kind of
// verb, or has a word that none of them has, such as "pages (5242880, at most 10240)" or "on_demand
// (explicit, in none)". It compares the load with those of its profile; if there are none, it names
// the profile and compares the load with those of all profiles.
func (p Place) Beyond(others []Place) (all []string) {
	alike := slices.DeleteFunc(slices.Clone(others), func(q Place) bool { return p.kind() != "" && q.kind() != "" && p.kind() != q.kind() })
	own := slices.DeleteFunc(slices.Clone(alike), func(q Place) bool { return p.Words["profile"] != q.Words["profile"] })
	if len(own) > 0 {
		alike = own
	} else if len(alike) > 0 {
		all = append(all, fmt.Sprintf("profile (%s, none with %s)", p.Words["profile"], p.Words["verb"]))
	}
	for _, axis := range newWays {
		word := p.Words[axis]
		if len(alike) > 0 && !slices.ContainsFunc(alike, func(q Place) bool { return q.Words[axis] == word }) {
			all = append(all, fmt.Sprintf("%s (%s, in none)", axis, word))
		}
	}
	for _, axis := range farOut {
		most := 0.0
		for _, q := range alike {
			most = max(most, q.size(axis))
		}
		if v := p.size(axis); len(alike) > 0 && v > twiceAsFar*max(most, 1) {
			all = append(all, fmt.Sprintf("%s (%s, at most %s)", axis, sizeText(axis, v), sizeText(axis, most)))
		}
	}
	return all
}

// sizeText is a size as it is given in scenario files.
func sizeText(axis string, v float64) string {
	if slices.Contains(inBytes, axis) {
		return input.FormatSize(uint64(v))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Differs says on which axes a load is unlike another, the farthest first, such as "payload (64B,
// there 2B)".
func (p Place) Differs(q Place) (all []string) {
	type difference struct {
		d    float64
		text string
	}
	var ds []difference
	for axis, d := range wordAxes {
		if a, b := p.Words[axis], q.Words[axis]; a != b {
			ds = append(ds, difference{d, fmt.Sprintf("%s (%s, there %s)", axis, a, b)})
		}
	}
	for axis, v := range p.Sizes {
		if d := apart(v, q.Sizes[axis]); d > 0 {
			ds = append(ds, difference{d, fmt.Sprintf("%s (%s, there %s)", axis, sizeText(axis, v), sizeText(axis, q.Sizes[axis]))})
		}
	}
	for i, only := range [][2][]string{{p.Changed, q.Changed}, {q.Changed, p.Changed}} {
		for _, key := range only[0] {
			if !slices.Contains(only[1], key) {
				ds = append(ds, difference{perChange, key + []string{" (changed)", " (changed there)"}[i]})
			}
		}
	}
	slices.SortFunc(ds, func(a, b difference) int { return cmp.Or(cmp.Compare(b.d, a.d), cmp.Compare(a.text, b.text)) })
	for _, d := range ds {
		all = append(all, d.text)
	}
	return all
}

// Placed is a run, or a point of a sweep, with the places of its loads.
type Placed struct {
	Name   string
	Places []Place
}

// Places returns the places of a scenario's loads at a point; nil for a named experiment.
func (p *Prepared) Places(pt []Setting) ([]Place, error) {
	if p.base == nil {
		return nil, nil
	}
	sc, err := p.scenario(pt)
	if err != nil {
		return nil, err
	}
	all := sc.Places()
	if p.req.Fault != "" {
		for i := range all {
			all[i].Words["faults"] = "some"
		}
	}
	return all, nil
}

// Ran returns the runs from which an experiment made its result.
func (p *Prepared) Ran(r *Result) []Placed {
	var changed []string
	for _, s := range p.over {
		changed = append(changed, s.Key)
	}
	slices.Sort(changed)
	for _, run := range r.ran {
		for i := range run.Places {
			run.Places[i].Changed = changed
		}
	}
	return r.ran
}
