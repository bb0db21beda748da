//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// A program has DMA-BUFs of this machine's kernel: of /dev/udmabuf, of a heap, of a graphics
// driver. What the exporter lets programs map is mapped here too, and the device reaches it so. It
// stays mapped as long as a region is on it, whatever the program does to its descriptor and its
// memory.

// dmabuf is a DMA-BUF that is mapped here (kernel.Exporter, mem.Foreign, mem.Prober).
type dmabuf struct {
	name    string
	mem     []byte
	space   *mem.Space
	pages   []mem.PA
	streams *procmem.Streams
	give    func() // back to the quota
}

// Dmabuf implements uverbs.Caller.
func (c *caller) Dmabuf(fd int) (kernel.Exporter, error) {
	if err := checkNotPath(c.tid, fd); err != nil {
		return nil, err
	}
	f, err := c.proc.mem.File(fd)
	if err != nil {
		return nil, err
	}
	defer f.Close()             // a mapping keeps the file
	raw, err := f.SyscallConn() // Fd would change flags that the program's descriptor shares
	if err != nil {
		return nil, err
	}
	var d *dmabuf
	if e := raw.Control(func(n uintptr) { d, err = openDmabuf(int(n), c.proc, c.t) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return d, nil
}

func openDmabuf(fd int, p *process, t *processes) (*dmabuf, error) {
	name, size, err := describeDmabuf(fd)
	if err != nil {
		return nil, err
	}
	return newDmabuf(fd, name, size, p, t)
}

// describeDmabuf asks the kernel whose DMA-BUF a descriptor of ours is. EINVAL: of another file.
func describeDmabuf(fd int) (name string, size int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return "", 0, err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "exp_name:"); ok {
			name, found = strings.TrimSpace(value), true
		}
	}
	if !found {
		return "", 0, fmt.Errorf("no DMA-BUF: %w", syscall.EINVAL)
	}
	size, err = unix.Seek(fd, 0, unix.SEEK_END)
	return name, size, err
}

func newDmabuf(fd int, name string, size int64, p *process, t *processes) (*dmabuf, error) {
	if err := p.maps.Take(1); err != nil {
		return nil, err
	}
	d := &dmabuf{name: name, streams: t.streams, give: func() { p.maps.Give(1) }}
	var err error
	if d.mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		d.give()
		return nil, fmt.Errorf("%d B of %s: mmap: %v: %w", size, name, err, uverbs.ErrUnmappable)
	}
	if d.space, err = mem.NewForeignSpace(t.m.mem, d); err != nil {
		_ = unix.Munmap(d.mem)
		d.give()
		return nil, err
	}
	return d, nil
}

func (d *dmabuf) Name() string { return d.name }
func (d *dmabuf) Size() uint64 { return uint64(len(d.mem)) }

// Map implements kernel.Exporter.
func (d *dmabuf) Map() (kernel.Pages, error) {
	var err error
	d.pages, err = d.space.Pin(0, d.Size(), mem.Read|mem.Write)
	return kernel.Pages{List: d.pages}, err
}

// Unmap implements kernel.Exporter.
func (d *dmabuf) Unmap() {
	d.space.Unpin(d.pages)
	d.pages = nil
}

// Pin and Unpin have nothing to do: nobody asks the exporter to move it.
func (d *dmabuf) Pin() error { return nil }
func (d *dmabuf) Unpin()     {}

// Release implements kernel.Exporter.
func (d *dmabuf) Release() {
	d.space.Release()
	_ = unix.Munmap(d.mem)
	d.give()
}

// Probe implements mem.Prober.
func (d *dmabuf) Probe(va mem.VA, n uint64, _ mem.Prot) error {
	_, err := d.at(va, int(n))
	return err
}

func (d *dmabuf) at(va mem.VA, n int) ([]byte, error) {
	if size := uint64(len(d.mem)); uint64(va) > size || uint64(n) > size-uint64(va) {
		return nil, fmt.Errorf("%d B at %#x of a DMA-BUF of %d B: %w", n, uint64(va), size, syscall.EFAULT)
	}
	return d.mem[va:][:n], nil
}

// ReadAt implements mem.Foreign. A program may have the same memory at an address too, by which
// something was written that is still held back.
func (d *dmabuf) ReadAt(va mem.VA, b []byte) error {
	d.streams.Flush()
	from, err := d.at(va, len(b))
	if err == nil && !sharedmem.Copy(b, from) {
		err = fmt.Errorf("memory of %s is gone: %w", d.name, syscall.EFAULT)
	}
	return err
}

// WriteAt implements mem.Foreign.
func (d *dmabuf) WriteAt(va mem.VA, b []byte) error {
	d.streams.Flush()
	d.streams.DropReadAhead()
	to, err := d.at(va, len(b))
	if err == nil && !sharedmem.Store(to, b) {
		err = fmt.Errorf("memory of %s is gone: %w", d.name, syscall.EFAULT)
	}
	return err
}
