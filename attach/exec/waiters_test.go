//go:build linux && amd64

package exec

import "testing"

// TestWhoseSignal: the answer that only the receiver of a signal may have is given where no other
// thread can have been, or has become, the receiver.
func TestWhoseSignal(t *testing.T) {
	const waits, other, third = 10, 11, 12
	waiting := threadState{alive: true, asleep: true, signalled: true}
	runs, blocks := threadState{alive: true, signalled: true}, threadState{alive: true}
	for _, c := range []struct {
		name  string
		seen  map[int]threadState
		taken bool // by another thread, before this is looked at
		want  receiver
	}{
		{"no other thread", map[int]threadState{waits: waiting}, false, thisThread},
		{"others sleep or block it", map[int]threadState{waits: waiting, other: waiting, third: blocks}, false, thisThread},
		{"another is about to take it", map[int]threadState{waits: waiting, other: runs}, false, unknown},
		{"another has taken it", map[int]threadState{waits: blocks, other: blocks, third: blocks}, false, nobody},
		{"another takes it before it is looked at", map[int]threadState{waits: waiting, other: runs}, true, nobody},
	} {
		taken := false
		state := func(tid int) threadState {
			if tid == other && c.taken {
				taken = true
			}
			s := c.seen[tid]
			s.signalled = s.signalled && !taken
			return s
		}
		var threads []int
		for tid := waits; c.seen[tid].alive; tid++ {
			threads = append(threads, tid)
		}
		if got := receiverOf(waits, threads, state); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
