package workload

import "github.com/rdmasim/rdmasim/verbs"

// turns are the operations of one whole turn of a mix, each as often as its weight says, and spread
// evenly among the others: a part of a turn has nearly the shares of a whole one. Of two that are
// due the one that is named first comes first (smooth weighted round robin, as in nginx).
func turns(mix []Mix) (ops []verbs.WROpcode) {
	all := whole(mix)
	divisor := commonDivisor(mix)
	due := make([]int, len(mix))
	for range all {
		next := 0
		for i, m := range mix {
			if due[i] += m.Weight / divisor; due[i] > due[next] {
				next = i
			}
		}
		due[next] -= all
		ops = append(ops, opcodes[mix[next].Verb])
	}
	return ops
}

// whole is how many messages a whole turn of a mix has.
func whole(mix []Mix) (n int) {
	for _, m := range mix {
		n += m.Weight
	}
	return n / commonDivisor(mix)
}

func commonDivisor(mix []Mix) (d int) {
	for _, m := range mix {
		for a := m.Weight; a != 0; {
			d, a = a, d%a
		}
	}
	return max(d, 1)
}

// Rarest is the operation of the load's mix that comes least, and its share of the messages: 1 if
// there is no other.
func (l *Load) Rarest() (rare Verb, share float64) {
	sums := map[Verb]int{}
	all := 0
	for _, m := range l.Mix {
		sums[m.Verb] += m.Weight
		all += m.Weight
	}
	for _, m := range l.Mix {
		if rare == "" || sums[m.Verb] < sums[rare] {
			rare = m.Verb
		}
	}
	return rare, float64(sums[rare]) / float64(max(all, 1))
}
