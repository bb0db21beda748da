// Package fault is the script of what goes wrong on the wire: rules that pick
// frames and say what happens to them. It knows frames only by the few values of
// Frame and touches none itself; who moves the frames (sim/link, an injector
// before a real port) asks Decide and does what it says.
//
// There is no file form of a script yet; rules are built in Go.
package fault

import "fmt"

// Frame is what rules can look at.
type Frame struct {
	Port   string // the sending port's name
	Opcode uint8  // of the BTH
	DestQP uint32
	PSN    uint32
}

// Action is what a rule does with a frame.
type Action uint8

// Actions.
const (
	Pass       Action = iota
	Drop              // it disappears after it was sent
	Corrupt           // one bit under the ICRC flips, the FCS is right again: the transport sees a wrong ICRC
	CorruptFCS        // it arrives with a wrong FCS: the next MAC drops it
	Edit              // bytes are set and the ICRC is made right again
	Delay             // it arrives late; later frames overtake it
	Duplicate         // it arrives twice

	actions
)

var actionNames = [actions]string{"pass", "drop", "corrupt", "corrupt-fcs", "edit", "delay", "duplicate"}

func (a Action) String() string {
	if a < actions {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Fields says which of a rule's fields a frame must match.
type Fields uint8

// Fields of a rule.
const (
	MatchPort Fields = 1 << iota
	MatchOpcode
	MatchDestQP
	MatchPSN
)

// ByteEdit sets the byte at Offset from the first byte of the BTH. One beyond the
// frame's last byte before the ICRC changes nothing.
type ByteEdit struct {
	Offset int
	Value  byte
}

// Rule picks frames: those that match all fields named by Match, without the first
// Skip of them, and then Count (0: all). With Chance, each of these is acted upon
// with that probability, in millionths, by a draw of the run.
type Rule struct {
	Match  Fields
	Port   string
	Opcode uint8
	DestQP uint32
	PSN    uint32
	Skip   int
	Count  int
	Chance uint32

	Action Action
	Delay  int64 // picoseconds; for Delay
	Edits  []ByteEdit
}

// Check says what is wrong with the rule, or returns nil.
func (r *Rule) Check() error {
	switch {
	case r.Action >= actions:
		return fmt.Errorf("fault: unknown action %d", r.Action)
	case r.Skip < 0 || r.Count < 0:
		return fmt.Errorf("fault: skip %d and count %d must not be negative", r.Skip, r.Count)
	case r.Chance > 1_000_000:
		return fmt.Errorf("fault: chance of %d millionths is more than one", r.Chance)
	case r.Action == Delay && r.Delay <= 0:
		return fmt.Errorf("fault: a delay must be positive, not %d ps", r.Delay)
	case r.Action != Delay && r.Delay != 0:
		return fmt.Errorf("fault: %v takes no delay", r.Action)
	case r.Action == Edit && len(r.Edits) == 0:
		return fmt.Errorf("fault: edit without edits")
	case r.Action != Edit && len(r.Edits) != 0:
		return fmt.Errorf("fault: %v takes no edits", r.Action)
	}
	for _, e := range r.Edits {
		if e.Offset < 0 {
			return fmt.Errorf("fault: edit at offset %d, before the BTH", e.Offset)
		}
	}
	return nil
}

func (r *Rule) matches(f *Frame) bool {
	return (r.Match&MatchPort == 0 || r.Port == f.Port) &&
		(r.Match&MatchOpcode == 0 || r.Opcode == f.Opcode) &&
		(r.Match&MatchDestQP == 0 || r.DestQP == f.DestQP) &&
		(r.Match&MatchPSN == 0 || r.PSN == f.PSN)
}

// Script is rules in the order in which they are asked. The zero Script has none.
type Script struct {
	rules []rule
}

type rule struct {
	Rule
	matched, acted int
}

// Add appends a rule that passes Check.
func (s *Script) Add(r Rule) error {
	if err := r.Check(); err != nil {
		return err
	}
	s.rules = append(s.rules, rule{Rule: r})
	return nil
}

// Empty says whether there is nothing to ask.
func (s *Script) Empty() bool { return s == nil || len(s.rules) == 0 }

// Len is the number of rules.
func (s *Script) Len() int { return len(s.rules) }

// Decide says what happens to a frame: the first rule that matches decides, also
// when it lets the frame pass by its Skip, Count or Chance. draw is the run's
// source of draws; it is asked only for rules with a Chance. The rule returned is
// nil when nothing happens.
func (s *Script) Decide(f *Frame, draw func() uint64) *Rule {
	for i := range s.rules {
		r := &s.rules[i]
		if !r.matches(f) {
			continue
		}
		r.matched++
		if r.matched <= r.Skip || r.Count > 0 && r.matched > r.Skip+r.Count {
			return nil
		}
		if r.Chance > 0 && draw()%1_000_000 >= uint64(r.Chance) {
			return nil
		}
		r.acted++
		if r.Action == Pass {
			return nil
		}
		return &r.Rule
	}
	return nil
}

// Matched and Acted are how many frames rule i has met, and on how many it acted.
func (s *Script) Matched(i int) int { return s.rules[i].matched }

// Acted is on how many frames rule i acted.
func (s *Script) Acted(i int) int { return s.rules[i].acted }

// Clear removes all rules and returns how many frames each has met.
func (s *Script) Clear() []int {
	met := make([]int, len(s.rules))
	for i := range s.rules {
		met[i] = s.rules[i].matched
	}
	s.rules = nil
	return met
}
