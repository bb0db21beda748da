package hca

import (
	"github.com/rdmasim/rdmasim/roce"
)

// savedOp is a READ or an atomic that may be asked for again.
type savedOp struct {
	op        roce.Opcode
	unsent    bool
	psn, n    uint32
	before    uint32 // the MSN before it
	by        asker
	rkey, len uint32
	va, value uint64
}

// asker is on whose behalf an operation is: a protection domain and, on XRC, the SRQ that has it.
type asker struct{ pd, srqn uint32 }

// replays are the READs and atomics that a responder remembers.
type replays struct {
	ops  []savedOp // max of them, oldest overwritten first
	next int
	max  int
}

// free says whether a READ or an atomic can be taken: the oldest saved one
// must have been answered.
func (r *replays) free() bool {
	return r.max > 0 && (len(r.ops) < r.max || !r.ops[r.next].unsent)
}

// limit forgets what is remembered, and remembers n operations from now on.
func (r *replays) limit(n int) { r.max, r.ops, r.next = n, r.ops[:0], 0 }

// answered says that the answer to an operation has left.
func (r *replays) answered(i int16) {
	if i >= 0 && int(i) < len(r.ops) {
		r.ops[i].unsent = false
	}
}

// newest is the operation that was saved last.
func (r *replays) newest() int { return (r.next + len(r.ops) - 1) % max(1, len(r.ops)) }

// save remembers an operation for replay.
func (r *replays) save(o savedOp) int16 {
	i := r.next
	if len(r.ops) < r.max {
		r.ops = append(r.ops, o)
		i = len(r.ops) - 1
	} else {
		r.ops[i] = o
	}
	r.next = (i + 1) % r.max
	return int16(i)
}
