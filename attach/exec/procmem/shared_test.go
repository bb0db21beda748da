//go:build linux && amd64

package procmem

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// self opens this process twice, as two programs that share all memory, with n pages.
func self(t *testing.T, pages int) (a, b *Process, raw []byte, base mem.VA) {
	t.Helper()
	open := func() *Process {
		p, err := Open(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	raw = anonymous(t, pages)
	return open(), open(), raw, address(raw)
}

func anonymous(t *testing.T, pages int) []byte {
	t.Helper()
	raw, err := unix.Mmap(-1, 0, pages*mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(raw) })
	return raw
}

func address(b []byte) mem.VA { return mem.VA(uintptr(unsafe.Pointer(&b[0]))) }

// twice maps a file of one page two times.
func twice(t *testing.T) (here, there []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skipf("needs memory files (memfd_create): %v", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, mem.PageSize); err != nil {
		t.Fatal(err)
	}
	m := func() []byte {
		b, err := unix.Mmap(fd, 0, mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		return b
	}
	return m(), m()
}

func TestSharedMemoryIsNotCopied(t *testing.T) {
	p, _, raw, _ := self(t, 4)
	// Where the program has these, nothing is mapped here: a call of the kernel would fail.
	const far = mem.VA(0x10000)
	p.Share(far, raw[:2*mem.PageSize])
	p.Share(far+4*mem.PageSize, raw[3*mem.PageSize:])
	for _, n := range []int{1, 8, 63, 64, 128, 129, 5000} {
		want := bytes.Repeat([]byte{byte(n)}, n)
		if err := p.WriteAt(far+100, want); err != nil || !bytes.Equal(raw[100:100+n], want) || raw[99] == byte(n) || raw[100+n] == byte(n) {
			t.Errorf("%d bytes: %v", n, err)
		}
		got := make([]byte, n)
		if err := p.ReadAt(far+100, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes back: %v", n, err)
		}
	}
	raw[3*mem.PageSize+7] = 77
	var b [1]byte
	if err := p.ReadAt(far+4*mem.PageSize+7, b[:]); err != nil || b[0] != 77 {
		t.Errorf("second region: %d, %v", b[0], err)
	}
	for _, at := range []mem.VA{far - 1, far + 2*mem.PageSize - 1, far + 3*mem.PageSize, far + 5*mem.PageSize} {
		if err := p.ReadAt(at, make([]byte, 2)); !errors.Is(err, unix.EFAULT) {
			t.Errorf("beside the regions, at %#x: %v, want EFAULT", uint64(at), err)
		}
	}
	p.Unshare(far)
	if err := p.ReadAt(far+100, b[:]); !errors.Is(err, unix.EFAULT) {
		t.Errorf("after Unshare: %v, want EFAULT", err)
	}
}

// TestWritesAreHeldInOrder writes parts that overlap, and some to memory that is gone.
func TestWritesAreHeldInOrder(t *testing.T) {
	p, _, raw, base := self(t, 8)
	if err := unix.Mprotect(raw[4*mem.PageSize:5*mem.PageSize], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	s := &Streams{}
	m := &Memory{p, s}
	write := func(at, n int, v byte) {
		if err := m.WriteAt(base+mem.VA(at), bytes.Repeat([]byte{v}, n)); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 64, 1)
	write(32, 64, 2)
	write(4*mem.PageSize, 64, 3) // gone
	write(200, 16, 4)
	write(190, 40, 5) // covers the last one
	write(4*mem.PageSize-8, 16, 6)
	write(5*mem.PageSize, 2000, 7)
	if raw[0] != 0 {
		t.Fatal("a write was not held back")
	}
	s.Flush()
	want := make([]byte, 256)
	for _, w := range []struct {
		at, n int
		v     byte
	}{{0, 64, 1}, {32, 64, 2}, {190, 40, 5}} {
		copy(want[w.at:], bytes.Repeat([]byte{w.v}, w.n))
	}
	if !bytes.Equal(raw[:256], want) {
		t.Errorf("overlapping writes: %v", raw[:256])
	}
	if raw[5*mem.PageSize] != 7 || raw[5*mem.PageSize+1999] != 7 {
		t.Error("what comes after a write that fails is lost")
	}
	if len(s.dirty) != 0 || len(p.held.parts) != 0 {
		t.Error("something is left after a flush")
	}
}

// TestNewsComesLast: who sees a completion sees all that was written before it, by
// whatever process it is seen.
func TestNewsComesLast(t *testing.T) {
	p, q, raw, base := self(t, 4)
	s := &Streams{}
	a, b := &Memory{p, s}, &Memory{q, s}
	const cq, shared = 2 * mem.PageSize, 0x10000
	s.CompletionQueue(p, base+cq, mem.PageSize, true)
	p.Share(shared, raw[3*mem.PageSize:])
	for i, c := range []struct {
		m  *Memory
		at mem.VA
	}{{a, base + cq}, {a, shared}} {
		v := byte(i + 1)
		_ = a.WriteAt(base, []byte{v})
		_ = b.WriteAt(base+100, []byte{v})
		if raw[0] == v || raw[100] == v {
			t.Fatal("a payload was not held back")
		}
		if err := c.m.WriteAt(c.at, bytes.Repeat([]byte{v}, 64)); err != nil {
			t.Fatal(err)
		}
		if raw[0] != v || raw[100] != v {
			t.Errorf("round %d: payloads %d and %d after the completion", i, raw[0], raw[100])
		}
	}
	if raw[cq] != 1 || raw[3*mem.PageSize+63] != 2 {
		t.Error("the completions are not there")
	}
}

// TestMemoryThatOthersSee: a device that writes to one mapping and reads the other finds
// what it wrote, at once.
func TestMemoryThatOthersSee(t *testing.T) {
	p, q, raw, base := self(t, 1)
	x, y := twice(t)
	s := &Streams{}
	a, b := &Memory{p, s}, &Memory{q, s}
	for _, r := range []struct {
		m  *Memory
		va mem.VA
	}{{a, address(x)}, {b, address(y)}, {a, base}} {
		if err := r.m.Probe(r.va, mem.PageSize, mem.Read|mem.Write); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 64)
	for v := byte(1); v < 4; v++ {
		if err := b.ReadAt(address(y), got); err != nil || got[0] != v-1 {
			t.Fatalf("before write %d: %d, %v", v, got[0], err)
		}
		if err := a.WriteAt(address(x), bytes.Repeat([]byte{v}, 64)); err != nil {
			t.Fatal(err)
		}
		if err := b.ReadAt(address(y), got); err != nil || got[63] != v {
			t.Fatalf("after write %d: %d, %v", v, got[63], err)
		}
	}
	_ = a.WriteAt(base, got)
	if raw[0] != 0 {
		t.Error("memory of its own is not joined")
	}
}
