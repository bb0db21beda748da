package calibrate

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// cardFile says what is fitted to which measurements.
type cardFile struct {
	Parameters []cardParameter `yaml:"parameters" required:"true"`
}

type cardParameter struct {
	Key     string   `yaml:"key" required:"true"`
	With    []string `yaml:"with" help:"values that are the same"`
	Low     string   `yaml:"low" required:"true"`
	High    string   `yaml:"high" required:"true"`
	From    string   `yaml:"from" required:"true" help:"kind of measurement"`
	Meaning string   `yaml:"meaning" required:"true"`
}

// howTo says what to run for a kind of measurement that is missing.
var howTo = map[string]string{
	"bandwidth":                      "ib_write_bw -s 65536",
	"WRITE latency":                  "ib_write_lat -s 2",
	"WRITE latency, payload fetched": "ib_write_lat -s 2 -I 0",
	"READ latency":                   "ib_read_lat -s 2",
	"atomic latency":                 "ib_atomic_lat",
	"one queue pair":                 "ib_write_bw -s 2 -I 16 -q 1 -l 16",
	"one core, lists":                "ib_write_bw -s 2 -I 16 -q 8 -l 16",
	"one core":                       "ib_write_bw -s 2 -I 16 -q 8 -l 1",
	"all cores, WRITEs":              "8 or more of ib_write_bw -s 2 -I 16 -q 4 -l 16 at the same time",
	"all cores, READs":               "8 or more of ib_read_bw -s 8 -q 4 -l 16 at the same time",
}

// CardValue is a value that was found.
type CardValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Base  string `json:"base"` // what the base profile has
	// Why is what it was found from.
	Why string `json:"why"`
}

// CardMiss is a value that could not be determined.
type CardMiss struct {
	Key    string `json:"key"`
	Base   string `json:"base"`
	Reason string `json:"reason"`
}

// CardReport is what measurements of a card give.
type CardReport struct {
	Version       string         `json:"version"`
	Base          string         `json:"base"` // profile that has all other values
	Files         int            `json:"files"`
	Determined    []CardValue    `json:"determined"`
	NotDetermined []CardMiss     `json:"not_determined"`
	Figures       []FittedFigure `json:"figures"` // measured, and as the new profile has them
	Unused        []string       `json:"unused"`
	Runs          int            `json:"runs"`
}

// card is a fit in progress.
type card struct {
	m    *measured
	p    *profile.Profile // the base, with what has been found
	rep  *CardReport
	eval *evaluator
	par  []cardParameter
	ids  map[*measurement]string
}

// FromMeasurements finds values of a card from what was measured on it: outputs of perftest, and
// records of conform. All other values are those of the base profile.
func FromMeasurements(ctx context.Context, dir, base string, seed uint64, progress func(done, total int, what string)) (*CardReport, error) {
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	m, err := readMeasured(ctx, dir)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(profile.List(), base) {
		return nil, experiment.Usagef("--profile %s: the base is one of the stored profiles%s", base, input.Suggest(base, profile.List()))
	}
	p, err := profile.Load(base)
	if err != nil {
		return nil, err
	}
	src, err := fixtures.Read("calibration/card.yaml")
	if err != nil {
		return nil, err
	}
	var file cardFile
	doc, err := input.Decode("calibration/card.yaml", src, &file)
	if err != nil {
		return nil, err
	}
	c := &card{m: m, p: p, par: file.Parameters, ids: map[*measurement]string{},
		rep: &CardReport{Version: experiment.Version(), Base: base, Files: m.files, Determined: []CardValue{}, NotDetermined: []CardMiss{}, Figures: []FittedFigure{}, Unused: append([]string{}, m.unused...)}}
	if err := c.link(); err != nil {
		return nil, err
	}
	if err := c.fit(ctx, doc, seed, progress); err != nil {
		return nil, err
	}
	return c.rep, nil
}

// put gives a value to the profile as a change of the file that has it would.
func (c *card) put(key, text string) error {
	_, err := c.p.Refit(c.p.GivenBy(key), key, text)
	return err
}

// speeds of ports, in bits per second.
var speeds = []uint64{10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9, 800e9}

// link finds the link layer and the speed of the port.
func (c *card) link() error {
	for _, x := range c.m.all {
		layer := map[string]string{"IB": "infiniband", "Ethernet": "ethernet"}[x.link]
		if layer == "" {
			continue
		}
		if old := c.p.Get("hca.link_layer"); old != layer {
			if err := c.put("hca.link_layer", layer); err != nil {
				return err
			}
			if err := c.p.Validate(); err != nil {
				return experiment.Usagef("%s: the link is %s, which profile %s does not have: %w", x.at, x.link, c.rep.Base, err)
			}
			c.rep.Determined = append(c.rep.Determined, CardValue{"hca.link_layer", layer, old, "Link type of " + x.at})
		}
		break
	}
	x := c.m.largest()
	old := c.p.Get("link.bandwidth")
	miss := func(why string) {
		c.rep.NotDetermined = append(c.rep.NotDetermined, CardMiss{"link.bandwidth", old, why})
	}
	switch {
	case x == nil:
		miss("no measurement: " + howTo["bandwidth"])
		return nil
	case c.p.Get("hca.link_layer") == "infiniband":
		miss("the speed of InfiniBand is ib.speed and ib.width, which are not changed: choose a base that has them")
		return nil
	}
	g := x.goodput()
	for _, s := range speeds {
		if g <= 0.985*float64(s) {
			if g < 0.85*float64(s) {
				miss(fmt.Sprintf("%s Gb/s of %s are far from the speed of any port: something else limits them", table.Short(g/1e9), x.at))
				return nil
			}
			text := input.FormatRate(s)
			for _, key := range []string{"link.bandwidth", "hca.wire_rate"} {
				was := c.p.Get(key)
				if err := c.put(key, text); err != nil {
					return err
				}
				c.rep.Determined = append(c.rep.Determined, CardValue{key, text, was, fmt.Sprintf("%s Gb/s of payload in %s", table.Short(g/1e9), x.at)})
			}
			return nil
		}
	}
	miss(fmt.Sprintf("%s Gb/s of %s are more than any port has", table.Short(g/1e9), x.at))
	return nil
}

// fit finds the other values, one after the other, twice: the second time with those that come
// later.
func (c *card) fit(ctx context.Context, doc *input.Doc, seed uint64, progress func(done, total int, what string)) error {
	var todo []cardParameter
	var used []*measurement
	for _, p := range c.par {
		x := c.m.of(p.From)
		if x == nil {
			c.miss(&p, "no measurement: "+howTo[p.From])
			continue
		}
		todo, used = append(todo, p), append(used, x)
	}
	checks := slices.Concat(used, c.m.checks(used))
	before := map[string]string{}
	for pass := range 2 {
		cal, err := c.calibration(doc, todo, checks)
		if err != nil {
			return err
		}
		c.eval = newEvaluator(cal, seed, &runCache{known: map[string]map[string]float64{}})
		c.eval.monotone = true
		var set []setting
		var left []cardParameter
		for g := range cal.Groups {
			if progress != nil {
				progress(pass*len(cal.Groups)+g, 2*len(cal.Groups), todo[g].Key)
			}
			mine, _, err := c.eval.fitGroup(ctx, &cal.Groups[g], 0, set, nil)
			if err != nil {
				return err
			}
			why, err := c.determined(ctx, &cal.Groups[g].Parameters[0], set, mine[0])
			if err != nil {
				return err
			}
			if why != "" {
				c.miss(&todo[g], why)
				continue
			}
			set, left = append(set, mine[0]), append(left, todo[g])
		}
		for i, s := range set {
			text := s.p.text(s.v)
			for _, key := range slices.Concat([]string{s.p.Key}, left[i].With) {
				if _, ok := before[key]; !ok {
					before[key] = c.p.Get(key)
				}
				if err := c.put(key, text); err != nil {
					return err
				}
			}
		}
		c.rep.Runs += len(c.eval.asked)
		todo = left
	}
	for i := range todo {
		p := &todo[i]
		x := c.m.of(p.From)
		for _, key := range slices.Concat([]string{p.Key}, p.With) {
			c.rep.Determined = append(c.rep.Determined, CardValue{key, c.p.Get(key), before[key], fmt.Sprintf("%s %s in %s; %s", table.Short(x.shown()), x.unit(), x.at, p.Meaning)})
		}
	}
	return c.figures(ctx, doc, checks, seed)
}

func (c *card) miss(p *cardParameter, why string) {
	for _, key := range slices.Concat([]string{p.Key}, p.With) {
		c.rep.NotDetermined = append(c.rep.NotDetermined, CardMiss{key, c.p.Get(key), why})
	}
}

// place begins the message of an error of a scenario.
var place = regexp.MustCompile(`^\w+:\d+:\d+: `)

// calibration is the fit as calibrate makes it: a group for each value, and a figure for each
// measurement.
func (c *card) calibration(doc *input.Doc, todo []cardParameter, checks []*measurement) (*Calibration, error) {
	cal := &Calibration{doc: doc, files: map[string]*Validation{}, at: map[string]figureAt{}, profiles: map[string]*profile.Profile{c.rep.Base: c.p}}
	for i, x := range checks {
		id := "m" + strconv.Itoa(i+1)
		v, err := ParseValidation(id, x.scenario(id, c.rep.Base))
		if err != nil {
			// The place is one in the scenario that was made of the measurement, and of no use to
			// anybody.
			return nil, experiment.Usagef("%s: it cannot be simulated: %s", x.at, place.ReplaceAllString(err.Error(), ""))
		}
		c.ids[x], cal.files[id], cal.at[id] = id, v, figureAt{v, 0}
	}
	for i, p := range todo {
		q := Parameter{Profile: c.p.GivenBy(p.Key), Key: p.Key, With: p.With, Low: p.Low, High: p.High, Figures: []string{c.ids[c.m.of(p.From)]}}
		now := c.p.Get(p.Key)
		low, _, _ := quantity(p.Low)
		high, _, _ := quantity(p.High)
		if n, _, err := quantity(now); err == nil && n >= low && n <= high {
			q.Prior = now
		}
		cal.Groups = append(cal.Groups, FitGroup{Name: p.Key, Parameters: []Parameter{q}})
		if err := cal.check(&cal.Groups[i].Parameters[0], "parameters."+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return cal, nil
}

// What a value must do to be determined: the measurement comes out within fitWithin, and moves by
// mustMove when the value does by nudge.
const (
	fitWithin = 0.05
	nudge     = 1.2
	mustMove  = 0.02
)

// determined says why a fitted value is not determined; "" if it is.
func (c *card) determined(ctx context.Context, p *Parameter, set []setting, s setting) (string, error) {
	at := func(v uint64) (float64, error) {
		got, err := c.eval.figures(ctx, p.Figures, append(slices.Clone(set), setting{p, min(p.high, max(p.low, v))}))
		if impossible(err) { // beyond what the other values allow
			got, err = c.eval.figures(ctx, p.Figures, append(slices.Clone(set), s))
		}
		if err != nil {
			return 0, err
		}
		return got[0], nil
	}
	now, err := at(s.v)
	if err != nil {
		return "", err
	}
	f := c.eval.c.at[p.Figures[0]].figure()
	if math.Abs(now-f.Expected) > fitWithin*f.Expected {
		return fmt.Sprintf("%s: %s %s were measured, and the nearest that a value from %s to %s gives is %s", f.Name, table.Short(f.Expected), f.Unit, p.Low, p.High, table.Short(now)), nil
	}
	more, err := at(uint64(float64(s.v) * nudge))
	if err != nil {
		return "", err
	}
	less, err := at(uint64(float64(s.v) / nudge))
	if err != nil {
		return "", err
	}
	if math.Abs(more-less) < mustMove*f.Expected {
		return fmt.Sprintf("%s: something else limits what was measured; the value could be a fifth larger or smaller and nobody would see it", f.Name), nil
	}
	return "", nil
}

// figures compares what was measured with what the new profile gives.
func (c *card) figures(ctx context.Context, doc *input.Doc, checks []*measurement, seed uint64) error {
	cal, err := c.calibration(doc, nil, checks)
	if err != nil {
		return err
	}
	e := newEvaluator(cal, seed, c.eval.cache)
	for _, x := range checks {
		got, err := e.figures(ctx, []string{c.ids[x]}, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", x.at, err)
		}
		f := cal.at[c.ids[x]].figure()
		c.rep.Figures = append(c.rep.Figures, FittedFigure{x.at, f.Name, f.Expected, got[0], f.Unit, f.Tolerance, within(got[0], f.Expected, f.Tolerance)})
	}
	return nil
}
