// Package mutant is the list of simulators that break one rule of the device, the driver or the
// library each. The conformance suite must notice every one of them: "conform mutants" runs it
// on each. Counts notice those of the kernel's completion models.
//
// Most rules can be broken from outside, at an interface between two units: the face of
// the device (registers and commands), the bus, the wire. Those that cannot are switches
// of sim/rule, which only a build with the tag mutants has.
package mutant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// Mutant is a simulator that breaks one rule.
type Mutant struct {
	Name string
	// Area is that of the catalogue in which the rule is tested first.
	Area string
	// Rule is what it breaks, in one sentence that holds without the mutant.
	Rule string
	// Killers are the cases that are likely to notice, the first to be tried; of a counted mutant
	// probes.
	Killers []string
	// Profile is the device that shows it; empty: any.
	Profile string

	broken rule.Rule     // or 0
	bit    rule.TableBit // or zero
	wrap   func(*testbed.Wrap)
}

// Break makes the mutant of a testbed. The zero Mutant changes nothing.
func (m Mutant) Break(cfg *testbed.Config) {
	if m.broken != 0 {
		cfg.Broken = rule.Break(m.broken)
	}
	if m.bit != (rule.TableBit{}) {
		cfg.Broken = rule.BreakTable(m.bit)
	}
	if m.wrap != nil {
		m.wrap(&cfg.Wrap)
	}
}

// All lists the mutants: those of the library, the kernel and the device.
func All() []Mutant {
	var all []Mutant
	for _, list := range [][]Mutant{library, kernel, commands, registers, packets, responder, requester, failures, keys, queues, paging, xrc, contexts, lostBits, answers, edges, table, connections, dmabuf, direct, directKeys, dc, steering, completions} {
		all = append(all, list...)
	}
	for i := range all {
		m := &all[i]
		m.Rule = cmp.Or(m.Rule, m.broken.String())
		m.Area = cmp.Or(m.Area, CompletionArea)
	}
	return all
}

// Find is the mutant of a name, listed or of TableBits. One that needs a switch exists in a build
// with the tag mutants only.
func Find(name string) (Mutant, error) {
	lists := [][]Mutant{All()}
	if strings.HasPrefix(name, tablePrefix) {
		lists = append(lists, TableBits())
	}
	for _, m := range slices.Concat(lists...) {
		if m.Name != name {
			continue
		}
		if (m.broken != 0 || m.bit != (rule.TableBit{})) && !rule.Mutants {
			return Mutant{}, fmt.Errorf("mutant %q needs a program that was built with -tags mutants", name)
		}
		return m, nil
	}
	return Mutant{}, fmt.Errorf("no mutant %q: the program with the tag mutants has another version", name)
}
