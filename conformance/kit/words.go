package kit

import (
	"syscall"
	"unsafe"
)

// Errno is the error number of a refused call.
type Errno = syscall.Errno

// HostWord returns 8 bytes of memory as a number in this host's byte order, in which atomics work.
func HostWord(p []byte) uint64 {
	var v uint64
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8), p)
	return v
}

// HostWordBytes returns the 8 bytes of a number in this host's byte order.
func HostWordBytes(v uint64) []byte {
	p := make([]byte, 8)
	copy(p, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8))
	return p
}
