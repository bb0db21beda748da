package client

import (
	"cmp"
	"fmt"
	"syscall"
)

// Fake is the memory of a program that does not exist: an Arena and a uapi.Mem. Gaps
// between pieces are not mapped.
type Fake struct {
	pieces []piece
	next   uint64
	// Writes are the ranges that were written, in order.
	Writes [][2]uint64
}

type piece struct {
	addr uint64
	b    []byte
}

// fakeBase is where pieces begin; fakePage keeps a page free after each.
const (
	fakeBase = 0x7f12_3456_0000
	fakePage = 4096
)

// Alloc gives n bytes that begin a page.
func (f *Fake) Alloc(n int) (uint64, []byte) {
	f.next = cmp.Or(f.next, fakeBase)
	addr := f.next
	pages := (uint64(n) + fakePage - 1) / fakePage
	f.next += (pages + 1) * fakePage
	b := make([]byte, n)
	f.pieces = append(f.pieces, piece{addr, b})
	return addr, b
}

// Find is the n bytes at addr, or an error.
func (f *Fake) Find(addr uint64, n int) ([]byte, error) {
	for _, p := range f.pieces {
		if addr >= p.addr && addr-p.addr <= uint64(len(p.b)) && uint64(n) <= uint64(len(p.b))-(addr-p.addr) {
			return p.b[addr-p.addr:][:n], nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x: %w", n, addr, syscall.EFAULT)
}

// Read copies out of the memory.
func (f *Fake) Read(addr uint64, p []byte) error {
	b, err := f.Find(addr, len(p))
	copy(p, b)
	return err
}

// Write copies into the memory.
func (f *Fake) Write(addr uint64, p []byte) error {
	b, err := f.Find(addr, len(p))
	if err != nil {
		return err
	}
	copy(b, p)
	f.Writes = append(f.Writes, [2]uint64{addr, addr + uint64(len(p))})
	return nil
}
