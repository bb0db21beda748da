package model

import "unsafe"

// hostWord is 8 bytes as a number in this host's byte order, in which atomics work.
func hostWord(b []byte) (v uint64) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8), b)
	return v
}

func setHostWord(b []byte, v uint64) { copy(b, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8)) }
