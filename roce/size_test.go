package roce

import (
	"testing"
	"unsafe"
)

// A frame of the first size class is three lines of a cache, and holds the longest headers.
func TestSmallFrameIsThreeLines(t *testing.T) {
	if n := unsafe.Sizeof(smallFrame{}); n != 192 {
		t.Errorf("%d bytes", n)
	}
}
