//go:build linux && amd64

package procmem

import (
	"runtime/debug"
	"unsafe"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// A page of shared memory can be gone although the size of its file is sealed: the kernel takes a page away
// whose memory is broken, or one that it cannot read from swap. An access is then a SIGBUS.

// SurviveFaults makes such an access of the calling goroutine a panic, which Fault knows.
func SurviveFaults() { debug.SetPanicOnFault(true) }

// Fault is the address of the access that caused what was recovered, and panics again when that was no access.
func Fault(recovered any) uintptr {
	if f, ok := recovered.(interface{ Addr() uintptr }); ok {
		return f.Addr()
	}
	panic(recovered)
}

// load fills b from shared memory at addr, and reports false where that is not shared, or is gone.
func (p *Process) load(addr mem.VA, b []byte) bool {
	w := p.window(addr, len(b))
	return w != nil && (copyShared(b, w) || p.lose(addr))
}

// store copies b to shared memory at addr, and reports false as load does.
func (p *Process) store(addr mem.VA, b []byte) bool {
	w := p.window(addr, len(b))
	return w != nil && (storeShared(w, b) || p.lose(addr))
}

// lose ends the sharing of memory that is gone: the kernel knows what to say of it.
func (p *Process) lose(addr mem.VA) bool {
	p.Unshare(p.regions[p.search(addr)].start)
	return false
}

func copyShared(to, from []byte) (ok bool) {
	defer survive(&ok)
	copy(to, from)
	return true
}

func storeShared(w, b []byte) (ok bool) {
	defer survive(&ok)
	store(w, b)
	return true
}

func survive(ok *bool) {
	if r := recover(); r != nil {
		Fault(r)
		*ok = false
	}
}

// Within reports whether an address lies in b.
func Within(addr uintptr, b []byte) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from <= addr && addr < from+uintptr(len(b))
}
