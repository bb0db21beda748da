package hca

import (
	"testing"
	"unsafe"
)

// TestWholeCacheLines: of many QPs none is in the host's caches, and what a message touches of one
// should be as few lines as can be.
func TestWholeCacheLines(t *testing.T) {
	for name, size := range map[string]uintptr{
		"connection": unsafe.Sizeof(connection{}), "requester": unsafe.Sizeof(requester{}), "responder": unsafe.Sizeof(responder{}),
		"slot": unsafe.Sizeof(slot{}),
	} {
		if size%64 != 0 {
			t.Errorf("a %s has %d bytes, which is not a number of whole cache lines", name, size)
		}
	}
}
