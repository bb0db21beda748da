package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Published is a record of what others have measured on cards of a kind and made public: values of
// single steps of cases. It is a reference as a run on hardware is one, but it has no environment,
// no seed, and nothing of the steps that nobody measured.
type Published struct {
	Name     string         `yaml:"name" required:"true" help:"of the kind of card"`
	Provider string         `yaml:"provider" required:"true" help:"user-space driver, such as mlx5"`
	Parts    []string       `yaml:"parts" required:"true" help:"vendor_part_id of the cards, such as 0x101b"`
	Profiles []string       `yaml:"profiles" help:"profiles of simulated devices that are to show the same"`
	Firmware string         `yaml:"firmware" required:"true" help:"of the cards, for rows that do not name another"`
	Source   string         `yaml:"source" required:"true" help:"where the values were published, for rows that do not say it"`
	Rows     []PublishedRow `yaml:"rows" required:"true"`

	file string
}

// PublishedRow is a value of one step.
type PublishedRow struct {
	Case      string `yaml:"case" required:"true" help:"ID of the case"`
	Step      string `yaml:"step" required:"true" help:"its step, or the attribute that it records"`
	Value     string `yaml:"value" required:"true" help:"what was measured: a number, a word, true or false"`
	Most      string `yaml:"most" help:"the largest number that was measured, where value is the smallest"`
	Tolerance string `yaml:"tolerance" help:"by how much a number may differ: a percentage such as 1%, or a number; nothing: equal"`
	Trials    uint64 `yaml:"trials" help:"in how many trials the value was measured"`
	Source    string `yaml:"source" help:"section or file of the source"`
	Firmware  string `yaml:"firmware" help:"of the card of this row"`

	least, most float64 // of a number
	number      bool
}

// TimeSuffix ends the name of a step that records a time, in milliseconds.
const TimeSuffix = ", ms"

// IsPublished reports whether a file of this name is taken for a record of published measurements,
// and not for a run: those are YAML.
func IsPublished(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// ReadPublished reads the record of published measurements in a file. exists says whether a case is
// in the catalogue.
func ReadPublished(ctx context.Context, name string, exists func(id string) bool) (*Published, error) {
	src, err := input.ReadFile(ctx, name)
	if err != nil {
		return nil, err
	}
	return ParsePublished(name, src, exists)
}

// ParsePublished reads a record of published measurements. Its errors name file, line and column.
func ParsePublished(name string, src []byte, exists func(id string) bool) (*Published, error) {
	p := &Published{file: name}
	doc, err := input.Decode(name, src, p)
	if err != nil {
		return nil, err
	}
	if len(p.Parts) == 0 || len(p.Rows) == 0 {
		return nil, doc.Errorf("", "a record needs parts and rows: without them it is compared with nothing")
	}
	for i, part := range p.Parts {
		n, err := input.Whole(part)
		if err != nil {
			return nil, doc.Errorf(fmt.Sprintf("parts.%d", i), "%v: a part is the vendor_part_id that ibv_devinfo prints, such as 0x101b or 4123", err)
		}
		p.Parts[i] = fmt.Sprintf("%#x", n)
	}
	first := map[[3]string]int{}
	for i := range p.Rows {
		r, at := &p.Rows[i], fmt.Sprintf("rows.%d", i)
		if !exists(r.Case) {
			return nil, doc.Errorf(at+".case", "case %q is unknown: conform list shows the cases", r.Case)
		}
		key := [3]string{r.Case, r.Step, r.Firmware}
		if j, twice := first[key]; twice {
			return nil, doc.Errorf(at, "row %d has %s, step %q too: give a step of a firmware once", j+1, r.Case, r.Step)
		}
		first[key] = i
		if err := r.bounds(); err != nil {
			return nil, doc.Errorf(at, "%v", err)
		}
	}
	return p, nil
}

// bounds works out which numbers the row allows.
func (r *PublishedRow) bounds() error {
	v, err := number(r.Value)
	if r.number = err == nil; !r.number {
		if r.Most != "" || r.Tolerance != "" {
			return fmt.Errorf("value %q is not a number, and only a number has most or tolerance: leave them out", r.Value)
		}
		return nil
	}
	r.least, r.most = v, v
	if r.Most != "" {
		if r.most, err = number(r.Most); err != nil || r.most < v {
			return fmt.Errorf("most %q is not a number from value, %s, on", r.Most, r.Value)
		}
	}
	if r.Tolerance == "" {
		return nil
	}
	text, percent := strings.CutSuffix(r.Tolerance, "%")
	by, err := input.Number(text)
	if err != nil || by < 0 {
		return fmt.Errorf("tolerance %q is neither a percentage such as 1%% nor a number such as 0.5", r.Tolerance)
	}
	low, high := by, by
	if percent {
		low, high = math.Abs(r.least)*by/100, math.Abs(r.most)*by/100
	}
	r.least, r.most = r.least-low, r.most+high
	return nil
}

// number reads a number, decimal or hexadecimal.
func number(text string) (float64, error) {
	if n, err := input.Whole(text); err == nil {
		return float64(n), nil
	}
	return input.Number(text)
}

// allows reports whether a run that has seen got agrees with the row.
func (r *PublishedRow) allows(got any) bool {
	if m, ok := got.(map[string]any); ok { // a completion
		got = m["status"]
	}
	if !r.number {
		return text(got) == r.Value
	}
	var v float64
	switch got := got.(type) {
	case json.Number:
		f, err := got.Float64()
		if err != nil {
			return false
		}
		v = f
	default:
		f, err := strconv.ParseFloat(text(got), 64)
		if err != nil {
			return false
		}
		v = f
	}
	return v >= r.least && v <= r.most
}

// published is what the row says, as text.
func (r *PublishedRow) published() string {
	s := r.Value
	if r.Most != "" {
		s += " to " + r.Most
	}
	if r.Tolerance != "" {
		s += " (" + r.Tolerance + ")"
	}
	return s
}

func (p *Published) firmwareOf(r *PublishedRow) string {
	return cmp.Or(r.Firmware, p.Firmware)
}

// Of reports whether a run is of a card of this kind, or of a simulation of one.
func (p *Published) Of(r *Run) bool {
	at := r.Platform()
	if r.Target.Kind == "sim" {
		return slices.Contains(p.Profiles, at[KeyProfile]) || slices.Contains(p.Profiles, at[KeyExtends])
	}
	return at[KeyProvider] == p.Provider && slices.Contains(p.Parts, at[KeyPart])
}

// Compare compares a run with the published values. A value of a simulated device that differs is a
// gap of the simulation, one of a card with the firmware of the row a regression, and of another
// firmware a change.
func (p *Published) Compare(r *Run) (*Comparison, error) {
	if !p.Of(r) {
		return nil, fmt.Errorf("%s has measurements of %s, parts %s, and profiles %s; the run was made on %s", p.file, p.Name, strings.Join(p.Parts, ", "),
			strings.Join(p.Profiles, ", "), kindName(r))
	}
	out := &Comparison{Schema: DiffSchema, A: Platform{KeyProvider: p.Provider, KeyPart: p.Parts[0], KeyFirmware: p.Firmware}, B: r.Platform(), Summary: map[Class]int{}, Cases: []CaseDiff{}}
	for i := range p.Rows {
		if id := p.Rows[i].Case; !slices.ContainsFunc(out.Cases, func(c CaseDiff) bool { return c.ID == id }) {
			out.Cases = append(out.Cases, p.compare(r, id))
		}
	}
	for _, c := range out.Cases {
		out.Summary[c.Class]++
	}
	return out, nil
}

func kindName(r *Run) string {
	at := r.Platform()
	if r.Target.Kind == "sim" {
		return "profile " + at[KeyProfile]
	}
	return fmt.Sprintf("%s, part %s", at[KeyProvider], at[KeyPart])
}

// compare compares one case.
func (p *Published) compare(r *Run, id string) CaseDiff {
	out := CaseDiff{ID: id, Class: NotCompared, A: Unrecorded, Reason: "the run has not run it"}
	i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == id })
	if i < 0 {
		return out
	}
	c := &r.Cases[i]
	out.B, out.Reason = c.Outcome, c.Reason
	if c.Outcome == NotRun || c.Outcome == Unsupported {
		return out
	}
	if !ran(c) && c.Outcome != Fail {
		out.Class = Incomparable
		return out
	}
	simulated := r.Target.Kind == "sim" || r.Environment[KeyBelow] != ""
	for j := range p.Rows {
		row := &p.Rows[j]
		if row.Case != id {
			continue
		}
		k := slices.IndexFunc(c.Observations, func(o Observation) bool { return o.Step == row.Step })
		if k < 0 || r.Environment[KeyBelow] != "" && strings.HasSuffix(row.Step, TimeSuffix) {
			continue // a time below exec or in a guest is that of the machine
		}
		if out.Class == NotCompared {
			out.Class, out.Reason = Same, ""
		}
		got := c.Observations[k].Got
		if row.allows(got) {
			continue
		}
		d := Difference{Step: row.Step, Class: Changed, A: row.published(), B: got}
		switch {
		case simulated:
			d.Class = SimGap
		case r.Platform()[KeyFirmware] == p.firmwareOf(row):
			d.Class = Regression
		}
		out.Differences = append(out.Differences, d)
		if rank(d.Class) > rank(out.Class) {
			out.Class = d.Class
		}
	}
	if out.Class == NotCompared {
		out.Reason = "the case has seen none of the published steps"
	}
	if c.Outcome == Fail && !out.Class.Bad() {
		out.Class, out.Reason = Regression, "second: "+c.Reason
		if simulated {
			out.Class = SimGap
		}
	}
	return out
}

// Hold judges the cases of a run by the published values: one that has seen another value fails,
// and one of strength H whose values are as published passes. It reports whether the run is of such
// a card.
func (p *Published) Hold(r *Run) bool {
	cmp, err := p.Compare(r)
	if err != nil {
		return false
	}
	for i := range cmp.Cases {
		x := &cmp.Cases[i]
		k := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == x.ID })
		if k < 0 || !ran(&r.Cases[k]) || x.Class == NotCompared {
			continue
		}
		c := &r.Cases[k]
		if len(x.Differences) > 0 {
			d := &x.Differences[0]
			c.Outcome, c.Step = Fail, d.Step
			c.Reason = fmt.Sprintf("%s: published of %s is %s, this run shows %s", d.Step, p.Name, text(d.A), text(d.B))
		} else if c.Outcome == Unrecorded {
			c.Outcome, c.Reason = Pass, ""
		}
	}
	r.Count()
	return true
}

// Missing lists the rows whose steps a run has not seen. Of a run of all cases they name steps that
// there are not.
func (p *Published) Missing(r *Run) (rows []string) {
	for i := range p.Rows {
		row := &p.Rows[i]
		k := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == row.Case })
		if k < 0 || !slices.ContainsFunc(r.Cases[k].Observations, func(o Observation) bool { return o.Step == row.Step }) {
			rows = append(rows, row.Case+": "+row.Step)
		}
	}
	return rows
}
