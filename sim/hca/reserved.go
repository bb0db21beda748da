package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// allocRange takes 1<<log numbers in a row, of which the first is a multiple of their number.
func (n *numbers) allocRange(log uint32) (first uint32, ok bool) {
	size := uint32(1) << log
	from := (n.next + size - 1) &^ (size - 1)
	if from < n.limit && (from^n.flip)&^(size-1) < n.first { // the numbers below first, which nobody gets
		from = (from + n.first + size - 1) &^ (size - 1)
	}
	if from < n.next || from > n.limit || n.limit-from < size {
		return 0, false
	}
	for x := n.next; x < from; x++ {
		if x^n.flip >= n.first {
			n.release(x ^ n.flip)
		}
	}
	n.next = from + size
	return from ^ n.flip&^(size-1), true
}

// reserveNumbers is CREATE_GENERAL_OBJECT of one that keeps QP numbers from being given to QPs.
func (d *Device) reserveNumbers(r prm.CreateGeneralObjectIn, out []byte) prm.Status {
	if d.p.ReservedNumbers == 0 || r.ObjType() != prm.ObjTypeReservedQPN || int(r.LogObjRange()) != d.p.ReservedNumbers {
		return prm.StatusBadParam
	}
	first, ok := d.qpNums.allocRange(r.LogObjRange())
	if !ok {
		return prm.StatusNoRes
	}
	if d.breaks(rule.ReservedNumbersAreKept) {
		for i := range uint32(1) << r.LogObjRange() {
			d.qpNums.release(first + i)
		}
		d.qpNums.late = false
	}
	d.reserved = append(d.reserved, first)
	prm.CreateGeneralObjectOut(out).SetObjID(first)
	return prm.StatusOK
}

// releaseNumbers gives the numbers back.
func (d *Device) releaseNumbers(r prm.DestroyGeneralObjectIn) prm.Status {
	for i, first := range d.reserved {
		if first == r.ObjID() && r.ObjType() == prm.ObjTypeReservedQPN {
			d.reserved = append(d.reserved[:i], d.reserved[i+1:]...)
			for i := range uint32(1) << d.p.ReservedNumbers {
				d.qpNums.release(first + i)
			}
			return prm.StatusOK
		}
	}
	return prm.StatusBadResState
}
