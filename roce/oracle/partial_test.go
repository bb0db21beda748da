package oracle_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce/oracle"
)

// Of a capture that may lack frames a mutation is never passed over: its rule is broken where
// frames alone prove it, and inconclusive elsewhere.
func TestMutationsOfPartialCaptures(t *testing.T) {
	var proved []string
	for _, m := range mutations {
		o := recorded(m.capture)
		o.Tolerance, o.Flight = 4*ms, 20*ms // the recording machine was emulated
		if m.options != nil {
			m.options(&o)
		}
		if o.Complete = false; m.kind != oracle.Violation || o.Declared {
			continue
		}
		c := load(t, filepath.Join(captures, "7.2", m.capture+".pcap"))
		m.change(t, &c)
		for i := range c.Frames {
			c.Frames[i].Number = i + 1
		}
		got := kinds(oracle.Judge(c, o))
		switch {
		case slices.Contains(got, m.rule+" violation"):
			proved = append(proved, m.name)
			if of := oracle.Rules()[slices.IndexFunc(oracle.Rules(), func(r oracle.Rule) bool { return r.ID == m.rule })]; of.Complete {
				t.Errorf("%s: %s is said to need a complete capture", m.name, m.rule)
			}
		case slices.Contains(got, "OR-001 inconclusive"): // the order of the frames cannot be right, and nothing is judged by it
		case !slices.Contains(got, m.rule+" inconclusive") && !slices.Contains(got, instead[m.name]):
			t.Errorf("%s: %v", m.name, got)
		}
	}
	if !slices.Equal(proved, shownByFrames) {
		t.Errorf("violations also of a capture that may lack frames:\n%q", proved)
	}
}

// instead is by what other verdict a mutation is said, or that of all captures where it is what a
// tap shows that begins late, or behind which an answer was lost.
var instead = map[string]string{
	"ACK for what was not sent": "OR-002 inconclusive", "response outside": "OR-002 inconclusive", "Middle without First": "OR-023 warning",
	"MSN too small": "OR-061 note", "MSN too large": "OR-061 note", "MSN decreases": "OR-061 inconclusive", "RNR NAK with MSN": "OR-061 inconclusive",
	"duplicate executed": "OR-061 inconclusive", "READ asked for again after its answer": "OR-023 warning",
	"a NAK is followed again long after it has come": "OR-023 warning", "NAK not followed": "OR-041 inconclusive",
}

// shownByFrames are the mutations that frames prove by themselves or by another frame of the
// connection, whatever else is missing.
var shownByFrames = []string{
	"fragment", "IP checksum", "UDP length", "UDP checksum", "ICRC", "TVer", "reserved opcode", "frame too short",
	"pad of a Middle", "P_Key", "QPN 0", "SE on a First", "First twice", "another kind inside", "Only inside",
	"short Middle", "RETH length", "RETH length above 2^31", "atomic not aligned", "other opcode again",
	"a First in place of a Middle", "READ response for a SEND", "RNR NAK for an atomic", "RNR timer",
	"remote access error for a SEND", "access error for length 0", "reserved syndrome", "credits of an SRQ",
	"NAK in a response", "UC sends again", "UC order", "Q_Key of QP1", "class version", "initiator depth",
}
