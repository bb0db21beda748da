// Package fault is the script of what goes wrong: rules that pick frames on the wire
// and say what happens to them, and events in time (a link goes down, a device is
// removed, a process is killed, memory is unmapped). It knows frames only by the few
// values of Frame and touches none itself; whoever moves the frames (sim/link, an injector
// before a real port) calls Decide and does what it says. Events are carried out by the
// testbed.
//
// Rules are built in Go or read from a file (Parse).
package fault

import (
	"fmt"
	"slices"
)

// Frame has the values of a frame that rules can match.
type Frame struct {
	Port   string // the sending port's name
	Opcode uint8  // of the BTH
	DestQP uint32
	PSN    uint32
	// Response: an answer and no request. First: the request begins a message.
	Response, First bool
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
	Reorder           // it arrives right behind the next frame that its port sends
	Mark              // ECN: it arrives marked "congestion experienced"
	Truncate          // only its first bytes arrive, with a right FCS
	Spoil             // bytes are set and the ICRC is left as it was

	actions
)

var actionNames = [actions]string{"pass", "drop", "corrupt", "corrupt-fcs", "edit", "delay", "duplicate", "reorder", "mark", "truncate", "spoil"}

// String returns the text form.
func (a Action) String() string {
	if a < actions {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Fields says which of a rule's fields a frame must match.
type Fields uint16

// Fields of a rule.
const (
	MatchPort Fields = 1 << iota
	MatchOpcode
	MatchDestQP
	MatchPSN
	MatchDirection // Response
	MatchFlow      // Flow
	MatchPacket    // Packet
	MatchMessage   // Message
	MatchIteration // Iteration
)

// history are the fields that need what was sent before.
const history = MatchFlow | MatchPacket | MatchMessage | MatchIteration

// firstEdit is the offset of the first byte that an edit may change: that of an IPv6 header.
const firstEdit = -48

// ByteEdit sets the byte at Offset from the first byte of the BTH; negative offsets reach the UDP
// and IP headers before it. An offset at or beyond the ICRC changes nothing.
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
	// Response is the direction. Flow counts what ports send to a QP in the order in
	// which the flows begin; Packet counts PSNs of a flow's requests from its first,
	// Message its messages, Iteration how often the port has sent this PSN to the QP.
	// All four begin at 1.
	Response                         bool
	Flow, Packet, Message, Iteration int
	Skip, Count                      int
	Chance                           uint32

	Action Action
	Delay  int64 // picoseconds; for Delay
	Keep   int   // bytes that arrive of the frame, from its first; for Truncate
	Edits  []ByteEdit
}

// Check returns what is wrong with the rule, or nil.
func (r *Rule) Check() error {
	switch {
	case r.Action >= actions:
		return fmt.Errorf("fault: unknown action %d", r.Action)
	case r.Match&(MatchPacket|MatchMessage) != 0 && r.Match&MatchDirection != 0 && r.Response:
		return fmt.Errorf("fault: packet and message count requests, and direction is responses")
	case r.Match&MatchFlow != 0 && r.Flow < 1, r.Match&MatchPacket != 0 && r.Packet < 1, r.Match&MatchMessage != 0 && r.Message < 1,
		r.Match&MatchIteration != 0 && r.Iteration < 1:
		return fmt.Errorf("fault: flow, packet, message and iteration count from 1")
	case r.Skip < 0 || r.Count < 0:
		return fmt.Errorf("fault: skip %d and count %d must not be negative", r.Skip, r.Count)
	case r.Chance > 1_000_000:
		return fmt.Errorf("fault: a chance of %d in a million is more than certain", r.Chance)
	case r.Action == Delay && r.Delay <= 0:
		return fmt.Errorf("fault: a delay must be positive, not %d ps", r.Delay)
	case r.Action != Delay && r.Delay != 0:
		return fmt.Errorf("fault: delay is given, and %v does not use it", r.Action)
	case r.Action == Truncate && r.Keep < 1:
		return fmt.Errorf("fault: a truncated frame keeps at least 1 byte, not %d", r.Keep)
	case r.Action != Truncate && r.Keep != 0:
		return fmt.Errorf("fault: keep is given, and %v does not use it", r.Action)
	case (r.Action == Edit || r.Action == Spoil) && len(r.Edits) == 0:
		return fmt.Errorf("fault: %v needs edits", r.Action)
	case r.Action != Edit && r.Action != Spoil && len(r.Edits) != 0:
		return fmt.Errorf("fault: edits are given, and %v does not use them", r.Action)
	}
	for _, e := range r.Edits {
		if e.Offset < firstEdit {
			return fmt.Errorf("fault: offset %d is before the IP header; offsets count from the first byte of the BTH, and the IPv6 header begins at %d", e.Offset, firstEdit)
		}
	}
	return nil
}

func (r *Rule) matches(f *Frame, h *seen) bool {
	return (r.Match&MatchPort == 0 || r.Port == f.Port) &&
		(r.Match&MatchOpcode == 0 || r.Opcode == f.Opcode) &&
		(r.Match&MatchDestQP == 0 || r.DestQP == f.DestQP) &&
		(r.Match&MatchPSN == 0 || r.PSN == f.PSN) &&
		(r.Match&MatchDirection == 0 || r.Response == f.Response) &&
		(r.Match&history == 0 || r.matchesHistory(f, h))
}

func (r *Rule) matchesHistory(f *Frame, h *seen) bool {
	if r.Match&(MatchPacket|MatchMessage) != 0 && f.Response {
		return false
	}
	return (r.Match&MatchFlow == 0 || r.Flow == h.flow) &&
		(r.Match&MatchPacket == 0 || r.Packet == h.packet) &&
		(r.Match&MatchMessage == 0 || r.Message == h.message) &&
		(r.Match&MatchIteration == 0 || r.Iteration == h.iteration)
}

// Script is a list of rules, of which the first that matches decides. The zero Script has none.
type Script struct {
	rules        []rule
	needsHistory bool // of flows, for some rule
	flows        map[flowKey]*flow
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
	s.needsHistory = s.needsHistory || r.Match&history != 0
	return nil
}

// Empty reports whether the script has no rules.
func (s *Script) Empty() bool { return s == nil || len(s.rules) == 0 }

// Len returns the number of rules.
func (s *Script) Len() int { return len(s.rules) }

// Decide returns the first rule that matches a frame and acts on it, or nil: the first rule that
// matches decides, also when it lets the frame pass because of its Skip, Count or Chance. draw is
// the run's source of random numbers, which Decide calls only for rules with a Chance.
func (s *Script) Decide(f *Frame, draw func() uint64) *Rule {
	var h seen
	if s.needsHistory {
		h = s.follow(f)
	}
	for i := range s.rules {
		r := &s.rules[i]
		if !r.matches(f, &h) {
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

// Matched returns how many frames rule i has matched.
func (s *Script) Matched(i int) int { return s.rules[i].matched }

// Acted returns on how many frames rule i acted.
func (s *Script) Acted(i int) int { return s.rules[i].acted }

// Clear removes all rules and returns how many frames each has matched.
func (s *Script) Clear() []int { return s.ClearAfter(0) }

// ClearAfter removes the rules after the first n and returns how many frames each of them has
// matched.
func (s *Script) ClearAfter(n int) []int {
	var met []int
	for i := range s.rules[n:] {
		met = append(met, s.rules[n+i].matched)
	}
	s.rules = s.rules[:n:n]
	if s.needsHistory = slices.ContainsFunc(s.rules, func(r rule) bool { return r.Match&history != 0 }); !s.needsHistory {
		s.flows = nil
	}
	return met
}
