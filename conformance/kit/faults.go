package kit

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

var wireMatches = map[fault.Fields]verbs.WireMatch{
	fault.MatchOpcode: verbs.WireMatchOpcode, fault.MatchDestQP: verbs.WireMatchDestQPN, fault.MatchPSN: verbs.WireMatchPSN,
	fault.MatchDirection: verbs.WireMatchDirection, fault.MatchFlow: verbs.WireMatchFlow, fault.MatchPacket: verbs.WireMatchPacket,
	fault.MatchMessage: verbs.WireMatchMessage, fault.MatchIteration: verbs.WireMatchIteration,
}

var wireActions = map[fault.Action]verbs.WireAction{
	fault.Pass: verbs.WirePass, fault.Drop: verbs.WireDrop, fault.Corrupt: verbs.WireCorrupt, fault.Edit: verbs.WireEdit,
	fault.Delay: verbs.WireDelay, fault.Duplicate: verbs.WireDuplicate, fault.Mark: verbs.WireMark, fault.Truncate: verbs.WireTruncate,
}

// ParseRules reads faults in their file form, for Inject. A text that names ports or links, which
// belong to the testbed, is an error of the case.
func ParseRules(c *spec.C, text string) []verbs.WireRule {
	p, err := fault.Parse(c.ID(), []byte(text))
	if err != nil {
		c.Errorf("faults: %v", err)
	}
	var out []verbs.WireRule
	for i, r := range p.Rules {
		action, ok := wireActions[r.Action]
		if !ok || r.Match&fault.MatchPort != 0 || len(p.Links) > 0 {
			c.Errorf("fault %d of the case cannot be injected by a case", i+1)
		}
		w := verbs.WireRule{DestQPN: r.DestQP, Opcode: r.Opcode, PSN: r.PSN, Response: r.Response, Flow: r.Flow, Packet: r.Packet,
			Message: r.Message, Iteration: r.Iteration, Skip: r.Skip, Count: r.Count, Action: action, Keep: r.Keep, PerMillion: r.Chance,
			Delay: time.Duration(r.Delay/1000) * time.Nanosecond}
		for field, m := range wireMatches {
			if r.Match&field != 0 {
				w.Match |= m
			}
		}
		for _, e := range r.Edits {
			w.Edits = append(w.Edits, verbs.ByteEdit(e))
		}
		out = append(out, w)
	}
	return out
}
