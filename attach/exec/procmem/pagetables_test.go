//go:build linux && amd64

package procmem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// present are the pages of m that are there, and those that a store finds writable.
func present(p *Process, m []byte) (there, writable []int) {
	p.Resident(address(m), uint64(len(m)), func(at mem.VA, w bool, _ uint8) {
		i := int(at-address(m)) / mem.PageSize
		there = append(there, i)
		if w {
			writable = append(writable, i)
		}
	})
	return there, writable
}

func touch(p *Process, m []byte, write bool) (n uint64, err error) {
	err = p.Touch(address(m), uint64(len(m)), write, func(_ mem.VA, k uint64, _ uint8) { n += k })
	return n, err
}

// Touch brings pages in as an access does, and changes no byte.
func TestTouchFaultsPagesInUnchanged(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		const most = 600 // pages: more than are touched in one call
		m := pages(t, most)
		defer func() { _ = unix.Munmap(m) }()
		if err := unix.Madvise(m, unix.MADV_NOHUGEPAGE); err != nil {
			t.Fatal(err)
		}
		m[5*mem.PageSize+7] = 42
		if there, writable := present(p, m); len(there) != 1 || there[0] != 5 || len(writable) != 1 {
			t.Errorf("present are %v, writable %v", there, writable)
		}
		if n, err := touch(p, m, false); n != most*mem.PageSize || err != nil {
			t.Errorf("for reading: %d bytes, %v", n, err)
		}
		if there, writable := present(p, m); len(there) != most || len(writable) != ownAfterRead(t, most-1)+1 {
			t.Errorf("after a read %d are present, %d writable", len(there), len(writable))
		}
		if n, err := touch(p, m, true); n != most*mem.PageSize || err != nil {
			t.Errorf("for writing: %d bytes, %v", n, err)
		}
		if there, writable := present(p, m); len(there) != most || len(writable) != most {
			t.Errorf("after a write %d are present, %d writable", len(there), len(writable))
		}
		for i, b := range m {
			if want := byte(0); b != want && i != 5*mem.PageSize+7 {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
		if m[5*mem.PageSize+7] != 42 {
			t.Error("a byte of the program is lost")
		}
	})
}

// ownAfterRead is how many of n untouched pages are the process's own after a read: none where the
// kernel maps one page of zeroes for all of them, and all where each read takes a page, as on
// kernels without the shared page.
func ownAfterRead(t *testing.T, n int) int {
	t.Helper()
	m := pages(t, 1)
	defer func() { _ = unix.Munmap(m) }()
	if err := unix.Madvise(m, unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	if m[0] != 0 {
		t.Fatal("untouched memory is not zero")
	}
	tables, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	var entry [8]byte
	if _, err := tables.ReadAt(entry[:], int64(address(m)/mem.PageSize)*8); err != nil {
		t.Fatal(err)
	}
	if binary.NativeEndian.Uint64(entry[:])&pageExclusive == 0 {
		return 0
	}
	return n
}

// TestWritableIsWhatAStoreFindsSo: a store to a page faults where Resident says that the page is
// not writable, and nowhere else, whatever this kernel maps for a page that was only read: the
// shared page of zeroes, or one of the process's own.
func TestWritableIsWhatAStoreFindsSo(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		const each = 16 // pages of a kind
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		m := pages(t, 4*each)
		defer func() { _ = unix.Munmap(m) }()
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(bytes.Repeat([]byte{7}, each*mem.PageSize)); err != nil {
			t.Fatal(err)
		}
		stored, read, ofFile := 0, each, 2*each // the first page of each kind; those behind them are not touched
		at := uintptr(address(m)) + uintptr(ofFile)*mem.PageSize
		if _, _, e := unix.Syscall6(unix.SYS_MMAP, at, each*mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED, f.Fd(), 0); e != 0 {
			t.Fatal(e)
		}
		if err := unix.Madvise(m, unix.MADV_NOHUGEPAGE); err != nil {
			t.Fatal(err)
		}
		for i := range each {
			m[(stored+i)*mem.PageSize] = 1
		}
		if _, err := touch(p, m[:3*each*mem.PageSize], false); err != nil {
			t.Fatal(err)
		}
		there, writable := present(p, m)
		own := ownAfterRead(t, each)
		if len(there) != 3*each || len(writable) != each+own {
			t.Fatalf("%d pages are present and %d writable, want %d and %d", len(there), len(writable), 3*each, each+own)
		}
		store := func(first int) int64 {
			var before, after unix.Rusage
			err1 := unix.Getrusage(unix.RUSAGE_THREAD, &before)
			for i := range each {
				m[(first+i)*mem.PageSize] = 2
			}
			if err2 := unix.Getrusage(unix.RUSAGE_THREAD, &after); err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			return after.Minflt - before.Minflt
		}
		for what, c := range map[string]struct {
			first int
			want  int64
		}{"stored to before": {stored, 0}, "read before": {read, int64(each - own)}, "of a file": {ofFile, each}, "not touched": {3 * each, each}} {
			// A signal of the Go runtime may add a fault or two.
			if got := store(c.first); got < c.want || got >= c.want+each/2 {
				t.Errorf("%d pages %s: stores fault %d times, want %d", each, what, got, c.want)
			}
		}
		if _, writable := present(p, m); len(writable) != 4*each {
			t.Errorf("after stores to all of %d pages %d are writable", 4*each, len(writable))
		}
	})
}

// What a program may not do the device cannot do for it.
func TestTouchWithoutRights(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		m := pages(t, 4)
		defer func() { _ = unix.Munmap(m) }()
		for _, c := range []struct {
			prot        int
			read, write error
		}{{unix.PROT_READ, nil, unix.EPERM}, {unix.PROT_NONE, unix.EFAULT, unix.EFAULT}} {
			if err := unix.Mprotect(m[mem.PageSize:2*mem.PageSize], c.prot); err != nil {
				t.Fatal(err)
			}
			if _, err := touch(p, m, false); !errors.Is(err, c.read) {
				t.Errorf("rights %d, for reading: %v, want %v", c.prot, err, c.read)
			}
			if n, err := touch(p, m, true); !errors.Is(err, c.write) || n > mem.PageSize {
				t.Errorf("rights %d, for writing: %d bytes, %v, want %v", c.prot, n, err, c.write)
			}
		}
		if _, _, e := unix.Syscall(unix.SYS_MUNMAP, uintptr(address(m))+2*mem.PageSize, mem.PageSize, 0); e != 0 {
			t.Fatal(e)
		}
		if n, err := touch(p, m[2*mem.PageSize:], false); !errors.Is(err, unix.EFAULT) || n != 0 {
			t.Errorf("a hole: %d bytes, %v", n, err)
		}
	})
}

// Pages behind the end of a file are mapped, and cannot be present. Of a private mapping of a file
// no page is the program's own before it has stored to it.
func TestTouchOfAFile(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, 2*mem.PageSize)); err != nil {
			t.Fatal(err)
		}
		for _, how := range []int{unix.MAP_SHARED, unix.MAP_PRIVATE} {
			m, err := unix.Mmap(int(f.Fd()), 0, 4*mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, how)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Munmap(m) }()
			for _, write := range []bool{false, true} {
				if n, err := touch(p, m[:2*mem.PageSize], write); n != 2*mem.PageSize || err != nil {
					t.Errorf("write %v: %d bytes, %v", write, n, err)
				}
				if _, writable := present(p, m); how == unix.MAP_PRIVATE && (len(writable) == 2) != write {
					t.Errorf("write %v: the program's own are %v", write, writable)
				}
				if _, err := touch(p, m, write); !errors.Is(err, unix.EFAULT) {
					t.Errorf("write %v, behind the end: %v", write, err)
				}
			}
			if p.aliased(address(m), 1) != (how == unix.MAP_SHARED) {
				t.Error("whether others see the memory")
			}
			p.aliases = nil
		}
	})
}

// A process that has ended has no pages.
func TestPagesOfAnEndedProcess(t *testing.T) {
	m := pages(t, 1)
	defer func() { _ = unix.Munmap(m) }()
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p.pid, p.tid = 1<<30, 1<<30 // no process has the number
	p.Close()
	if _, err := touch(p, m, true); !errors.Is(err, unix.EFAULT) {
		t.Errorf("%v", err)
	}
	if there, _ := present(p, m); there != nil {
		t.Errorf("present are %v", there)
	}
}
