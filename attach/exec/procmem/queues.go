//go:build linux && amd64

package procmem

import (
	"slices"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// queueKind counts the queues on a page.
type queueKind struct{ work, completions int }

// queueRanges are the pages of a process that hold queues. A mark says what holds from its address
// up to the next one; the work for a queue depends on how many there are and not on how long they
// are.
type queueRanges struct {
	marks []queueMark // by address; the last one is of kind zero
	pages int
	last  int // mark of the last look-up
}

type queueMark struct {
	addr mem.VA
	kind queueKind
}

// before is the number of marks at or below addr.
func (r *queueRanges) before(addr mem.VA) int {
	i, found := slices.BinarySearchFunc(r.marks, addr, func(m queueMark, a mem.VA) int {
		switch {
		case m.addr < a:
			return -1
		case m.addr > a:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return i
}

// kind is what lies on the page at addr.
func (r *queueRanges) kind(addr mem.VA) queueKind {
	if i := r.last; i+1 < len(r.marks) && r.marks[i].addr <= addr && addr < r.marks[i+1].addr {
		return r.marks[i].kind
	}
	i := r.before(addr)
	if i == 0 {
		return queueKind{}
	}
	r.last = i - 1
	return r.marks[i-1].kind
}

// split makes a mark at addr, and returns its index.
func (r *queueRanges) split(addr mem.VA) int {
	i := r.before(addr)
	m := queueMark{addr: addr}
	if i > 0 {
		if r.marks[i-1].addr == addr {
			return i - 1
		}
		m.kind = r.marks[i-1].kind
	}
	r.marks = slices.Insert(r.marks, i, m)
	return i
}

// change adds a queue in [from, to), or with -1 in place of 1 takes it away. Both are addresses of
// pages.
func (r *queueRanges) change(from, to mem.VA, work, completions int) {
	first := r.split(from)
	end := r.split(to)
	for i := first; i < end; i++ {
		m := &r.marks[i]
		was := m.kind != queueKind{}
		m.kind = queueKind{max(0, m.kind.work+work), max(0, m.kind.completions+completions)}
		n := int((r.marks[i+1].addr - m.addr) / mem.PageSize)
		switch is := (m.kind != queueKind{}); {
		case is && !was:
			r.pages += n
		case was && !is:
			r.pages -= n
		}
	}
	r.join(max(0, first-1), end+1)
	r.last = 0
}

// join removes marks from index lo to hi that say what the one before them says.
func (r *queueRanges) join(lo, hi int) {
	hi = min(hi, len(r.marks))
	kept := r.marks[:lo]
	for i := lo; i < hi; i++ {
		last := queueKind{}
		if len(kept) > 0 {
			last = kept[len(kept)-1].kind
		}
		if r.marks[i].kind != last {
			kept = append(kept, r.marks[i])
		}
	}
	r.marks = append(kept, r.marks[hi:]...)
}
