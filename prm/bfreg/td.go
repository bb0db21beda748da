package bfreg

import (
	"fmt"
	"syscall"
)

// TDTable gives dynamic bfregs to thread domains in the static generation, as the
// library does (mlx5_attach_dedicated_bf).
//
// With Independent it also gives independent ones, by the rules of the RFC patch
// "scalable endpoints" of 2018: an independent domain owns a whole UAR page of the
// lower half of the table, whose odd register stays unused; at most a quarter of
// the table can be such domains; ordinary domains take the upper half.
type TDTable struct {
	independent bool
	used        []bool
	nTD, nInd   uint32
	paged       []bool // UAR pages ever mapped
	perPage     uint32 // bfregs of a system page
}

// NewTDTable makes the table for layout l. independent says that the extension is there.
func NewTDTable(l Layout, independent bool) *TDTable {
	return &TDTable{
		independent: independent,
		used:        make([]bool, l.Dyn),
		paged:       make([]bool, l.Dyn/l.perSysPage()),
		perPage:     l.perSysPage(),
	}
}

// DynReg is a dynamic bfreg.
type DynReg struct {
	Index uint32 // in the dynamic part: what CREATE_QP gets with BFREG_INDEX
	Page  uint32 // system page: the argument of mmap command ALLOC_WC
	New   bool   // the page was not mapped before
	Class Class
}

// Half is which of the UAR's two registers it is.
func (r DynReg) Half() uint32 { return r.Index % PerUAR }

// UAR is the 4 KiB UAR, counted in the dynamic part.
func (r DynReg) UAR() uint32 { return r.Index / PerUAR }

// Alloc takes the first free register for an ordinary thread domain. The error wraps
// ENOENT when there is none.
func (t *TDTable) Alloc() (DynReg, error) {
	first := uint32(0)
	if t.independent {
		first = uint32(len(t.used)) / 2
	}
	for i := first; i < uint32(len(t.used)); i++ {
		if !t.used[i] {
			t.nTD++
			return t.take(i, TD), nil
		}
	}
	return DynReg{}, fmt.Errorf("all %d dynamic bfregs for thread domains are taken: %w", uint32(len(t.used))-first, syscall.ENOENT)
}

// AllocIndependent takes the first free UAR for an independent thread domain. The
// error wraps EINVAL past MaxIndependent and where the extension is not there.
func (t *TDTable) AllocIndependent() (DynReg, error) {
	if !t.independent {
		return DynReg{}, fmt.Errorf("independent thread domains are not supported: %w", syscall.EINVAL)
	}
	for i := uint32(0); i < t.MaxIndependent()*PerUAR; i += PerUAR {
		if !t.used[i] {
			t.nInd++
			return t.take(i, IndependentTD), nil
		}
	}
	return DynReg{}, fmt.Errorf("all %d independent thread domains are taken: %w", t.MaxIndependent(), syscall.EINVAL)
}

// MaxIndependent is how many independent thread domains there can be at once; 0
// without the extension.
func (t *TDTable) MaxIndependent() uint32 {
	if !t.independent {
		return 0
	}
	return uint32(len(t.used)) / 4
}

func (t *TDTable) take(i uint32, c Class) DynReg {
	p := i / t.perPage
	r := DynReg{Index: i, Page: p, New: !t.paged[p], Class: c}
	t.used[i], t.paged[p] = true, true
	return r
}

// NotMapped undoes the New of r: its page could not be mapped. r is freed too.
func (t *TDTable) NotMapped(r DynReg) {
	t.paged[r.Page] = false
	t.Free(r)
}

// Free gives r back. Its page stays mapped until the context closes.
func (t *TDTable) Free(r DynReg) {
	t.used[r.Index] = false
	if r.Class == IndependentTD {
		t.nInd--
	} else {
		t.nTD--
	}
}

// Usage counts what a context holds of UARs and registers.
type Usage struct {
	UARs    uint32 // 4 KiB UARs allocated
	Regs    uint32 // user registers in them
	InUse   uint32 // registers that a QP or thread domain has
	Blocked uint32 // registers that cannot be allocated: siblings of those of independent domains
}

// Wasted is how many registers are allocated and not in use.
func (u Usage) Wasted() uint32 { return u.Regs - u.InUse }

// Usage counts the dynamic part.
func (t *TDTable) Usage() Usage {
	var u Usage
	for _, mapped := range t.paged {
		if mapped {
			u.UARs += t.perPage / PerUAR
		}
	}
	u.Regs = u.UARs * PerUAR
	u.InUse = t.nTD + t.nInd
	u.Blocked = t.nInd
	return u
}
