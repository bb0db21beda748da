package kit

import (
	"strconv"
	"syscall"
	"unsafe"
)

// Errno is short for what the calls refuse with.
type Errno = syscall.Errno

// word is 8 bytes of memory as this host reads them: atomics work in its order.
func word(p []byte) uint64 {
	var v uint64
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8), p)
	return v
}

func unword(v uint64) []byte {
	p := make([]byte, 8)
	copy(p, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8))
	return p
}

func itoa(i int) string { return strconv.Itoa(i) }
