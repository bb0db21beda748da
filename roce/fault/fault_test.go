package fault

import (
	"slices"
	"testing"
)

func TestDecide(t *testing.T) {
	var s Script
	add := func(r Rule) {
		t.Helper()
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(Rule{Match: MatchPort | MatchOpcode, Port: "a", Opcode: 4, Skip: 1, Count: 2, Action: Drop})
	add(Rule{Match: MatchPSN, PSN: 7, Action: Corrupt})
	add(Rule{Match: MatchDestQP, DestQP: 9, Chance: 250_000, Action: Duplicate})

	draws := []uint64{249_999, 250_000, 1_249_999}
	draw := func() uint64 {
		d := draws[0]
		draws = draws[1:]
		return d
	}
	for i, c := range []struct {
		f    Frame
		want Action
	}{
		{Frame{Port: "a", Opcode: 4, PSN: 7}, Pass}, // skipped by the first rule, which decides
		{Frame{Port: "a", Opcode: 4}, Drop},
		{Frame{Port: "b", Opcode: 4}, Pass},
		{Frame{Port: "a", Opcode: 4}, Drop},
		{Frame{Port: "a", Opcode: 4}, Pass}, // count used up
		{Frame{Port: "b", PSN: 7}, Corrupt},
		{Frame{DestQP: 9}, Duplicate},
		{Frame{DestQP: 9}, Pass},
		{Frame{DestQP: 9}, Duplicate},
	} {
		got := Pass
		if r := s.Decide(&c.f, draw); r != nil {
			got = r.Action
		}
		if got != c.want {
			t.Errorf("frame %d: %v, want %v", i, got, c.want)
		}
	}
	if s.Acted(0) != 2 || s.Acted(2) != 2 {
		t.Errorf("acted %d and %d, want 2 and 2", s.Acted(0), s.Acted(2))
	}
	if met := s.Clear(); !slices.Equal(met, []int{4, 1, 3}) || !s.Empty() {
		t.Errorf("met %v, empty %v", met, s.Empty())
	}
}

// TestClearAfter: the rules that stay keep their counts and the history that they need.
func TestClearAfter(t *testing.T) {
	var s Script
	for _, r := range []Rule{{Match: MatchIteration, Iteration: 3, Action: Drop}, {Action: Mark}, {Match: MatchPSN, PSN: 9, Action: Corrupt}} {
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	f := Frame{PSN: 9}
	decide := func() Action {
		if r := s.Decide(&f, nil); r != nil {
			return r.Action
		}
		return Pass
	}
	for range 2 {
		if got := decide(); got != Mark {
			t.Errorf("%v, and the second rule decides", got)
		}
	}
	if met := s.ClearAfter(1); !slices.Equal(met, []int{2, 0}) || s.Len() != 1 {
		t.Errorf("met %v, %d rules", met, s.Len())
	}
	if decide() != Drop || s.Acted(0) != 1 {
		t.Error("the third transmission of a packet is dropped")
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	for _, r := range []Rule{
		{Action: actions}, {Action: Drop, Skip: -1}, {Action: Drop, Count: -1}, {Action: Drop, Chance: 1_000_001},
		{Action: Delay}, {Action: Drop, Delay: 1}, {Action: Edit}, {Action: Drop, Edits: []ByteEdit{{}}},
		{Action: Edit, Edits: []ByteEdit{{Offset: firstEdit - 1}}},
	} {
		var s Script
		if err := s.Add(r); err == nil || !s.Empty() {
			t.Errorf("rule %+v was accepted", r)
		}
	}
}
