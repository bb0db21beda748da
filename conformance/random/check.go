package random

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/conformance/model"
)

// Side runs programs on a target.
type Side interface {
	// Run runs a program. An error is of the harness, and ends the search.
	Run(p *Program) (*Outcome, error)
}

// Finding is a program on which a target leaves the model, or two targets differ, made as small as could be found.
type Finding struct {
	Program    Program
	Difference Difference
	Tried      int // programs until there was one; 0: it was given
}

// Judge runs one program on each side, in turn. The model judges each, and with two sides their outcomes are compared.
func (p *Program) Judge(sides []Side, cover *model.Coverage) (*Difference, error) {
	if err := p.Valid(); err != nil {
		return nil, err
	}
	var out []*Outcome
	for i, s := range sides {
		o, err := s.Run(p)
		if err == nil && o.Failed != "" {
			err = errors.New(o.Failed)
		}
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", i+1, err)
		}
		if cover != nil && o.Cover != nil {
			cover.Add(o.Cover)
		}
		out = append(out, o)
	}
	for i, o := range out {
		if o.Violation != nil {
			return &Difference{Side: i, Violation: o.Violation}, nil
		}
	}
	if len(out) < 2 {
		return nil, nil
	}
	return Compare(out[0], out[1]), nil
}

// preferEvery is after how many programs the draws look at the coverage again.
const preferEvery = 100

// Search draws programs and judges the sides on each, until there is a difference or there were enough of them. A difference that does
// not show again is an error. Beside the error of a side that ended after a difference had shown, the finding is what had
// been found by then.
func Search(sides []Side, has Has, programs int, seed uint64, shrink time.Duration, cover *model.Coverage) (*Finding, error) {
	restore, err := setFlags(map[string]string{"rapid.checks": strconv.Itoa(programs), "rapid.seed": strconv.FormatUint(max(seed, 1), 10),
		"rapid.nofailfile": "true", "rapid.shrinktime": shrink.String(), "rapid.log": "false", "rapid.v": "false", "rapid.failfile": ""})
	if err != nil {
		return nil, err
	}
	defer restore()
	var found *Finding
	var broken error
	tried := 0
	tb := &recorder{}
	d := NewDraw(has)
	draw := d.Programs()
	tb.run(func() {
		rapid.Check(tb, func(t *rapid.T) {
			if found == nil { // a smaller program is drawn as the first was
				if tried%preferEvery == 0 && tried > 0 && cover != nil {
					d.Prefer(cover)
				}
				tried++
			}
			p := draw.Draw(t, "program")
			diff, err := p.Judge(sides, cover)
			if err != nil {
				broken = fmt.Errorf("%w; the program: %s", err, p.Text())
				runtime.Goexit() // rapid would take any other end for that of one program, and draw all the others
			}
			if diff != nil {
				found = &Finding{p, *diff, tried}
				t.Fatalf("a difference")
			}
		})
	})
	if broken != nil || found == nil {
		return found, broken
	}
	// What was found last may be one of the attempts to make it smaller: it is certain when it shows once more.
	diff, err := found.Program.Judge(sides, nil)
	if err != nil {
		return found, err
	}
	if diff == nil {
		return nil, fmt.Errorf("a difference showed once and not again (%s); the program: %s", &found.Difference, found.Program.Text())
	}
	found.Difference = *diff
	return found, nil
}

// setFlags sets flags of package rapid, which has no other way to be told, and returns what puts them back.
func setFlags(values map[string]string) (restore func(), err error) {
	if !testing.Testing() { // rapid asks package testing whether tests are short
		testing.Init()
		if err := flag.CommandLine.Parse(nil); err != nil {
			return nil, err
		}
	}
	before := map[string]string{}
	restore = func() {
		for name, v := range before {
			_ = flag.Set(name, v)
		}
	}
	for name, v := range values {
		f := flag.Lookup(name)
		if f == nil {
			restore()
			return nil, fmt.Errorf("this version of rapid has no flag %s", name)
		}
		before[name] = f.Value.String()
		if err := flag.Set(name, v); err != nil {
			restore()
			return nil, err
		}
	}
	return restore, nil
}

// recorder is what rapid reports to.
type recorder struct{ failed bool }

// ended is the panic that ends a function of rapid.
type ended struct{}

// run runs f on a goroutine of its own, which f may end.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(ended); !ok {
					panic(p)
				}
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) Helper()               {}
func (r *recorder) Name() string          { return "conform random" }
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Log(...any)            {}
func (r *recorder) Skipf(string, ...any)  { panic(ended{}) }
func (r *recorder) Skip(...any)           { panic(ended{}) }
func (r *recorder) SkipNow()              { panic(ended{}) }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Error(...any)          { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) FailNow()              { r.failed = true; panic(ended{}) }
func (r *recorder) Fail()                 { r.failed = true }
func (r *recorder) Failed() bool          { return r.failed }
