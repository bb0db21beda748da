package random

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"reflect"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/model"
)

// Side runs programs on a target.
type Side interface {
	// Run runs programs in turn on one testbed, which is made for them, up to the first that leaves
	// the model. An error is of the harness, and ends the search; the outcomes before it are valid.
	Run(list []Program) ([]*Outcome, error)
}

// Digest is a side that hashes the outcomes of its programs and, if the side taps the wire, the
// frames that they sent.
type Digest struct {
	Side
	hash hash.Hash
}

// Run runs the programs on the side and adds their outcomes to the hash.
func (d *Digest) Run(list []Program) ([]*Outcome, error) {
	out, err := d.Side.Run(list)
	if d.hash == nil {
		d.hash = sha256.New()
	}
	for _, o := range out {
		fmt.Fprintf(d.hash, "%s %s %t\n", o.Hash(), o.Wire, o.Vague)
	}
	return out, err
}

// Sum returns the hash of all programs so far, in hexadecimal.
func (d *Digest) Sum() string {
	if d.hash == nil {
		return ""
	}
	return hex.EncodeToString(d.hash.Sum(nil)[:16])
}

// Finding is a program on which a target leaves the model, or two targets differ, as small as the
// search could make it.
type Finding struct {
	Programs   []Program // the last one shows the difference, after the others on the same testbed
	Difference Difference
	Tried      int // programs run until the difference showed; 0: the programs were given
}

// Text returns the programs as Parse reads them, one a line.
func (f *Finding) Text() string {
	var l []string
	for i := range f.Programs {
		l = append(l, f.Programs[i].Text())
	}
	return strings.Join(l, "\n")
}

// Source returns the programs as bodies of cases, in Go; name is the name of the function.
func (f *Finding) Source(name string) string {
	text, last := "", len(f.Programs)-1
	for i := range last {
		text += f.Programs[i].Source(fmt.Sprintf("%sBefore%d", name, i+1), nil) + "\n"
	}
	return text + f.Programs[last].Source(name, &f.Difference)
}

// Judge runs programs on each side, one side after the other. The model judges each outcome; with
// two sides it also compares them. Judge returns the first difference and the index of its program.
func Judge(list []Program, sides []Side, cover *model.Coverage) (int, *Difference, error) {
	for i := range list {
		if err := list[i].Valid(); err != nil {
			return i, nil, err
		}
	}
	var out [][]*Outcome
	for i, s := range sides {
		l, err := s.Run(list)
		if err != nil {
			return len(l), nil, fmt.Errorf("target %d: %w", i+1, err)
		}
		out = append(out, l)
	}
	for k := range list {
		for i, l := range out {
			if k >= len(l) {
				return k, nil, fmt.Errorf("target %d: %d outcomes of %d programs", i+1, len(l), len(list))
			}
			if o := l[k]; cover != nil && o.Cover != nil {
				cover.Add(o.Cover)
			}
			if v := l[k].Violation; v != nil {
				return k, &Difference{Side: i, Violation: v}, nil
			}
		}
		if len(out) > 1 {
			if d := Compare(out[0][k], out[1][k]); d != nil {
				return k, d, nil
			}
		}
	}
	return 0, nil, nil
}

// Batch is the number of programs that run on one testbed.
const Batch = 64

// Search draws programs and judges the sides on each until a difference shows or all have run. A
// difference that does not show again is an error. If a side ends with an error after a difference
// has shown, Search returns that error and the finding so far.
func Search(sides []Side, has Has, programs int, seed uint64, shrink time.Duration, cover *model.Coverage) (*Finding, error) {
	d := NewDraw(has)
	for tried := 0; tried < programs; {
		batch := list(min(Batch, programs-tried), func() Program { tried++; return d.Program(seed, uint64(tried)) })
		at, diff, err := Judge(batch, sides, cover)
		if err != nil {
			return nil, named(batch, sides, err)
		}
		if diff != nil {
			f := &Finding{batch[:at+1], *diff, tried - len(batch) + at + 1}
			return f, f.shrink(sides, time.Now().Add(shrink))
		}
		if cover != nil {
			d.Prefer(cover)
		}
	}
	return nil, nil
}

// named adds the program to an error: the first that fails alone, or else all that were to run.
func named(batch []Program, sides []Side, err error) error {
	for i := range batch {
		if _, _, alone := Judge(batch[i:i+1], sides, nil); alone != nil {
			return fmt.Errorf("%w; the program: %s", alone, batch[i].Text())
		}
	}
	return fmt.Errorf("%w; none of these programs fails alone: %s", err, (&Finding{Programs: batch}).Text())
}

// errShownOnce is of a difference that depends on chance.
var errShownOnce = errors.New("a difference showed once and not again")

// shrink makes a finding smaller.
func (f *Finding) shrink(sides []Side, until time.Time) error {
	var broken error
	shows := func(list []Program) bool {
		if broken != nil {
			return false
		}
		at, d, err := Judge(list, sides, nil)
		broken = err
		ok := d != nil && at == len(list)-1 && d.like(&f.Difference)
		if ok {
			f.Programs, f.Difference = list, *d
		}
		return ok
	}
	last := f.Programs[len(f.Programs)-1:]
	if !shows(last) && broken == nil && !shows(f.Programs) && broken == nil {
		return fmt.Errorf("%w (%s); the program: %s", errShownOnce, &f.Difference, last[0].Text())
	}
	for i, better := 0, false; broken == nil && time.Now().Before(until); {
		l := clone(f.Programs)
		if n := i; !edit(reflect.ValueOf(&l).Elem(), &n) {
			if !better {
				break
			}
			i, better = 0, false // what is smaller now may let go of what came before it
			continue
		}
		valid := len(l) > 0
		for k := range l {
			valid = valid && l[k].Valid() == nil
		}
		if !valid || !shows(l) {
			i++
		} else {
			better = true
		}
	}
	return broken
}

// like reports whether two differences are of one kind.
func (d *Difference) like(o *Difference) bool {
	if d.Violation == nil || o.Violation == nil {
		return d.Violation == o.Violation
	}
	return d.Side == o.Side && d.Violation.Rule == o.Violation.Rule
}

func clone(l []Program) (out []Program) {
	b, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic(err) // of numbers and words
	}
	return out
}

// edit makes a value smaller in the nth of the ways in which it can be: without a part of a list,
// with a number or word that is zero, or half. It returns false if there are not so many, and takes
// those that there are off n.
func edit(v reflect.Value, n *int) bool {
	try := func(change func()) bool {
		if *n--; *n >= 0 {
			return false
		}
		change()
		return true
	}
	switch v.Kind() {
	case reflect.Slice:
		for size := v.Len(); size > 0; size /= 2 {
			for at := 0; at+size <= v.Len(); at += size {
				if try(func() { v.Set(reflect.AppendSlice(v.Slice(0, at), v.Slice(at+size, v.Len()))) }) {
					return true
				}
			}
		}
		fallthrough
	case reflect.Array:
		for i := v.Len() - 1; i >= 0; i-- {
			if edit(v.Index(i), n) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if edit(v.Field(i), n) {
				return true
			}
		}
	default:
		if v.IsZero() {
			return false
		}
		if try(v.SetZero) {
			return true
		}
		switch {
		case v.CanInt():
			return v.Int()/2 != 0 && try(func() { v.SetInt(v.Int() / 2) })
		case v.CanUint():
			return v.Uint()&(v.Uint()-1) != 0 && try(func() { v.SetUint(v.Uint() & (v.Uint() - 1)) })
		}
	}
	return false
}
