package hca

import (
	"github.com/rdmasim/rdmasim/prm"
)

func cmdAllocMemic(d *Device, in, out []byte) prm.Status {
	r, m := prm.AllocMemicIn(in), &d.memory
	size := r.MemicSize()
	first, ok := m.page(r.RangeStartAddr())
	n := int((uint64(size) + pageBytes - 1) / pageBytes)
	switch {
	case !ok || r.RangeStartAddr()%pageBytes != 0 || size == 0 || size%memicUnit != 0 || n > len(m.pages)-first,
		r.RangeSize() < size, r.LogMemicAddrAlignment() > prm.PageShift-6:
		return prm.StatusBadParam
	case m.used+int(size) > d.p.MemicSize:
		return prm.StatusNoRes
	}
	for _, b := range m.pages[first : first+n] {
		if b != nil {
			return prm.StatusResBusy
		}
	}
	for i := range n {
		m.pages[first+i] = make([]byte, pageBytes)
	}
	m.sizes[first] = size
	m.used += int(size)
	prm.AllocMemicOut(out).SetMemicStartAddr(r.RangeStartAddr())
	return prm.StatusOK
}

func cmdDeallocMemic(d *Device, in, _ []byte) prm.Status {
	r, m := prm.DeallocMemicIn(in), &d.memory
	first, ok := m.page(r.MemicStartAddr())
	if !ok || r.MemicStartAddr()%pageBytes != 0 || m.sizes[first] == 0 || m.sizes[first] != r.MemicSize() {
		return prm.StatusBadParam
	}
	if m.operated(first) {
		return prm.StatusResBusy
	}
	m.used -= int(m.sizes[first])
	for i := range (int(m.sizes[first]) + pageBytes - 1) / pageBytes {
		m.pages[first+i] = nil
	}
	m.sizes[first] = 0
	return prm.StatusOK
}

// BackMemory puts other bytes behind a page of memory on the device, with what it holds:
// those that a program outside the simulation stores to. b is a page; it reports whether the
// page at off in BAR 0 is allocated.
func (d *Device) BackMemory(off uint64, b []byte) bool {
	i, ok := d.memory.page(off)
	if !ok || d.memory.pages[i] == nil || len(b) != pageBytes {
		return false
	}
	return d.memory.use(i, func() {
		copy(b, d.memory.pages[i])
		d.memory.pages[i] = b
	})
}

// cmdModifyMemic gives operations on an allocation an address, or takes it away.
func cmdModifyMemic(d *Device, in, out []byte) prm.Status {
	r, m := prm.ModifyMemicIn(in), &d.memory
	first, ok := m.page(r.MemicStartAddr())
	op, mod := int(r.MemicOperationType()), prm.CmdIn(in).OpMod()
	if !d.p.MemicOps || op >= prm.MemicOps || mod > prm.MemicOpDealloc || !ok || m.sizes[first] == 0 {
		return prm.StatusBadParam
	}
	n := (int(m.sizes[first]) + pageBytes - 1) / pageBytes
	on := mod == prm.MemicOpAlloc
	for i := range n {
		if m.ops.on[op][first+i] == on {
			return prm.StatusBadParam
		}
		m.ops.on[op][first+i] = on
	}
	if on {
		prm.ModifyMemicOut(out).SetMemicOperationAddr(m.ops.start + uint64((op*len(m.pages)+first)*pageBytes))
	}
	return prm.StatusOK
}
