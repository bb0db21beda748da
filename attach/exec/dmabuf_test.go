//go:build linux && amd64

package exec

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// memoryFile is a memfd of some pages, which is mapped as a DMA-BUF of udmabuf is.
func memoryFile(t *testing.T, pages int64) *os.File {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(pages * pageSize); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMappedDmabuf has a device write to exported memory and read it, and looks that nothing is
// left behind.
func TestMappedDmabuf(t *testing.T) {
	f := memoryFile(t, 3)
	m := &machine{mem: mem.New(1 << 20)}
	ps := &processes{m: m, streams: &procmem.Streams{}}
	p := &process{maps: &uverbs.Quota{Name: "maps", Most: 1, Errno: syscall.ENOMEM}}
	d, err := newDmabuf(int(f.Fd()), "test", 3*pageSize, p, ps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newDmabuf(int(f.Fd()), "test", 3*pageSize, p, ps); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("a mapping too many: %v, want ENOMEM", err)
	}
	pages, err := d.Map()
	if err != nil || len(pages.List) != 3 {
		t.Fatalf("%d pages, %v", len(pages.List), err)
	}
	sent := bytes.Repeat([]byte("dma"), 2000)
	if !m.mem.Write(pages.List[0]+4000, sent) {
		t.Fatal("the device cannot write")
	}
	got := make([]byte, len(sent))
	if _, err := f.ReadAt(got, 4000); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the exporter has other bytes than were written (%v)", err)
	}
	clear(got)
	if !m.mem.Read(pages.List[0]+4000, got) || !bytes.Equal(got, sent) {
		t.Error("the device reads other bytes than it wrote")
	}
	if m.mem.Read(pages.List[2]+pageSize-1, got[:2]) {
		t.Error("the device reads beyond the end")
	}
	if err := d.WriteAt(3*pageSize-1, got[:2]); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("write beyond the end: %v, want EFAULT", err)
	}
	d.Unmap()
	if m.mem.Read(pages.List[0], got[:1]) {
		t.Error("the device reads what it has no mapping of")
	}
	d.Release()
	if err := p.maps.Take(1); err != nil {
		t.Errorf("after the end of the DMA-BUF: %v", err)
	}
}

// TestDmabufThatCannotBeMapped is as of a GPU's driver.
func TestDmabufThatCannotBeMapped(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := &process{maps: &uverbs.Quota{Name: "maps", Most: 1, Errno: syscall.ENOMEM}}
	ps := &processes{m: &machine{mem: mem.New(1 << 20)}, streams: &procmem.Streams{}}
	if _, err := newDmabuf(int(r.Fd()), "pipe", pageSize, p, ps); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("%v, want EOPNOTSUPP", err)
	}
	if err := p.maps.Take(1); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	if _, _, err := describeDmabuf(int(memoryFile(t, 1).Fd())); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a memory file as a DMA-BUF: %v, want EINVAL", err)
	}
}
