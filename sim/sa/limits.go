package sa

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
)

// rates are the codes of rates (enum ib_rate of the Linux kernel, ib_verbs.h), by their Mb/s,
// lowest first.
var rates = [...]struct {
	mbps uint64
	code uint8
}{
	{2_500, 2}, {5_000, 5}, {10_000, 3}, {14_000, 11}, {20_000, 6}, {25_000, 15}, {28_000, 19}, {30_000, 4}, {40_000, 7},
	{50_000, 20}, {56_000, 12}, {60_000, 8}, {80_000, 9}, {100_000, 16}, {112_000, 13}, {120_000, 10}, {168_000, 14},
	{200_000, 17}, {300_000, 18}, {400_000, 21}, {600_000, 22},
}

// rateCode is the code of the highest rate that is not above this one.
func rateCode(mbps uint64) (code uint8) {
	for _, r := range rates {
		if r.mbps <= mbps {
			code = r.code
		}
	}
	return code
}

// rateRank orders the codes of rates; 0: there is no such code.
func rateRank(code uint8) int {
	for i, r := range rates {
		if r.code == code {
			return i + 1
		}
	}
	return 0
}

// rateOf is the code of a rank.
func rateOf(rank int) uint8 { return rates[rank-1].code }

// choose is the value that a request's component with a limit has when at most highest is possible:
// values are ranks from 1. ok is false when nothing fits, or the value is none.
func choose(s mad.Selector, v, highest int) (chosen int, ok bool) {
	switch {
	case v < 1 && s != mad.Largest:
		return 0, false
	case s == mad.Greater:
		return highest, highest > v
	case s == mad.Less:
		chosen = min(v-1, highest)
		return chosen, chosen >= 1
	case s == mad.Exactly:
		return v, v <= highest
	}
	return highest, true
}

// chooseMTU is choose of an MTU code; without a given component it is the highest.
func chooseMTU(given bool, s mad.Selector, code uint8, highest roce.MTU) (roce.MTU, bool) {
	if !given {
		return highest, true
	}
	v, ok := choose(s, int(code), int(highest))
	return roce.MTU(v), ok
}

// chooseRate is choose of a rate code.
func chooseRate(given bool, s mad.Selector, code, highest uint8) (uint8, bool) {
	if !given {
		return highest, true
	}
	v, ok := choose(s, rateRank(code), rateRank(highest))
	if !ok {
		return 0, false
	}
	return rateOf(v), true
}
