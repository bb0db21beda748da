package workload

import (
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// The operations of a mix have the shares that their weights say, also in a part of a turn.
func TestTurnsOfAMix(t *testing.T) {
	for _, c := range []struct {
		mix  []Mix
		want int
	}{
		{[]Mix{{Write, 1}}, 1}, {[]Mix{{Write, 1000}, {FetchAdd, 1000}}, 2}, {[]Mix{{Read, 70}, {Write, 30}}, 10}, {[]Mix{{Read, 999}, {Write, 1}}, 1000},
		{[]Mix{{Read, 7}, {Write, 5}, {Send, 3}, {CmpSwap, 1}}, 16}, {[]Mix{{Read, 2}, {Write, 2}, {Read, 4}}, 4},
	} {
		ops := turns(c.mix)
		if len(ops) != c.want {
			t.Errorf("%v: a turn of %d messages, want %d", c.mix, len(ops), c.want)
		}
		weights, seen := map[verbs.WROpcode]int{}, map[verbs.WROpcode]int{}
		all := 0
		for _, m := range c.mix {
			weights[opcodes[m.Verb]] += m.Weight
			all += m.Weight
		}
		for i, op := range append(ops, ops...) {
			seen[op]++
			for op, weight := range weights {
				if off := seen[op]*all - (i+1)*weight; off > len(c.mix)*all || off < -len(c.mix)*all {
					t.Errorf("%v: after %d messages %d are of an operation with %d of %d", c.mix, i+1, seen[op], weight, all)
				}
			}
		}
		for op, weight := range weights {
			if seen[op]*all != 2*len(ops)*weight {
				t.Errorf("%v: two turns have %d of an operation with %d of %d", c.mix, seen[op], weight, all)
			}
		}
	}
}
