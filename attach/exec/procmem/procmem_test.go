//go:build linux && amd64

package procmem

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

func TestReadsAndWrites(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := unix.Mmap(-1, 0, 3*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	base := mem.VA(uintptr(unsafe.Pointer(&m[0])))
	for _, n := range []int{1, 2, 63, 64, 128, 129, 8192} {
		want := bytes.Repeat([]byte{0xa5}, n)
		if err := p.WriteAt(base+100, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		if err := p.ReadAt(base+100, got); err != nil || !bytes.Equal(got, want) || !bytes.Equal(m[100:100+n], want) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if m[99] != 0 || m[100+n] == 0xa5 {
			t.Errorf("%d bytes: wrote beside them", n)
		}
	}
}

func TestMissingMemoryIsEFAULT(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := unix.Mmap(-1, 0, 2*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	if err := unix.Mprotect(m[4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	base := mem.VA(uintptr(unsafe.Pointer(&m[0])))
	b := make([]byte, 64)
	for what, err := range map[string]error{
		"read nothing":        p.ReadAt(0, b),
		"read over the edge":  p.ReadAt(base+4096-10, b),
		"write over the edge": p.WriteAt(base+4096-10, b),
	} {
		if !errors.Is(err, unix.EFAULT) {
			t.Errorf("%s: %v, want EFAULT", what, err)
		}
	}
}

func TestDeadProcessIsESRCH(t *testing.T) {
	c := exec.Command("sleep", "100")
	if err := c.Start(); err != nil {
		t.Skipf("needs the program sleep: %v", err)
	}
	p, err := Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !p.Alive() {
		t.Error("not alive")
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if p.Alive() {
		t.Error("alive after its end")
	}
	if err := p.ReadAt(4096, make([]byte, 4)); !errors.Is(err, unix.ESRCH) {
		t.Errorf("%v, want ESRCH", err)
	}
}

// asked runs a test with the kernel asked for one mapping, where it can tell, and with all mappings
// read.
func asked(t *testing.T, f func(t *testing.T, p *Process)) {
	for name, noQuery := range map[string]bool{"asked": false, "read": true} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.noQuery = noQuery
			f(t, p)
		})
	}
}

func TestProbe(t *testing.T) { asked(t, probe) }

func probe(t *testing.T, p *Process) {
	m, err := unix.Mmap(-1, 0, 4*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	if err := unix.Mprotect(m[2*4096:3*4096], unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[3*4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	base := mem.VA(uintptr(unsafe.Pointer(&m[0])))
	for _, c := range []struct {
		va   mem.VA
		n    uint64
		prot mem.Prot
		want error
	}{
		{base, 2 * 4096, mem.Read | mem.Write, nil},
		{base, 3 * 4096, mem.Read, nil}, // over two mappings
		{base, 3 * 4096, mem.Read | mem.Write, unix.EFAULT},
		{base, 4 * 4096, mem.Read, unix.EFAULT},
		{0, 4096, mem.Read, unix.EFAULT},
	} {
		if err := p.Probe(c.va, c.n, c.prot); !errors.Is(err, c.want) {
			t.Errorf("%d bytes at +%#x, rights %d: %v, want %v", c.n, uint64(c.va-base), c.prot, err, c.want)
		}
	}
}
