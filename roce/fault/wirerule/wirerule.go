// Package wirerule converts the rules of a case (verbs.WireRule) to rules of the fault script,
// for the links of the simulator and for those before real ports.
package wirerule

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// Of converts a case's rule; an unknown action is EINVAL.
func Of(r verbs.WireRule) (fault.Rule, error) {
	rule := fault.Rule{DestQP: r.DestQPN, Opcode: r.Opcode, PSN: r.PSN, Skip: r.Skip, Count: r.Count, Chance: r.PerMillion,
		Response: r.Response, Flow: r.Flow, Packet: r.Packet, Message: r.Message, Iteration: r.Iteration}
	fields := map[verbs.WireMatch]fault.Fields{
		verbs.WireMatchDestQPN: fault.MatchDestQP, verbs.WireMatchOpcode: fault.MatchOpcode, verbs.WireMatchPSN: fault.MatchPSN,
		verbs.WireMatchDirection: fault.MatchDirection, verbs.WireMatchFlow: fault.MatchFlow, verbs.WireMatchPacket: fault.MatchPacket,
		verbs.WireMatchMessage: fault.MatchMessage, verbs.WireMatchIteration: fault.MatchIteration,
	}
	for bit, field := range fields {
		if r.Match&bit != 0 {
			rule.Match |= field
		}
	}
	actions := map[verbs.WireAction]fault.Action{verbs.WirePass: fault.Pass, verbs.WireDrop: fault.Drop, verbs.WireCorrupt: fault.Corrupt,
		verbs.WireEdit: fault.Edit, verbs.WireDelay: fault.Delay, verbs.WireDuplicate: fault.Duplicate,
		verbs.WireMark: fault.Mark, verbs.WireTruncate: fault.Truncate, verbs.WireSpoil: fault.Spoil}
	var known bool
	if rule.Action, known = actions[r.Action]; !known {
		return rule, fmt.Errorf("wire action %d: %w", r.Action, syscall.EINVAL)
	}
	if r.Action == verbs.WireDelay {
		rule.Delay = r.Delay.Nanoseconds() * 1000 // picoseconds
	}
	if r.Action == verbs.WireTruncate {
		rule.Keep = r.Keep
	}
	if r.Action == verbs.WireEdit || r.Action == verbs.WireSpoil {
		for _, e := range r.Edits {
			rule.Edits = append(rule.Edits, fault.ByteEdit{Offset: e.Offset, Value: e.Value})
		}
	}
	return rule, nil
}

var actions = map[fault.Action]verbs.WireAction{
	fault.Drop: verbs.WireDrop, fault.Corrupt: verbs.WireCorrupt, fault.CorruptFCS: verbs.WireCorrupt, fault.Edit: verbs.WireEdit,
	fault.Spoil: verbs.WireSpoil, fault.Mark: verbs.WireMark, fault.Delay: verbs.WireDelay, fault.Reorder: verbs.WireDelay,
	fault.Duplicate: verbs.WireDuplicate, fault.Truncate: verbs.WireTruncate,
}

// Acted converts an action of the script to the one that a case sees: WirePass where it changes
// nothing.
func Acted(a fault.Action) verbs.WireAction { return actions[a] }
