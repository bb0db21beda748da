//go:build linux && amd64

package procmem

import (
	"errors"
	"os"
	"path/filepath"
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
func TestTouch(t *testing.T) {
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
		if there, writable := present(p, m); len(there) != most || len(writable) != 1 {
			t.Errorf("after a read %d are present, %d writable: others are the page of zeroes", len(there), len(writable))
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

// Pages behind the end of a file are mapped, and cannot be present. Of a private mapping of a file no page is the program's own
// before it has stored to it.
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
