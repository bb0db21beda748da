package bfreg

import (
	"fmt"
	"syscall"
)

// UARsPerSysPage is how many UARs lie in one page of the host: more than one only
// when both device and library do 4 KiB UARs and the page is larger.
func UARsPerSysPage(pageSize int, uar4K bool) uint32 {
	if !uar4K || pageSize < adapterPage {
		return 1
	}
	return uint32(pageSize / adapterPage)
}

// Layout is the size of a context's bfreg table in the static generation.
type Layout struct {
	Total          uint32 // static bfregs
	LowLat         uint32 // of them, the high class
	Dyn            uint32 // dynamic bfregs, behind the static ones
	UARsPerSysPage uint32
	StaticSysPages uint32
	SysPages       uint32 // static and dynamic
}

// NewLayout is calc_total_bfregs with the checks before it: what a context gets that
// asks for total bfregs, lowLat of them low-latency. The error wraps EINVAL or ENOMEM.
func NewLayout(total, lowLat uint32, pageSize int, uar4K bool) (Layout, error) {
	total = (total + PerUAR - 1) / PerUAR * PerUAR
	if lowLat > total-1 { // unsigned, as in the kernel: total 0 passes
		return Layout{}, fmt.Errorf("%d low-latency of %d bfregs: %w", lowLat, total, syscall.EINVAL)
	}
	if total == 0 {
		return Layout{}, fmt.Errorf("no bfregs asked for: %w", syscall.EINVAL)
	}
	if total > Max {
		return Layout{}, fmt.Errorf("%d bfregs asked for, at most %d: %w", total, Max, syscall.ENOMEM)
	}
	l := Layout{LowLat: lowLat, UARsPerSysPage: UARsPerSysPage(pageSize, uar4K)}
	per := l.perSysPage()
	align := func(n uint32) uint32 { return (n + per - 1) / per * per }
	l.Total = align(total)
	dyn := uint32(MaxDyn)
	if l.UARsPerSysPage == 1 && pageSize > adapterPage {
		dyn = MinDyn
	}
	l.Dyn = align(dyn)
	l.StaticSysPages = l.Total / per
	l.SysPages = (l.Total + l.Dyn) / per
	return l, nil
}

func (l Layout) perSysPage() uint32 { return l.UARsPerSysPage * PerUAR }

// NumMedium is the size of the medium class: bfregs 1 to NumMedium.
func (l Layout) NumMedium() uint32 {
	if l.Total < l.LowLat+1 {
		return 0
	}
	return l.Total - l.LowLat - 1
}

// FirstHigh is the first bfreg of the high class, which ends the static part.
func (l Layout) FirstHigh() uint32 { return l.NumMedium() + 1 }

// Class is the class of static bfreg b.
func (l Layout) Class(b uint32) Class {
	switch {
	case b == 0:
		return BFReg0
	case b < l.FirstHigh():
		return Medium
	}
	return High
}

// SysPage is the slot of bfreg b in the table of system pages; dyn says that b
// counts in the dynamic part.
func (l Layout) SysPage(b uint32, dyn bool) uint32 {
	s := b / l.perSysPage()
	if dyn {
		s += l.StaticSysPages
	}
	return s
}

// UARInPage is which UAR of its system page bfreg b lies in.
func (l Layout) UARInPage(b uint32) uint32 { return b % l.perSysPage() / PerUAR }

// GrossStatic is the length of the static part in gross numbers: where the library's
// table of dynamic registers begins.
func (l Layout) GrossStatic() uint32 { return Gross(l.Total) }

// Table is the kernel's bfreg_info of one context: use counts and UAR pages.
type Table struct {
	Layout
	// Version of the ABI that the library uses; below 2 all its QPs share bfreg 0.
	Version int

	count []uint32
	pages []uint32
}

// InvalidUAR is what a slot holds whose UAR is not allocated.
const InvalidUAR = 1 << 31

// NewTable makes an empty table. The static slots are for the caller to fill with SetPage.
func NewTable(l Layout, version int) *Table {
	t := &Table{Layout: l, Version: version, count: make([]uint32, l.Total+l.Dyn), pages: make([]uint32, l.SysPages)}
	for i := range t.pages {
		t.pages[i] = InvalidUAR
	}
	return t
}

// SetPage records the UAR index behind slot i.
func (t *Table) SetPage(i, uar uint32) { t.pages[i] = uar }

// Page is the UAR index behind slot i, or InvalidUAR.
func (t *Table) Page(i uint32) uint32 { return t.pages[i] }

// Alloc is alloc_bfreg: the bfreg for a QP that names none. It never fails.
func (t *Table) Alloc() uint32 {
	b := uint32(0)
	if t.Version >= 2 {
		if h, ok := t.high(); ok {
			b = h
		} else if m, ok := t.medium(); ok {
			b = m
		}
	}
	t.count[b]++
	return b
}

func (t *Table) high() (uint32, bool) {
	for b := t.FirstHigh(); b < t.Total; b++ {
		if t.count[b] == 0 {
			return b, true
		}
	}
	return 0, false
}

// medium is the least used bfreg of the class, the lowest of equals.
func (t *Table) medium() (uint32, bool) {
	if t.NumMedium() == 0 {
		return 0, false
	}
	least := uint32(1)
	for b := least; b < t.FirstHigh() && t.count[least] != 0; b++ {
		if t.count[b] < t.count[least] {
			least = b
		}
	}
	return least, true
}

// Free is mlx5_ib_free_bfreg: the QP on b is gone.
func (t *Table) Free(b uint32) { t.count[b]-- }

// Users is how many QPs the kernel has put on static bfreg b.
func (t *Table) Users(b uint32) uint32 { return t.count[b] }

// UARIndex is bfregn_to_uar_index: the UAR of bfreg b, dyn when b comes from a
// library that names a dynamic one. The error wraps EINVAL.
func (t *Table) UARIndex(b uint32, dyn bool) (uint32, error) {
	s := t.SysPage(b, dyn)
	// The kernel compares b with > and so lets b == Dyn pass to the check of the slot.
	if s >= t.SysPages || dyn && (b > t.Dyn || t.pages[s] == InvalidUAR) {
		return 0, fmt.Errorf("bfreg index %d: %w", b, syscall.EINVAL)
	}
	return t.pages[s] + t.UARInPage(b), nil
}

// ReserveDynPage begins the mapping of dynamic page ext (mmap command ALLOC_WC): it
// returns the slot whose UAR the caller allocates and sets. The error wraps EINVAL
// when there is no such page or it is mapped already.
func (t *Table) ReserveDynPage(ext uint32) (slot uint32, err error) {
	slot = ext + t.StaticSysPages
	if slot < ext || slot >= t.SysPages {
		return 0, fmt.Errorf("dynamic UAR page %d of %d: %w", ext, t.SysPages-t.StaticSysPages, syscall.EINVAL)
	}
	if c := &t.count[slot*t.perSysPage()]; *c != 0 {
		return 0, fmt.Errorf("dynamic UAR page %d is in use: %w", ext, syscall.EINVAL)
	}
	t.count[slot*t.perSysPage()]++ // the first bfreg of a page holds its count
	return slot, nil
}

// ReleaseDynPage undoes ReserveDynPage, when the UAR could not be allocated.
func (t *Table) ReleaseDynPage(slot uint32) {
	t.count[slot*t.perSysPage()]--
	t.pages[slot] = InvalidUAR
}
