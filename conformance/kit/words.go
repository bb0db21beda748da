package kit

import (
	"syscall"
	"unsafe"
)

// Errno is the error number that a refused call returns.
type Errno = syscall.Errno

// HostWord is 8 bytes of memory as a number in this host's byte order, which is that of atomics.
func HostWord(p []byte) uint64 {
	var v uint64
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8), p)
	return v
}

// HostWordBytes is the memory of a number in this host's byte order.
func HostWordBytes(v uint64) []byte {
	p := make([]byte, 8)
	copy(p, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8))
	return p
}
