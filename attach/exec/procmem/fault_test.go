//go:build linux && amd64

package procmem

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// TestSharedMemoryThatIsGone reads and writes shared memory whose pages the kernel has taken away.
// From then on the memory of the process counts.
func TestSharedMemoryThatIsGone(t *testing.T) {
	sharedmem.SurviveFaults()
	for _, write := range []bool{false, true} {
		fd, err := unix.MemfdCreate("gone", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Ftruncate(fd, mem.PageSize); err != nil {
			t.Fatal(err)
		}
		b, err := unix.Mmap(fd, 0, mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, 0); err != nil {
			t.Fatal(err)
		}
		p, err := Open(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		theirs := bytes.Repeat([]byte{7}, mem.PageSize)
		at := mem.VA(uintptr(unsafe.Pointer(&theirs[0])))
		p.Share(at, b)
		m := Memory{p, &Streams{}}
		got := make([]byte, 64)
		if write {
			err = m.WriteAt(at, make([]byte, 64))
		} else {
			err = m.ReadAt(at, got)
		}
		m.S.Flush()
		if err != nil || write != (theirs[0] == 0) || !write && got[0] != 7 {
			t.Errorf("write %v: %v, memory %d, read %d", write, err, theirs[0], got[0])
		}
		if len(p.regions) != 0 {
			t.Error("still shared")
		}
	}
}
