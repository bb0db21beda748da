package kernel

import "github.com/rdmasim/rdmasim/verbs"

// modify is one transition on its way to the device. The attributes are a copy: the
// kernel cuts and resolves some.
type modify struct {
	u        *Ucontext // who asks
	q        *qp
	a        verbs.QPAttr
	mask     verbs.QPAttrMask
	from, to verbs.QPState
	sgid     *gidEntry
	dmac     MAC
}

func (m *modify) has(bit verbs.QPAttrMask) bool { return m.mask&bit != 0 }

// whenSet is v when the attribute is in the mask.
func whenSet(m *modify, bit verbs.QPAttrMask, v uint32) uint32 {
	if m.has(bit) {
		return v
	}
	return 0
}
