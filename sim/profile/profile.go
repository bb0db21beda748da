// Package profile composes the parameters of all units of a simulated machine from
// YAML: how fast a core stores to a register, how long a PCIe read takes, what the
// device can do and what the kernel costs. Each value names its source, and the
// units know nothing of profiles: they own plain Params.
//
// A file has a section for each unit (cpu, pcie, hca, uar, commands, congestion, link, ib, switch,
// kernel, provider) and in it, by the name of the parameter, a value, a source, and
// a reason where the source is one of three words: "assumed" (nobody has published
// it), "fitted" (tuned until a figure of rdmasim validate came out, which check names) or
// "hypothesis" (a mechanism that nobody has explained in public; every result says that
// it was on; with check, it was fitted too).
// A file may extend another and then gives only what differs. What is left must
// hold every parameter: none has a default in code.
package profile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/provider"
)

// Profile is a complete set of parameters.
type Profile struct {
	Name, Title string

	CPU      cpu.Params
	PCIe     pcie.Params
	HCA      hca.Params // with its UAR pages and command times
	Link     link.Params
	Switch   link.SwitchParams
	Kernel   kernel.Params
	Provider provider.Params

	origins map[string]origin // by key
}

// origin is where a value comes from.
type origin struct {
	source, reason string
	check          string // figure that it was fitted to
	hypothesis     bool
	doc            *input.Doc // nil for an override
}

// Default is the profile of a run that names none.
const Default = "connectx-5"

// Sources that need a reason.
const (
	Assumed    = "assumed"
	Fitted     = "fitted"
	Hypothesis = "hypothesis"
	// Override is the source of a value that Set gave.
	Override = "override"
)

// file is a profile as it is written.
type file struct {
	Name     string           `yaml:"name" required:"true"`
	Title    string           `yaml:"title" required:"true"`
	Extends  string           `yaml:"extends"`
	Partial  bool             `yaml:"partial"`
	CPU      map[string]entry `yaml:"cpu"`
	PCIe     map[string]entry `yaml:"pcie"`
	HCA      map[string]entry `yaml:"hca"`
	UAR      map[string]entry `yaml:"uar"`
	Commands map[string]entry `yaml:"commands"`
	Congest  map[string]entry `yaml:"congestion"`
	Link     map[string]entry `yaml:"link"`
	IB       map[string]entry `yaml:"ib"`
	Switch   map[string]entry `yaml:"switch"`
	Kernel   map[string]entry `yaml:"kernel"`
	Provider map[string]entry `yaml:"provider"`
}

type entry struct {
	Value  string `yaml:"value" required:"true"`
	Source string `yaml:"source" required:"true"`
	Reason string `yaml:"reason"`
	Check  string `yaml:"check"`
}

func (f *file) sections() map[string]map[string]entry {
	return map[string]map[string]entry{
		"cpu": f.CPU, "pcie": f.PCIe, "hca": f.HCA, "uar": f.UAR, "commands": f.Commands, "congestion": f.Congest,
		"link": f.Link, "ib": f.IB, "switch": f.Switch, "kernel": f.Kernel, "provider": f.Provider,
	}
}

// List is the names of the profiles that come with the program, sorted.
func List() []string {
	var names []string
	for _, n := range stored() {
		if _, f, err := read(n); err == nil && !f.Partial {
			names = append(names, n)
		}
	}
	return names
}

func stored() []string {
	entries, err := fixtures.Profiles.ReadDir("profiles")
	if err != nil {
		panic("profile: " + err.Error()) // embedded: it is there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// read decodes a stored file.
func read(name string) (*input.Doc, *file, error) {
	path := "profiles/" + name + ".yaml"
	src, err := fixtures.Profiles.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("unknown profile %q%s; profiles are %s", name, input.Suggest(name, List()), strings.Join(List(), ", "))
	}
	f := new(file)
	doc, err := input.Decode(path, src, f)
	return doc, f, err
}

// Load is the stored profile of that name.
func Load(name string) (*Profile, error) {
	doc, f, err := read(name)
	if err != nil {
		return nil, err
	}
	if f.Partial {
		return nil, fmt.Errorf("profile %q is a part of others; profiles are %s", name, strings.Join(List(), ", "))
	}
	return build(doc, f)
}

// Parse reads a profile that a user wrote; file is its name for messages. It may
// extend a stored one. All that is wrong is reported at once, with file, line and
// column.
func Parse(name string, src []byte) (*Profile, error) {
	f := new(file)
	doc, err := input.Decode(name, src, f)
	if err != nil {
		return nil, err
	}
	return build(doc, f)
}

func build(doc *input.Doc, f *file) (*Profile, error) {
	p := &Profile{Name: f.Name, Title: f.Title, origins: map[string]origin{}}
	if err := p.apply(doc, f, nil); err != nil {
		return nil, err
	}
	if err := p.complete(doc); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// complete says, for each section, which values no file gave.
func (p *Profile) complete(doc *input.Doc) error {
	var errs []error
	for _, s := range p.sections() {
		var lacks []string
		for _, q := range p.params() {
			name, mine := strings.CutPrefix(q.key, s.name+".")
			if _, ok := p.origins[q.key]; mine && !ok {
				lacks = append(lacks, fmt.Sprintf("%s (a %s)", name, q.kind))
			}
		}
		if lacks != nil {
			errs = append(errs, doc.Errorf(s.name, "section %s lacks %s", s.name, strings.Join(lacks, ", ")))
		}
	}
	return errors.Join(errs...)
}

// apply takes the values of f, after those of what it extends.
func (p *Profile) apply(doc *input.Doc, f *file, seen []string) error {
	if f.Extends != "" {
		if slices.Contains(seen, f.Extends) {
			return doc.Errorf("extends", "%q extends itself", f.Extends)
		}
		bdoc, base, err := read(f.Extends)
		if base == nil {
			return doc.Errorf("extends", "%v", err)
		}
		if err != nil {
			return err
		}
		if err := p.apply(bdoc, base, append(seen, f.Extends)); err != nil {
			return err
		}
	}
	known := map[string]param{}
	for _, q := range p.params() {
		known[q.key] = q
	}
	var errs []error
	sections := f.sections()
	for _, s := range slices.Sorted(maps.Keys(sections)) {
		for _, name := range slices.Sorted(maps.Keys(sections[s])) {
			if err := p.take(doc, known, s, name, sections[s][name]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (p *Profile) take(doc *input.Doc, known map[string]param, section, name string, e entry) error {
	key := section + "." + name
	q, ok := known[key]
	if !ok {
		var near []string
		for k := range known {
			if rest, ok := strings.CutPrefix(k, section+"."); ok {
				near = append(near, rest)
			}
		}
		slices.Sort(near)
		return doc.Errorf(key, "unknown field %q in %s%s; allowed: %s", name, section, input.Suggest(name, near), strings.Join(near, ", "))
	}
	o := origin{source: e.Source, reason: e.Reason, check: e.Check, hypothesis: e.Source == Hypothesis, doc: doc}
	switch e.Source {
	case Assumed, Fitted, Hypothesis:
		if e.Reason == "" {
			return doc.Errorf(key+".source", "%s: a value that is %s needs a reason", key, e.Source)
		}
	}
	switch {
	case e.Source == Fitted && e.Check == "":
		return doc.Errorf(key+".source", "%s: a value that is fitted needs check, the ID of the figure", key)
	case e.Check != "" && e.Source != Fitted && e.Source != Hypothesis:
		return doc.Errorf(key+".check", "%s: only a fitted value or a hypothesis names a check", key)
	case e.Source == "":
		return doc.Errorf(key+".source", "%s has no source: cite one, or say assumed, fitted or hypothesis with a reason", key)
	}
	if err := q.set(e.Value); err != nil {
		return doc.Errorf(key+".value", "%s: %v", key, err)
	}
	p.origins[key] = o
	return nil
}

// Assign is Set of an assignment: "pcie.read_latency=450ns".
func (p *Profile) Assign(assignment string) error {
	key, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return fmt.Errorf("%q is not key=value", assignment)
	}
	return p.Set(strings.TrimSpace(key), strings.TrimSpace(text))
}

// Set overrides the value of key by its text. An unknown key is answered with the
// nearest. The units' own checks are made by Validate, after all overrides.
func (p *Profile) Set(key, text string) error {
	var keys []string
	for _, q := range p.params() {
		if q.key == key {
			if err := q.set(text); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			p.origins[key] = origin{source: Override, hypothesis: p.origins[key].hypothesis}
			return nil
		}
		keys = append(keys, q.key)
	}
	return fmt.Errorf("unknown parameter %q%s", key, input.Suggest(key, keys))
}

// Keys are all parameters, in the order of Values.
func (p *Profile) Keys() []string {
	var keys []string
	for _, q := range p.params() {
		keys = append(keys, q.key)
	}
	return keys
}

// Validate makes the checks of all units. A complaint is placed at the value it
// names, where that came from a file.
func (p *Profile) Validate() error {
	var errs []error
	for _, c := range []struct {
		section string
		err     error
	}{
		{"cpu", p.CPU.Validate()}, {"pcie", p.PCIe.Validate()}, {"hca", p.HCA.Check()},
		{"link", p.Link.Check()}, {"ib", p.Link.IB.Check()}, {"switch", p.Switch.Check()}, {"kernel", p.Kernel.Validate()}, {"provider", p.Provider.Validate()},
	} {
		for _, err := range unjoin(c.err) {
			errs = append(errs, p.place(c.section, err))
		}
	}
	errs = append(errs, p.checkLinkLayer())
	return errors.Join(errs...)
}

func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, unjoin(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// place finds the value that a unit's complaint speaks of by the longest field name
// in its text.
func (p *Profile) place(section string, err error) error {
	text := strings.ToLower(strings.ReplaceAll(err.Error(), " ", ""))
	var best param
	for _, q := range p.params() {
		s, _, _ := strings.Cut(q.key, ".")
		if s != section && !(section == "hca" && (s == "uar" || s == "commands" || s == "congestion")) {
			continue
		}
		if strings.Contains(text, strings.ToLower(q.field)) && len(q.field) > len(best.field) {
			best = q
		}
	}
	if o := p.origins[best.key]; o.doc != nil {
		return o.doc.Errorf(best.key+".value", "%s: %v", best.key, err)
	}
	if best.key != "" {
		return fmt.Errorf("%s: %w", best.key, err)
	}
	return err
}

// Clone is a copy that can be overridden apart.
func (p *Profile) Clone() *Profile {
	c := *p
	c.origins = maps.Clone(p.origins)
	return &c
}

// Value is one parameter with its source.
type Value struct {
	Key, Text      string
	Kind           Kind
	Source, Reason string
	Check          string // figure of rdmasim validate that it was fitted to, "" for none
	Hypothesis     bool   // it belongs to a mechanism that is not explained in public
}

// Values are all parameters, section by section.
func (p *Profile) Values() []Value {
	var vs []Value
	for _, q := range p.params() {
		o := p.origins[q.key]
		vs = append(vs, Value{q.key, q.text(), q.kind, o.source, o.reason, o.check, o.hypothesis})
	}
	return vs
}

// Get is the text of the value of key, "" when there is none.
func (p *Profile) Get(key string) string {
	v, _ := p.Lookup(key)
	return v.Text
}

// Lookup is the value of key.
func (p *Profile) Lookup(key string) (Value, bool) {
	for _, v := range p.Values() {
		if v.Key == key {
			return v, true
		}
	}
	return Value{}, false
}

// Hypotheses are the values that belong to unexplained mechanisms, as key=value:
// every result carries them. A time of 0 is a mechanism that is off.
func (p *Profile) Hypotheses() []string {
	var hs []string
	for _, v := range p.Values() {
		if v.Hypothesis && (v.Kind != Time || v.Text != "0ps") {
			hs = append(hs, v.Key+"="+v.Text)
		}
	}
	return hs
}

// Hash identifies the values: 16 hexadecimal digits that change with any of them,
// and not with names, titles or sources.
func (p *Profile) Hash() string {
	h := sha256.New()
	for _, v := range p.Values() {
		fmt.Fprintf(h, "%s=%s\n", v.Key, v.Text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// Show prints all values with their kinds and sources.
func (p *Profile) Show(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s\nhash %s\n\n", p.Name, p.Title, p.Hash()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "PARAMETER\tVALUE\tKIND\tSOURCE")
	for _, v := range p.Values() {
		source := v.Source
		if v.Check != "" {
			source += " to check " + v.Check
		}
		if v.Reason != "" {
			source += ": " + v.Reason
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", v.Key, v.Text, v.Kind, source)
	}
	return t.Flush()
}
