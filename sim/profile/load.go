package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// IsFile reports whether a name that --profile takes is the path of a user's file: it ends in .yaml
// or .yml.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Load is the stored profile of that name, or that of a user's file.
func Load(name string) (*Profile, error) {
	if IsFile(name) {
		src, err := input.ReadFile(context.Background(), name)
		if err != nil {
			return nil, err
		}
		return Parse(name, src)
	}
	doc, f, err := read(name)
	if err != nil {
		return nil, err
	}
	if f.Partial {
		return nil, fmt.Errorf("%q is only a part of other profiles; profiles are %s", name, strings.Join(List(), ", "))
	}
	return build(doc, f)
}

// Parse reads a profile that a user wrote; name is that of its file, for messages. It may
// extend a stored profile. All mistakes are reported at once, with file, line and column.
func Parse(name string, src []byte) (*Profile, error) {
	f := new(file)
	doc, err := input.Decode(name, src, f)
	if err != nil {
		return nil, err
	}
	return build(doc, f)
}

func build(doc *input.Doc, f *file) (*Profile, error) {
	p := &Profile{Name: f.Name, Title: f.Title, Extends: f.Extends, origins: map[string]origin{}}
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

// apply takes the values of f, after those of the profile that it extends.
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
	if f.NotCalibrated != "" {
		p.NotCalibrated = f.NotCalibrated
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
			return doc.Errorf(key+".source", "%s: a value whose source is %s needs a reason", key, e.Source)
		}
	}
	switch {
	case e.Source == Fitted && e.Check == "":
		return doc.Errorf(key+".source", "%s: a fitted value needs check, the ID of the figure that it was fitted to", key)
	case e.Check != "" && e.Source != Fitted && e.Source != Hypothesis:
		return doc.Errorf(key+".check", "%s: check is given, and only a fitted value or a hypothesis has one", key)
	case e.Source == "":
		return doc.Errorf(key+".source", "%s has no source: cite one, or write assumed, fitted or hypothesis, and a reason", key)
	}
	if err := q.set(e.Value); err != nil {
		return doc.Errorf(key+".value", "%s: %v", key, err)
	}
	p.origins[key] = o
	return nil
}

// complete reports, for each section, the values that no file gives.
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
			errs = append(errs, doc.Errorf(s.name, "section %s has no value for %s, neither here nor in a file that this one extends", s.name, strings.Join(lacks, ", ")))
		}
	}
	return errors.Join(errs...)
}
