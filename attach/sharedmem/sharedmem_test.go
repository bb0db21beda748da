//go:build linux && amd64

package sharedmem

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// shared is memory of a file of n bytes, and the file.
func shared(t *testing.T, n int) ([]byte, int) {
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b, fd
}

// TestStore writes every length at every alignment, and nothing beside it.
func TestStore(t *testing.T) {
	SurviveFaults()
	w, _ := shared(t, 4096)
	for n := range lastWordLast + 10 {
		for at := range 9 {
			clear(w[:512])
			b := bytes.Repeat([]byte{0xa5}, n)
			if !Store(w[at:at+n], b) {
				t.Fatal("not stored")
			}
			want := make([]byte, 512)
			copy(want[at:], b)
			got := make([]byte, 512)
			if !Copy(got, w[:512]) || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes at %d: %x", n, at, got[:at+n+8])
			}
		}
	}
}

// TestMemoryThatIsGone reads and writes memory whose file has been cut short.
func TestMemoryThatIsGone(t *testing.T) {
	SurviveFaults()
	w, fd := shared(t, 8192)
	w[0] = 7
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if Copy(b, w[4096:4160]) || Store(w[4096:4160], b) || Store(w[4090:4220], make([]byte, 130)) {
		t.Error("memory that is gone was accessed")
	}
	if !Copy(b, w[:64]) || b[0] != 7 {
		t.Error("the page before is lost too")
	}
}

// TestOtherPanics go on.
func TestOtherPanics(t *testing.T) {
	defer func() {
		if recover() != "other" {
			t.Error("the panic was swallowed")
		}
	}()
	func() {
		var ok bool
		defer survive(&ok)
		panic("other")
	}()
}

func TestWithin(t *testing.T) {
	defer func() {
		w := make([]byte, 16)
		if r := recover(); r == nil || Within(Fault(r), w) {
			t.Errorf("%v", r)
		}
	}()
	SurviveFaults()
	w, fd := shared(t, 4096)
	if err := unix.Ftruncate(fd, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		r := recover()
		if !Within(Fault(r), w) {
			t.Error("the address is not in the memory that is gone")
		}
		panic(r)
	}()
	_ = w[100]
	w[100] = 1
}
