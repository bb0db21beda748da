//go:build hw

package mlx5

import (
	"fmt"
	"math/bits"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// Map maps anonymous memory (mmap), with a page more when it begins inside one.
func (p *process) Map(t verbs.Thread, length uint64, o verbs.MapOptions) (verbs.Buffer, error) {
	callingThread(t)
	page := uint64(p.host.PageSize())
	flags := 0
	if o.PageSize != 0 && o.PageSize != page {
		if bits.OnesCount64(o.PageSize) != 1 || o.PageSize < page {
			return nil, fmt.Errorf("map: pages of %d bytes: %w", o.PageSize, syscall.EINVAL)
		}
		page = o.PageSize
		flags |= unix.MAP_HUGETLB | bits.TrailingZeros64(page)<<unix.MAP_HUGE_SHIFT
	}
	if o.Offset >= page {
		return nil, fmt.Errorf("map: offset %d in a page of %d: %w", o.Offset, page, syscall.EINVAL)
	}
	if length > 1<<47 {
		return nil, fmt.Errorf("map %d bytes: %w", length, syscall.ENOMEM)
	}
	prot := unix.PROT_READ | unix.PROT_WRITE
	if o.ReadOnly {
		prot = unix.PROT_READ
	}
	if o.NoAccess {
		prot = unix.PROT_NONE
	}
	fd, flags, err := object(&o, flags)
	if err != nil {
		return nil, err
	}
	n := (length + o.Offset + page - 1) &^ (page - 1)
	at, err := unix.MmapPtr(fd, int64(o.ObjectOffset), pointer(o.At), uintptr(n), prot, flags)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", length, err)
	}
	return &buffer{p: p, at: at, mapped: n, off: o.Offset, n: length}, nil
}

// buffer is mapped memory.
type buffer struct {
	p      *process
	at     unsafe.Pointer // of the mapping
	mapped uint64
	off, n uint64
}

func (b *buffer) Addr() uint64 { return uint64(uintptr(b.at)) + b.off }
func (b *buffer) Len() uint64  { return b.n }

// start is the first byte.
func (b *buffer) start() unsafe.Pointer { return unsafe.Add(b.at, b.off) }

// bytes is the memory itself.
func (b *buffer) bytes(t verbs.Thread, n int, off int64) ([]byte, error) {
	callingThread(t)
	if off < 0 || uint64(off) > b.n || uint64(n) > b.n-uint64(off) {
		return nil, fmt.Errorf("%d bytes at %d of a buffer of %d: %w", n, off, b.n, syscall.EFAULT)
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.at, b.off+uint64(off))), n), nil
}

// ReadAt copies from the buffer.
func (b *buffer) ReadAt(t verbs.Thread, p []byte, off int64) (n int, err error) {
	m, err := b.bytes(t, len(p), off)
	if err != nil {
		return 0, err
	}
	defer efault(&n, &err)
	return copy(p, m), nil
}

// WriteAt copies to the buffer.
func (b *buffer) WriteAt(t verbs.Thread, p []byte, off int64) (n int, err error) {
	m, err := b.bytes(t, len(p), off)
	if err != nil {
		return 0, err
	}
	defer efault(&n, &err)
	return copy(m, p), nil
}

// efault makes EFAULT of an access to memory that is not there or not for writing.
func efault(n *int, err *error) {
	r := recover()
	if r == nil {
		return
	}
	a, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	*n, *err = 0, fmt.Errorf("access to %#x: %w", a.Addr(), syscall.EFAULT)
}

// Unmap is munmap of the whole mapping.
func (b *buffer) Unmap(t verbs.Thread) error {
	callingThread(t)
	if err := unix.MunmapPtr(b.at, uintptr(b.mapped)); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}

// DeviceMappings counts the mappings of the device's files.
func (p *process) DeviceMappings(t verbs.Thread) (int, error) {
	callingThread(t)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	n := 0
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "uverbs") {
			n++
		}
	}
	return n, nil
}
