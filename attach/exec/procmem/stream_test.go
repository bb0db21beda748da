//go:build linux && amd64

package procmem

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// own opens this process and maps n bytes in it.
func own(t *testing.T, n int) (*Process, []byte) {
	t.Helper()
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	raw, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(raw) })
	return p, raw
}

// TestStreamsReadWhatWasWritten makes random accesses, many of them in sequence, and
// compares with a plain slice.
func TestStreamsReadWhatWasWritten(t *testing.T) {
	const size = 1 << 20
	p, raw := own(t, size)
	base := mem.VA(uintptr(unsafe.Pointer(&raw[0])))
	s := &Streams{}
	m := &Memory{p, s}
	model := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		at, n := r.IntN(size-20000), []int{2, 8, 64, 700, 1024, 4096}[r.IntN(6)]
		write := r.IntN(2) == 0
		for range 1 + r.IntN(20) {
			if at+n > size {
				break
			}
			b := make([]byte, n)
			var err error
			if write {
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				copy(model[at:], b)
				err = m.WriteAt(base+mem.VA(at), b)
			} else if err = m.ReadAt(base+mem.VA(at), b); !bytes.Equal(b, model[at:at+n]) {
				t.Fatalf("read %d bytes at %d: not what was written", n, at)
			}
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		switch r.IntN(10) {
		case 0: // the program changes memory and rings
			k := r.IntN(size)
			s.Flush()
			raw[k], model[k] = 0x5a, 0x5a
			s.DropReadAhead()
		case 1:
			s.Flush()
			if !bytes.Equal(raw, model) {
				t.Fatal("after a flush: not what was written")
			}
		}
	}
}

// TestNothingIsReadAheadOfNews: what a record or a ring tells of is read after it.
func TestNothingIsReadAheadOfNews(t *testing.T) {
	p, raw := own(t, 64*4096)
	base := mem.VA(uintptr(unsafe.Pointer(&raw[0])))
	s := &Streams{}
	m := &Memory{p, s}
	const ring = 32 * 4096
	s.WorkQueue(p, base+ring, 4096, true)
	b := make([]byte, 4096)
	read := func(off int) byte {
		if err := m.ReadAt(base+mem.VA(off), b); err != nil {
			t.Fatal(err)
		}
		return b[0]
	}
	for i, news := range []func(){
		func() { _ = m.ReadAt(base+63*4096, b[:8]) },
		func() { read(ring) },
		s.DropReadAhead,
	} {
		read(0)
		read(4096) // reads ahead
		raw[2*4096] = byte(i + 1)
		news()
		if got := read(2 * 4096); got != byte(i+1) {
			t.Errorf("news %d: read %d from before it", i, got)
		}
	}
	for i := range 20 {
		raw[ring+i*64] = byte(i + 1)
		if m.ReadAt(base+mem.VA(ring+i*64), b[:1024]); b[0] != byte(i+1) {
			t.Errorf("ring entry %d: stale", i)
		}
	}
}

func TestReadAheadStopsAtTheEndOfMemory(t *testing.T) {
	p, raw := own(t, 6*4096)
	if err := unix.Mprotect(raw[5*4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		raw[i*4096] = byte(i + 1)
	}
	m := &Memory{p, &Streams{}}
	base := mem.VA(uintptr(unsafe.Pointer(&raw[0])))
	b := make([]byte, 4096)
	for i := range 5 {
		if err := m.ReadAt(base+mem.VA(i*4096), b); err != nil || b[0] != byte(i+1) {
			t.Errorf("page %d: %d, %v", i, b[0], err)
		}
	}
	if err := m.ReadAt(base+5*4096, b); err == nil {
		t.Error("read of memory without rights succeeds")
	}
}
