//go:build linux && amd64

// Package sharedmem moves bytes to and from memory that another process shares with this one. A
// page of it can be gone although its mapping is there: the kernel takes a page away whose memory
// is broken, or one that it cannot read from swap, and the other process may have cut the file
// short. An access is then a SIGBUS.
package sharedmem

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// SurviveFaults makes such an access of the calling goroutine a panic, which Fault knows. A
// goroutine that calls Copy or Store has called it before.
func SurviveFaults() { debug.SetPanicOnFault(true) }

// Fault is the address of the access that caused what was recovered, and panics again when that was
// no access.
func Fault(recovered any) uintptr {
	if f, ok := recovered.(interface{ Addr() uintptr }); ok {
		return f.Addr()
	}
	panic(recovered)
}

// Copy copies bytes out of shared memory. It reports false, and to may hold a part, when some of it
// is gone.
func Copy(to, shared []byte) (ok bool) {
	defer survive(&ok)
	copy(to, shared)
	return true
}

// wordSize is that of the last store of a completion: its owner bit is in the last byte.
const wordSize = 8

// lastWordLast is the longest write whose last word becomes visible after the others.
const lastWordLast = 128

// Store copies b to shared memory; of what may be a completion, an event or a command the last
// word, behind the rest. It reports false, and a part may be written, when some of the memory is
// gone.
func Store(shared, b []byte) (ok bool) {
	defer survive(&ok)
	k := len(b) - wordSize
	if k < 0 || len(b) > lastWordLast || uintptr(unsafe.Pointer(&shared[k]))%wordSize != 0 {
		copy(shared, b)
		return true
	}
	copy(shared[:k], b)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&shared[k])), *(*uint64)(unsafe.Pointer(&b[k])))
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
