package kernel

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// dbPage is a page of doorbell records, pinned once for all records on it.
type dbPage struct {
	mem  *umem
	refs int
}

// dbPages are the pages of a context's doorbell records, by address.
type dbPages map[uint64]*dbPage

// pin pins the page of a doorbell record of a process and returns the record's bus address
// (mlx5_ib_db_map_user).
func (t dbPages) pin(k *call, proc *Process, addr uint64) (uint64, error) {
	page := addr &^ pageMask
	p := t[page]
	if p == nil {
		m, err := k.pin(proc, page, mem.PageSize, 0)
		if err != nil {
			return 0, fmt.Errorf("doorbell record: %w", err)
		}
		p = &dbPage{mem: m}
		t[page] = p
	}
	p.refs++
	return t.dma(addr), nil
}

// dma is the bus address of a record whose page is pinned.
func (t dbPages) dma(addr uint64) uint64 {
	return uint64(t[addr&^pageMask].mem.pages[0]) + addr&pageMask
}

// unpin drops a record's reference to its page.
func (t dbPages) unpin(k *call, addr uint64) {
	page := addr &^ pageMask
	p := t[page]
	if p.refs--; p.refs == 0 {
		k.unpin(p.mem)
		delete(t, page)
	}
}
