package profile

import (
	"crypto/sha256"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/sim/hca"
)

// Value is one parameter with its source.
type Value struct {
	Key, Text      string
	Kind           Kind
	Source, Reason string
	Check          string // figure of rdmasim validate that it was fitted to, "" for none
	Hypothesis     bool   // it belongs to a mechanism without a published explanation
}

// Origin is the source of the value with its reason: "fitted to check 3a: ...".
func (v *Value) Origin() string {
	s := v.Source
	if v.Check != "" {
		s += " to check " + v.Check
	}
	if v.Reason != "" {
		s += ": " + v.Reason
	}
	return s
}

// Values are all parameters, section by section.
func (p *Profile) Values() []Value {
	var vs []Value
	for _, q := range p.params() {
		vs = append(vs, p.value(q))
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
	q, ok := p.param(key)
	if !ok {
		return Value{}, false
	}
	return p.value(q), true
}

// WithSource is "key = value (source: reason)", for notes.
func (p *Profile) WithSource(key string) string {
	v, _ := p.Lookup(key)
	why := v.Source
	if v.Reason != "" {
		why += ": " + v.Reason
	}
	return fmt.Sprintf("%s = %s (%s)", key, p.Get(key), why)
}

func (p *Profile) value(q param) Value {
	o := p.origins[q.key]
	return Value{q.key, q.text(), q.kind, o.source, o.reason, o.check, o.hypothesis}
}

// Hypotheses are the values that belong to unexplained mechanisms, as key=value: every result
// carries them. TimingNotCalibrated stands before them where it holds. A time or count of 0, and a
// switch that is false, is a mechanism that is off.
func (p *Profile) Hypotheses() []string {
	hs := p.Timing()
	for _, v := range p.Values() {
		if v.Key == "hca.ib_ack_timer" && p.HCA.LinkLayer != hca.InfiniBand || v.Key == "hca.repeat_scheme" && !p.HCA.SelectiveRepeat {
			continue
		}
		if off := v.Kind == Time && v.Text == "0ps" || v.Kind == Count && v.Text == "0" || v.Kind == Bool && v.Text == "false"; v.Hypothesis && !off {
			hs = append(hs, v.Key+"="+v.Text)
		}
	}
	return hs
}

// TimingNotCalibrated says that no rate or time of a result is evidence.
const TimingNotCalibrated = "timing not calibrated"

// Timing is TimingNotCalibrated for a profile of which no time is calibrated, and empty for others.
func (p *Profile) Timing() []string {
	if p.NotCalibrated == "" {
		return nil
	}
	return []string{TimingNotCalibrated}
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
	if p.NotCalibrated != "" {
		fmt.Fprintf(w, "%s: %s\n\n", TimingNotCalibrated, p.NotCalibrated)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "PARAMETER\tVALUE\tKIND\tSOURCE")
	for _, v := range p.Values() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", v.Key, v.Text, v.Kind, v.Origin())
	}
	return t.Flush()
}

// Keys are all parameters, in the order of Values.
func (p *Profile) Keys() []string {
	var keys []string
	for _, q := range p.params() {
		keys = append(keys, q.key)
	}
	return keys
}
