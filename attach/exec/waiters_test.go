//go:build linux && amd64

package exec

import "testing"

// TestWhoseSignal: the answer that only the receiver of a signal may have is given where no other
// thread can have been, or has become, the receiver.
func TestWhoseSignal(t *testing.T) {
	const waits, other, third = 10, 11, 12
	waiting := threadState{alive: true, asleep: true, signalled: true}
	runs, sleeps := threadState{alive: true, signalled: true}, waiting
	blocks := threadState{alive: true}
	for _, c := range []struct {
		name string
		// what is seen of each thread, the last for good
		seen map[int][]threadState
		want receiver
	}{
		{"no other thread", map[int][]threadState{waits: {waiting}}, thisThread},
		{"others sleep or block it", map[int][]threadState{waits: {waiting}, other: {sleeps}, third: {blocks}}, thisThread},
		{"another is about to take it", map[int][]threadState{waits: {waiting}, other: {runs}}, unknown},
		{"another has taken it meanwhile", map[int][]threadState{waits: {blocks}, other: {blocks}, third: {sleeps}}, nobody},
	} {
		var order []int
		looks := map[int]int{}
		state := func(tid int) threadState {
			order = append(order, tid)
			l := c.seen[tid]
			n := min(looks[tid], len(l)-1)
			looks[tid]++
			return l[n]
		}
		var threads []int
		for _, tid := range []int{waits, other, third} {
			if c.seen[tid] != nil {
				threads = append(threads, tid)
			}
		}
		if got := receiverOf(waits, threads, state); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if c.want != unknown && order[len(order)-1] != waits {
			t.Errorf("%s: threads were looked at in the order %v: what another took must be seen", c.name, order)
		}
	}
}
