package profile

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
)

// Validate makes the checks of all units. An error is placed at the value that it
// names, if that is from a file.
func (p *Profile) Validate() error {
	var errs []error
	for _, c := range []struct {
		section string
		err     error
	}{
		{"cpu", p.CPU.Validate()}, {"pcie", p.PCIe.Validate()}, {"hca", p.HCA.Check()},
		{"link", p.Link.Check()}, {"ib", p.Link.IB.Check()}, {"switch", p.Switch.Check()}, {"kernel", p.Kernel.Validate()}, {"provider", p.Provider.Validate()}, {"gpu", p.GPU.Check()},
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

// place finds the value that a unit's error is about, by the longest field name in its
// text.
func (p *Profile) place(section string, err error) error {
	text := strings.ToLower(strings.ReplaceAll(err.Error(), " ", ""))
	var best param
	for _, q := range p.params() {
		s, _, _ := strings.Cut(q.key, ".")
		if s != section && !(section == "hca" && (s == "uar" || s == "commands" || s == "congestion" || s == "odp")) {
			continue
		}
		if strings.Contains(text, strings.ToLower(q.field)) && len(q.field) > len(best.field) {
			best = q
		}
	}
	if best.key == "" {
		return err
	}
	part, _, _ := strings.Cut(best.key, ".") // of the section, or the section itself
	what := p.keysFor(err.Error(), section, part)
	if v, ok := strings.CutPrefix(what, best.key+" is "); ok && strings.IndexAny(v, "0123456789") == 0 {
		what = v
	}
	what = best.key + ": " + what
	if o := p.origins[best.key]; o.doc != nil {
		return o.doc.Errorf(best.key+".value", "%s", what)
	}
	return errors.New(what)
}

// keysFor is a unit's error with the keys of values in place of the fields' names, those of the
// last section first.
func (p *Profile) keysFor(text string, sections ...string) string {
	keys := map[string]string{}
	for _, section := range sections {
		text = strings.TrimPrefix(text, section+": ")
		for _, q := range p.params() {
			if s, _, _ := strings.Cut(q.key, "."); s == section {
				keys[q.field] = q.key
			}
		}
	}
	return fieldName.ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(keys[word], word) })
}

var fieldName = regexp.MustCompile(`\b[A-Z]\w+`)
