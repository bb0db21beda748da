package oracle

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

// connections is what many connections of InfiniBand between two ports send: each requests some
// PSNs from first(i) on, all at about the same time, and has one of them answered.
func connections(n int, first func(i int) uint32) *judge {
	j := &judge{}
	requests, responses := roce.RC.Opcode(roce.OpSendOnly), roce.RC.Opcode(roce.OpAcknowledge)
	number := 0
	add := func(s *stream, op roce.Opcode, psn uint32) {
		number++
		info := op.Info()
		r := &rec{Frame: &Frame{Number: number, InfiniBand: true}, info: info, psn: psn, kind: info.Kind}
		if s.recs = append(s.recs, r); info.Kind == roce.KindResponse {
			s.responses++
		} else {
			s.requests++
		}
	}
	for _, op := range []roce.Opcode{requests, responses} {
		for i := range n {
			s := &stream{endpoint: endpoint{transport: roce.RC, qpn: uint32(i)}}
			for k := range uint32(3) {
				add(s, op, first(i)+k)
			}
			j.streams = append(j.streams, s)
		}
	}
	return j
}

// How many frames are looked at grows with the number of flows, whether they can be told apart or
// not.
func TestPairingLooksAtEachFlowOnce(t *testing.T) {
	for name, c := range map[string]struct {
		first  func(i int) uint32
		paired bool
	}{
		"apart":       {func(i int) uint32 { return uint32(i) * 8 }, true},
		"like twins":  {func(i int) uint32 { return uint32(i/2) * 8 }, false},
		"all alike":   {func(int) uint32 { return 0 }, false},
		"over a wrap": {func(i int) uint32 { return uint32(0xFFFF00+i*8) & roce.PSNMask }, true},
	} {
		before := 0
		for _, n := range []int{2000, 4000} {
			j := connections(n, c.first)
			looked := j.pairInfiniBand()
			if before != 0 && looked > 2*before+before/10 {
				t.Errorf("%s: %d frames of %d flows are looked at, and %d of half as many", name, looked, 2*n, before)
			}
			before = looked
			for i, s := range j.streams {
				if other := j.streams[(i+n)%(2*n)]; c.paired && (s.peer != other || s.unclear) || !c.paired && (s.peer != nil || !s.unclear) {
					t.Fatalf("%s: flow %d: paired with the right one: %v, unclear: %v", name, i, s.peer == other, s.unclear)
				}
			}
		}
	}
}

// A flow that has one choice takes it from those that have several.
func TestPairingByWhatIsLeft(t *testing.T) {
	j := connections(20, func(i int) uint32 { return uint32(i) }) // PSNs of neighbours overlap: requests 0..2, 1..3, ...
	j.pairInfiniBand()
	last := j.streams[39]
	if paired := slices.IndexFunc(j.streams[:20], func(s *stream) bool { return s == last.peer }); paired != 19 {
		t.Errorf("the last flow is paired with %d", paired)
	}
	for i, s := range j.streams[:20] {
		if s.peer != j.streams[20+i] {
			t.Errorf("flow %d is not paired with its answers", i)
		}
	}
}
