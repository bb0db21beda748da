package random

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

// Register adds the cases RAND-nnn: each runs a fixed set of random programs, which the model
// judges.
func Register(s *spec.Suite) {
	rc := func(p *Program) bool { return !p.UC && !p.UD && !p.SRQ }
	for i, x := range []struct {
		has    Has
		wanted func(*Program) bool
	}{
		{Has{Late: true, Inject: true}, rc},
		{Has{Late: true, Atomic: true}, rc},
		{Has{Late: true, SRQ: true}, func(p *Program) bool { return p.SRQ }},
		{Has{Late: true, UC: true, UD: true, IPv6: true}, func(p *Program) bool { return p.UC || p.UD }},
		{Has{Late: true, Resize: true}, func(p *Program) bool { return p.steps(StepResize) }},
		{Has{Late: true, Events: true}, func(p *Program) bool { return p.steps(StepArm) }},
		{Has{Late: true, Rereg: true}, func(p *Program) bool { return p.steps(StepRereg) }},
		{Has{Late: true, Atomic: true, SRQ: true, UC: true, Resize: true, Events: true, Rereg: true, Moderation: true, MW1: true, MW2: true, UD: true, IPv6: true, Inject: true}, func(*Program) bool { return true }},
		{Has{Late: true, XRC: true, IPv6: true}, func(p *Program) bool { return p.XRC }},
		{Has{Late: true, ODP: true, Advise: true, Rereg: true}, (*Program).paged},
		{Has{Late: true, UD: true, Mcast: true, IPv6: true}, func(p *Program) bool { return p.Group }},
		{Has{Late: true, SQD: true}, func(p *Program) bool { return p.steps(StepDrain) }},
		{Has{Late: true, CQEx: true, Events: true, Resize: true}, func(p *Program) bool { return p.CQ.Extended }},
		{Has{Late: true, CQEx: true, Direct: true, Compress: true, UD: true}, func(p *Program) bool { return p.CQ.Wide || p.CQ.Compressed != 0 }},
		{Has{Late: true, Atomic: true, SRQ: true, UC: true, Resize: true, Events: true, Rereg: true, Moderation: true, MW1: true, MW2: true, UD: true, IPv6: true, Inject: true,
			Mcast: true, XRC: true, ODP: true, Advise: true, TD: true, CQEx: true, Direct: true, Compress: true}, func(*Program) bool { return true }},
	} {
		s.Case(fmt.Sprintf("RAND-%03d", i+1), fixed(i+1, x.has, x.wanted), spec.Deadline(caseDeadline))
	}
	s.Case("RAND-016", steeredFlows, spec.Deadline(caseDeadline))
}

// caseDeadline is long, since a request that nobody answers takes a card seconds.
const caseDeadline = 20 * time.Minute

// Programs of a case, and of a full run, whose outcomes records hold. Where the clock is virtual, a
// program takes a fraction of a millisecond: there the model judges timesExact as many.
const (
	casePrograms = 25
	fullPrograms = 100
	timesExact   = 4
)

// steps reports whether a step of the program is of the kind.
func (p *Program) steps(kind string) bool {
	for i := range p.Steps {
		if p.Steps[i].Kind == kind {
			return true
		}
	}
	return false
}

// fixed runs programs that are drawn from the number of the case, whatever the seed of the run is,
// so that records of two targets are of the same programs.
func fixed(number int, has Has, wanted func(*Program) bool) func(c *spec.C) {
	return func(c *spec.C) {
		draw, s := NewDraw(has), NewSession(c, true)
		recorded := c.Scale(casePrograms, fullPrograms)
		want := recorded
		if c.Has(spec.ExactTime) {
			want *= timesExact
		}
		calls, vague := 0, 0
		for seed, done := uint64(0), 0; done < want; seed++ {
			p := draw.Program(uint64(number), seed)
			if !wanted(&p) {
				continue
			}
			done++
			o := s.Execute(c, &p)
			if v := o.Violation; v != nil {
				c.Violates(v.Rule, v.Got, v.Want, "program %d, %s; conform random --program '%s' runs it alone", done, v, p.Text())
			}
			if done > recorded {
				continue
			}
			c.ObservePlatform(fmt.Sprintf("program %d", done), o.Hash()) // two devices may take other choices
			calls += len(p.Steps)
			if o.Vague {
				vague++
			}
		}
		c.Observe("programs", recorded)
		c.Observe("steps", calls)
		c.Observe("ended early", vague)
	}
}
