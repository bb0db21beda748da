package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// operation is the operation that a place in BAR 0 stands for, and the byte of the memory.
func (m *memory) operation(off uint64) (op int, at uint64, ok bool) {
	if off < m.ops.start || off >= m.start {
		return 0, 0, false
	}
	size := uint64(len(m.pages) * pageBytes)
	op, at = int((off-m.ops.start)/size), (off-m.ops.start)%size
	return op, m.start + at, m.ops.on[op][at/pageBytes]
}

// operate carries out an operation: an access of one byte, since the device says that it takes no
// more. What else is accessed there changes nothing.
func (m *memory) operate(k *core, op int, at uint64, p []byte, write bool) {
	if len(p) != 1 {
		return
	}
	var b [1]byte
	m.read(at, b[:])
	switch {
	case op == prm.MemicIncrement && write:
		if k.breaks(rule.IncrementsAdd) {
			b[0] = 0
		}
		b[0] += p[0]
	case op == prm.MemicTestAndSet && !write:
		p[0] = b[0]
		if k.breaks(rule.TestsSet) {
			return
		}
		b[0] = 1
	}
	m.write(at, b[:])
}

// operated says whether an allocation has addresses of operations.
func (m *memory) operated(first int) bool {
	for _, on := range m.ops.on {
		if on != nil && on[first] {
			return true
		}
	}
	return false
}
