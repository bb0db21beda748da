package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// usedUmems is the memory that a command names.
func (d *tables) usedUmems(ring bool, ringID uint32, record bool, recordID uint32) (u umemUse) {
	if ring {
		u[0] = numbered(d.umems, ringID)
	}
	if record {
		u[1] = numbered(d.umems, recordID)
	}
	return u
}

func cmdCreateUmem(d *Device, in, out []byte) prm.Status {
	m := prm.CreateUmemIn(in)
	n, page := m.Entries(), uint64(1)<<(m.LogPageSize()+prm.PageShift)
	if m.LogPageSize() > 28 || n == 0 || n > uint64(m.MTT().Count()) || uint64(m.PageOffset()) >= page {
		return prm.StatusBadParam
	}
	u := &umem{pages: make([]mem.PA, n), shift: uint(m.LogPageSize()) + prm.PageShift, off: uint64(m.PageOffset())}
	for i := range u.pages {
		a := m.MTT().Addr(i)
		if a&(page-1) != 0 {
			return prm.StatusBadParam
		}
		u.pages[i] = mem.PA(a)
	}
	id, ok := d.umemNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.umems = put(d.umems, id, u)
	prm.CreateUmemOut(out).SetUmemID(id)
	return prm.StatusOK
}

func cmdDestroyUmem(d *Device, in, _ []byte) prm.Status {
	id := prm.DestroyUmemIn(in).UmemID()
	u := numbered(d.umems, id)
	if u == nil {
		return prm.StatusBadResState
	}
	return destroyed(d.umems, id, u.users, &d.umemNums)
}

// queueRing is the ring of a queue of n bytes: in pages that the command lists, or at an offset of
// the memory with a number.
func (d *tables) queueRing(pas prm.PAS, logPage, pageOffset uint32, valid bool, id uint32, offset, n uint64) (ring, bool) {
	if !valid {
		return newRing(pas, logPage, pageOffset, n)
	}
	u := numbered(d.umems, id)
	if u == nil || offset%prm.WQEBBSize != 0 || offset > u.len() || n > u.len()-offset {
		return ring{}, false
	}
	return ring{pages: u.pages, shift: u.shift, off: u.off + offset}, true
}

// record is where a doorbell record lies: at an address, or at one of the memory with a number.
func (d *tables) record(addr uint64, valid bool, id uint32) (mem.PA, bool) {
	if addr%prm.DBRecSize != 0 {
		return 0, false
	}
	if !valid {
		return mem.PA(addr), true
	}
	u := numbered(d.umems, id)
	if u == nil || (u.off+addr)%prm.DBRecSize != 0 || addr > u.len() || prm.DBRecSize > u.len()-addr {
		return 0, false
	}
	at := u.off + addr
	return u.pages[at>>u.shift] + mem.PA(at&(1<<u.shift-1)), true
}
