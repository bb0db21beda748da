package random

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// deadline of a program, in the time of its target.
const deadline = time.Minute

// maxEvents bounds a program on a simulator, which may never come to an end.
const maxEvents = 20_000_000

// Local runs programs on a target in this process.
type Local struct {
	Target spec.Target
	Seed   uint64
	Text   bool         // keep streams, for a comparison with another target
	Tap    bool         // hash the frames of each program (capability tap)
	Ended  func() error // returns why no further program may run; nil: no such reason
}

// Run runs the programs on one testbed of the target.
func (l *Local) Run(list []Program) (out []*Outcome, err error) {
	for i := range list {
		if err := list[i].Valid(); err != nil {
			return nil, err
		}
	}
	err = l.on(len(list), func(c *spec.C) {
		s := NewSession(c, l.Text)
		if s.tap = l.Tap; l.Tap && !c.Has("tap") {
			c.Errorf("the target does not let its frames be seen")
		}
		for i := range list {
			if l.Ended != nil && l.Ended() != nil {
				return
			}
			out = append(out, s.Execute(c, &list[i]))
			if out[i].Violation != nil {
				return
			}
		}
	})
	if err == nil && l.Ended != nil {
		err = l.Ended()
	}
	return out, err
}

// Has says which features of a target programs may use.
type Has struct {
	Atomic, SRQ, UC, Resize, Events, Rereg, Moderation, SQD, MW1, MW2, UD, IPv6, Inject bool
	Late                                                                                bool // a receive can be posted at a time
	Mcast, XRC, ODP, Advise, TD, CQEx, Direct, Compress                                 bool
}

// And returns the features that both have.
func (h Has) And(o Has) Has {
	v, w := reflect.ValueOf(&h).Elem(), reflect.ValueOf(o)
	for i := range v.NumField() {
		v.Field(i).SetBool(v.Field(i).Bool() && w.Field(i).Bool())
	}
	return h
}

// Has returns the features of the target.
func (l *Local) Has() (h Has, err error) {
	err = l.on(1, func(c *spec.C) {
		h = Has{Atomic: c.Has("atomic"), SRQ: c.Has("srq"), UC: c.Has("uc"), Resize: c.Has("resize"), Events: c.Has("events"), Rereg: c.Has("rereg"), Moderation: c.Has("cq.moderation"), SQD: c.Has("sqd"), MW1: c.Has("mw.t1"), MW2: c.Has("mw.t2"), UD: true, IPv6: NewSession(c, false).ipv6 != nil, Inject: injects(c),
			Late: c.Has(kit.ExactTime), Mcast: c.Has("mcast"), XRC: c.Has("xrc"), ODP: paging(c), Advise: c.Has("advise"), TD: c.Has("td"), CQEx: c.Has("cq_ex"), Direct: c.Has("dv"), Compress: c.Has("dv.cqe_comp") && c.Has("dv.cqe_comp.read")}
	})
	return h, err
}

// paging reports whether regions on demand may be used as others are, but for atomics.
func paging(c *spec.C) bool {
	for _, what := range []string{"odp", "odp.rc.send", "odp.rc.recv", "odp.rc.write", "odp.rc.read", "odp.rc.srq_recv"} {
		if !c.Has(what) {
			return false
		}
	}
	return true
}

// on runs a body of n programs on a testbed of its own.
func (l *Local) on(n int, body func(c *spec.C)) (err error) {
	bed, err := l.Target.NewTestbed(l.Seed, spec.BedOptions{MaxEvents: uint64(n) * maxEvents})
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		err = errors.Join(err, bed.Close())
	}()
	running := spec.NewRunning("random", l.Seed)
	err = bed.Run(time.Duration(n)*deadline, func(t verbs.Thread) { running.Execute(t, bed, body) })
	if v := running.Result().Verdict; v != nil && v.Outcome != report.Pass {
		err = errors.Join(fmt.Errorf("%s: %s", v.Step, v.Reason), err)
	}
	return err
}

// Hello is the first message of a server.
type Hello struct {
	Has   Has
	Error string `json:",omitempty"`
}

// Serve reads lists of programs from in, one JSON list a line, runs each list and writes its
// outcomes to out; text keeps the streams for a comparison.
func Serve(in io.Reader, out io.Writer, target spec.Target, seed uint64, text bool) error {
	l := &Local{Target: target, Seed: seed, Text: text}
	var h Hello
	var err error
	if h.Has, err = l.Has(); err != nil {
		h.Error = err.Error()
	}
	enc := json.NewEncoder(out)
	if err := enc.Encode(h); err != nil || h.Error != "" {
		return err
	}
	dec := json.NewDecoder(in)
	for {
		var list []Program
		if err := dec.Decode(&list); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a Answer
		if a.Outcomes, err = l.Run(list); err != nil {
			a.Failed = err.Error()
		}
		r, ok := target.(spec.Restarter)
		a.Last = ok && r.NeedsRestart() // another process goes on
		if err := enc.Encode(a); err != nil || a.Last {
			return err
		}
	}
}

// Answer is a server's reply to one list of programs.
type Answer struct {
	Outcomes []*Outcome
	Failed   string `json:",omitempty"` // why the program after these did not end, which is no verdict on the target
	Last     bool   `json:",omitempty"` // the process can run no other program
}

// Text returns the program as a line of JSON.
func (p *Program) Text() string {
	b, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Parse reads programs, each a JSON value.
func Parse(text []byte) (list []Program, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	for {
		var p Program
		if err = d.Decode(&p); errors.Is(err, io.EOF) && len(list) > 0 {
			return list, nil
		} else if err == nil {
			err = p.Valid()
		}
		if err != nil {
			return nil, fmt.Errorf("program: %w", err)
		}
		list = append(list, p)
	}
}
