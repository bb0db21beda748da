//go:build linux && amd64

package procmem

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// pages maps memory of the process that the test runs in.
func pages(t *testing.T, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n*mem.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// reads counts how often all mappings are read.
func reads(t *testing.T) *int {
	n := 0
	readFile = func(name string) ([]byte, error) { n++; return os.ReadFile(name) }
	t.Cleanup(func() { readFile = os.ReadFile })
	return &n
}

// What the kernel tells of each mapping is what it tells of all.
func TestMappingsAreTheSame(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		here, _ := twice(t) // of a file, shared
		at := address(here)
		var all, from []Mapping
		err := p.Mappings(func(m *Mapping) bool {
			if m.End > at {
				all = append(all, *m)
			}
			return m.Start <= at
		})
		err = errors.Join(err, p.MappingsFrom(at, func(m *Mapping) bool { from = append(from, *m); return m.Start <= at }))
		if err != nil || len(all) < 2 || !slices.Equal(all, from) || !all[0].Shared || all[0].Inode == 0 || all[0].Rights != mem.Read|mem.Write {
			t.Errorf("%v\n%+v\n%+v", err, all, from)
		}
	})
}

// A program maps and unmaps behind our back: each look sees what is there then.
func TestMappingsThatChange(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		m := pages(t, 3)
		defer func() { _ = unix.Munmap(m) }()
		base, middle := address(m), address(m)+mem.PageSize
		for _, c := range []struct {
			prot int
			want error
		}{{unix.PROT_READ | unix.PROT_WRITE, nil}, {unix.PROT_READ, unix.EFAULT}, {unix.PROT_NONE, unix.EFAULT}, {unix.PROT_READ | unix.PROT_WRITE, nil}} {
			if err := unix.Mprotect(m[mem.PageSize:2*mem.PageSize], c.prot); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := p.Probe(base, 3*mem.PageSize, mem.Read|mem.Write); !errors.Is(err, c.want) {
					t.Errorf("rights %d: %v, want %v", c.prot, err, c.want)
				}
			}
		}
		if _, _, e := unix.Syscall(unix.SYS_MUNMAP, uintptr(middle), mem.PageSize, 0); e != 0 {
			t.Fatal(e)
		}
		if err := p.Probe(base, 3*mem.PageSize, mem.Read); !errors.Is(err, unix.EFAULT) {
			t.Errorf("a hole: %v", err)
		}
		if err := p.Probe(base, mem.PageSize, mem.Read); err != nil {
			t.Errorf("before the hole: %v", err)
		}
	})
}

// A call of a program that asks for several mappings costs no reading of all, or where the kernel
// cannot tell one of them one, which the next call does not see.
func TestMappingsAreReadOnceForACall(t *testing.T) {
	asked(t, func(t *testing.T, p *Process) {
		m, n := pages(t, 1), reads(t)
		probe := func(want error) {
			t.Helper()
			if err := p.Probe(address(m), mem.PageSize, mem.Read); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		for range 2 {
			end := p.Once()
			probe(nil)
			probe(nil)
			end()
		}
		most := 0
		if p.noQuery {
			most = 2
		}
		if *n > most {
			t.Errorf("all mappings were read %d times in two calls, want at most %d", *n, most)
		}
		if _, _, e := unix.Syscall(unix.SYS_MUNMAP, uintptr(address(m)), mem.PageSize, 0); e != 0 {
			t.Fatal(e)
		}
		probe(unix.EFAULT)
		defer p.Once()()
		probe(unix.EFAULT)
	})
}
