package report

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Ledger is the list of known deviations of targets from the catalogue, each with its
// evidence. An entry predicts a value. It never removes a check: a target that meets the
// catalogue after all fails until the entry is removed.
type Ledger struct{ Entries []Deviation }

// Deviation is one entry of the ledger.
type Deviation struct {
	ID    string `yaml:"id" required:"true" help:"name, such as RXE-02"`
	Title string `yaml:"title" required:"true" help:"what differs"`
	// Where says on which platforms it holds: key (see Platform) to a range of versions
	// or a regular expression. The file's provider is one more condition.
	Where    map[string]string `yaml:"where" required:"true" help:"platform key to a range (>=6.1 <6.13) or a regular expression"`
	Kind     string            `yaml:"kind" required:"true" oneof:"unsupported,errno,status,event,timing,rounding,counter,wire,erratum,bug"`
	Evidence string            `yaml:"evidence" required:"true" help:"source file, issue or recording"`
	// Owner maintains the entry. Opened and ReviewBy are dates (2006-01-02); the entry must
	// be reviewed by the latter.
	Owner    string       `yaml:"owner" required:"true"`
	Opened   string       `yaml:"opened" required:"true"`
	ReviewBy string       `yaml:"review_by" required:"true"`
	Predicts []Prediction `yaml:"predicts" required:"true"`

	// Provider is that of the entry's file.
	Provider string `yaml:"-"`

	conditions []constraint
}

// Prediction is what one step of a case shows.
type Prediction struct {
	// Case is an ID. With Field it may be a pattern (RC-*).
	Case string `yaml:"case" required:"true"`
	// Step of the case; with Field it may be a pattern.
	Step string `yaml:"step" required:"true"`
	// Field of a completion (wc_flags, byte_len) or of attributes (DeviceCapFlags) that differs
	// while the step's own expectation holds; it matters only where two runs are compared.
	Field string `yaml:"field"`
	Got   string `yaml:"got" required:"true"`
	// Sometimes says that the deviation depends on chance: the step may also show what is
	// expected. Case may then be a pattern.
	Sometimes bool `yaml:"sometimes"`
	// AtMost bounds what an open prediction explains: of a case by a pattern, and of what happens
	// sometimes. A run with more such steps, or a comparison with more such differences, fails.
	AtMost int `yaml:"at_most" help:"how many steps of a run it may explain at most; needed with sometimes and with a pattern for the case"`
}

// open reports whether the prediction needs a bound.
func (p *Prediction) open() bool { return p.Sometimes || hasPattern(p.Case) }

// anyCase reports whether Case may be a pattern: of what need not happen in each.
func (p *Prediction) anyCase() bool { return p.Field != "" || p.Sometimes }

// Of reports whether the prediction is of a step of the case, not of a field that two runs
// are compared by.
func (p *Prediction) Of(id string) bool {
	if p.Field != "" {
		return false
	}
	if !p.Sometimes {
		return p.Case == id
	}
	match, _ := path.Match(p.Case, id)
	return match
}

// ledgerFile is one file of the ledger, that of one provider.
type ledgerFile struct {
	Provider   string      `yaml:"provider" required:"true" help:"user-space driver that the file describes"`
	Deviations []Deviation `yaml:"deviations" required:"true"`
}

// longest times between two reviews of an entry.
var reviewAfter = map[bool]time.Duration{true: 180 * 24 * time.Hour, false: 366 * 24 * time.Hour}

// proofs match what the evidence of a bug must have at least one of: a link, a recording, a
// program, or a command that shows it.
var proofs = []string{"http", "fixtures/", "scripts/lab ", "rdmasim vm "}

const dateForm = "2006-01-02"

// Add reads a file of the ledger. exists says whether a case is in the catalogue.
func (l *Ledger) Add(name string, text []byte, exists func(id string) bool) error {
	var f ledgerFile
	doc, err := input.Decode(name, text, &f)
	if err != nil {
		return err
	}
	for i := range f.Deviations {
		d := &f.Deviations[i]
		at := fmt.Sprintf("deviations.%d", i)
		if err := d.check(doc, at, f.Provider, exists); err != nil {
			return err
		}
		for _, other := range l.Entries {
			if other.ID == d.ID {
				return doc.Errorf(at+".id", "a second entry %s", d.ID)
			}
		}
		l.Entries = append(l.Entries, *d)
	}
	return nil
}

func (d *Deviation) check(doc *input.Doc, at, provider string, exists func(string) bool) error {
	d.Provider = provider
	if len(d.Where) == 0 {
		return doc.Errorf(at+".where", "an entry holds for a range of versions, a part or a profile, never for all platforms")
	}
	d.conditions = append(d.conditions, constraint{KeyProvider, func(s string) bool { return s == provider }})
	for _, key := range slices.Sorted(maps.Keys(d.Where)) {
		known := []string{KeyPeer, KeyPart, KeyFirmware, KeyKernel, KeyRDMACore, KeyLinkLayer, KeyPageSize, KeyProfile}
		if !slices.Contains(known, key) && !strings.HasPrefix(key, KeyEnv) {
			return doc.Errorf(at+".where."+key, "unknown key %q%s; keys are %s and env.NAME", key, input.Suggest(key, known), strings.Join(known, ", "))
		}
		c, err := parseConstraint(key, d.Where[key])
		if err != nil {
			return doc.Errorf(at+".where."+key, "%v", err)
		}
		d.conditions = append(d.conditions, c)
	}
	if err := d.checkDates(doc, at); err != nil {
		return err
	}
	if d.Kind == "bug" && !slices.ContainsFunc(proofs, func(p string) bool { return strings.Contains(d.Evidence, p) }) {
		return doc.Errorf(at+".evidence", "a bug needs a link, a recording or a command for the lab or a guest as evidence")
	}
	for i, p := range d.Predicts {
		where := fmt.Sprintf("%s.predicts.%d", at, i)
		if !p.anyCase() && !exists(p.Case) {
			return doc.Errorf(where+".case", "case %q is unknown", p.Case)
		}
		if p.open() != (p.AtMost > 0) {
			return doc.Errorf(where, "at_most, a number from 1, is needed with sometimes or a pattern for the case, and not allowed otherwise")
		}
		for _, pattern := range []string{p.Case, p.Step} {
			if _, err := path.Match(pattern, ""); p.anyCase() && err != nil {
				return doc.Errorf(where, "pattern %q: %v", pattern, err)
			}
		}
	}
	return nil
}

func (d *Deviation) checkDates(doc *input.Doc, at string) error {
	opened, err := time.Parse(dateForm, d.Opened)
	if err != nil {
		return doc.Errorf(at+".opened", "%q is not a date such as 2026-11-21", d.Opened)
	}
	review, err := time.Parse(dateForm, d.ReviewBy)
	if err != nil {
		return doc.Errorf(at+".review_by", "%q is not a date such as 2026-11-21", d.ReviewBy)
	}
	if longest := reviewAfter[d.Kind == "bug"]; review.Sub(opened) > longest {
		return doc.Errorf(at+".review_by", "an entry of kind %s is looked at again after %d days at most", d.Kind, longest/(24*time.Hour))
	}
	return nil
}

// Holds reports whether the entry is of the platform.
func (d *Deviation) Holds(p Platform) bool {
	for _, c := range d.conditions {
		v, known := p[c.key]
		if !known || !c.holds(v) && !(c.key == KeyProfile && p[KeyExtends] != "" && c.holds(p[KeyExtends])) {
			return false
		}
	}
	return true
}

// Inherited reports whether the entry is of the platform only by the stored profile that a user's
// own extends. His changes may be of what deviates, so that the predictions may come true or not.
func (d *Deviation) Inherited(p Platform) bool {
	for _, c := range d.conditions {
		if c.key == KeyProfile && !c.holds(p[KeyProfile]) {
			return d.Holds(p)
		}
	}
	return false
}

// Of are the entries that hold on a platform.
func (l *Ledger) Of(p Platform) []*Deviation {
	if l == nil {
		return nil
	}
	var out []*Deviation
	for i := range l.Entries {
		if l.Entries[i].Holds(p) {
			out = append(out, &l.Entries[i])
		}
	}
	return out
}

// Ambiguous names two entries that predict the same step on a platform.
func (l *Ledger) Ambiguous(p Platform) error {
	seen := map[[2]string]string{}
	for _, d := range l.Of(p) {
		for _, x := range d.Predicts {
			key := [2]string{x.Case, x.Step}
			if x.Field != "" || x.Sometimes { // of those an entry lists each value that it explains
				key[1] += "\x00" + x.Field + "\x00" + x.Got
			}
			if other, twice := seen[key]; twice {
				return fmt.Errorf("deviations %s and %s both predict %s: %s", other, d.ID, x.Case, x.Step)
			}
			seen[key] = d.ID
		}
	}
	return nil
}

// Overdue lists the entries of a platform whose date of review has passed.
func (l *Ledger) Overdue(p Platform, today time.Time) []string {
	var out []string
	for _, d := range l.Of(p) {
		if review, err := time.Parse(dateForm, d.ReviewBy); err == nil && today.After(review.Add(24*time.Hour)) {
			out = append(out, fmt.Sprintf("deviation %s was to be looked at again by %s (owner %s)", d.ID, d.ReviewBy, d.Owner))
		}
	}
	return out
}

// field is the entry that predicts a field of a completion in a step, of those that hold, and its
// prediction.
func field(entries []*Deviation, id, step, name, got string) (*Deviation, *Prediction) {
	for _, d := range entries {
		for i := range d.Predicts {
			p := &d.Predicts[i]
			if p.Field != name || p.Got != got {
				continue
			}
			ok, err := path.Match(p.Case, id)
			in, err2 := path.Match(p.Step, step)
			if err == nil && err2 == nil && ok && in {
				return d, p
			}
		}
	}
	return nil, nil
}

// Exceeded says which predictions explain more steps of a run than they may.
func (l *Ledger) Exceeded(r *Run) []string {
	var out []string
	for _, d := range l.Of(r.Platform()) {
		for i := range d.Predicts {
			p := &d.Predicts[i]
			if !p.open() || p.Field != "" {
				continue
			}
			n := 0
			for j := range r.Cases {
				if c := &r.Cases[j]; p.Of(c.ID) {
					n += shows(c, d.ID, p.Step)
				}
			}
			if n > p.AtMost {
				out = append(out, p.exceeded(d, n))
			}
		}
	}
	return out
}

// exceeded says that a prediction explains n steps.
func (p *Prediction) exceeded(d *Deviation, n int) string {
	return fmt.Sprintf("deviation %s explains %d steps (%s: %s), and at most %d are expected", d.ID, n, p.Case, p.Step, p.AtMost)
}

// shows counts the steps of that name in which a case deviates as an entry says.
func shows(c *Case, entry, step string) int {
	n := 0
	for _, o := range c.Observations {
		if o.Step == step && o.Deviation == entry {
			n++
		}
	}
	return n
}

// Without is the ledger without an entry.
func (l *Ledger) Without(id string) *Ledger {
	return &Ledger{Entries: slices.DeleteFunc(slices.Clone(l.Entries), func(d Deviation) bool { return d.ID == id })}
}

// Find returns the entry of that name, or nil.
func (l *Ledger) Find(id string) *Deviation {
	i := slices.IndexFunc(l.Entries, func(d Deviation) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &l.Entries[i]
}

// sometimes reports whether an entry says that the deviation of a step depends on chance.
func sometimes(entries []*Deviation, entry, id, step string) bool {
	for _, d := range entries {
		if d.ID != entry {
			continue
		}
		for i := range d.Predicts {
			if p := &d.Predicts[i]; p.Sometimes && p.Step == step && p.Of(id) {
				return true
			}
		}
	}
	return false
}
