//go:build hw

package mlx5

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

var (
	_ verbs.PagedBuffer      = (*buffer)(nil)
	_ verbs.Remapper         = (*buffer)(nil)
	_ verbs.MemObjects       = (*process)(nil)
	_ verbs.PageFaultCounter = (*process)(nil)
	_ verbs.MemoryUser       = (*process)(nil)
)

// pointer is an address as the kernel takes it.
func pointer(at uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), at) }

// object is what a mapping shows, and the flags of mmap with those that say so.
func object(o *verbs.MapOptions, flags int) (fd, all int, err error) {
	if o.At != 0 && o.NoReplace {
		flags |= unix.MAP_FIXED_NOREPLACE
	} else if o.At != 0 {
		flags |= unix.MAP_FIXED
	}
	if o.Lazy {
		flags |= unix.MAP_NORESERVE // hundreds of GiB of which little is touched
	}
	if o.Object == nil {
		return -1, flags | unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, nil
	}
	x, ok := o.Object.(*memObject)
	if !ok {
		return 0, 0, fmt.Errorf("map: an object of another target: %w", syscall.EBADF)
	}
	if o.Private {
		return x.fd, flags | unix.MAP_PRIVATE, nil
	}
	return x.fd, flags | unix.MAP_SHARED, nil
}

// call makes a system call on a part of the buffer.
func (b *buffer) call(t verbs.Thread, what string, nr uintptr, off, n uint64, arg uintptr) error {
	callingThread(t)
	if _, _, errno := unix.Syscall(nr, uintptr(b.Addr()+off), uintptr(n), arg); errno != 0 {
		return fmt.Errorf("%s of %d bytes at %#x: %w", what, n, b.Addr()+off, errno)
	}
	return nil
}

// Protect is mprotect.
func (b *buffer) Protect(t verbs.Thread, off, n uint64, prot verbs.Prot) error {
	return b.call(t, "mprotect", unix.SYS_MPROTECT, off, n, uintptr(prot)) // PROT_READ and PROT_WRITE are 1 and 2
}

// Advise is madvise.
func (b *buffer) Advise(t verbs.Thread, off, n uint64, advice verbs.Advice) error {
	return b.call(t, "madvise", unix.SYS_MADVISE, off, n, uintptr(advice))
}

// UnmapPart is munmap of a part.
func (b *buffer) UnmapPart(t verbs.Thread, off, n uint64) error {
	return b.call(t, "munmap", unix.SYS_MUNMAP, off, n, 0)
}

// Resident is mincore.
func (b *buffer) Resident(t verbs.Thread, off, n uint64) ([]bool, error) {
	page := uint64(b.p.host.PageSize())
	if n > 1<<47 {
		return nil, fmt.Errorf("mincore of %d bytes: %w", n, syscall.ENOMEM)
	}
	vec := make([]byte, (n+page-1)/page+1)
	if err := b.call(t, "mincore", unix.SYS_MINCORE, off, n, uintptr(unsafe.Pointer(unsafe.SliceData(vec)))); err != nil {
		return nil, err
	}
	pages := make([]bool, len(vec)-1)
	for i := range pages {
		pages[i] = vec[i]&1 != 0
	}
	return pages, nil
}

// Move is mremap. Without an address the kernel is asked for one first: by itself it would not move
// what has room.
func (b *buffer) Move(t verbs.Thread, to uint64) error {
	callingThread(t)
	at, room := pointer(to), unsafe.Pointer(nil)
	if to == 0 {
		var err error
		if room, err = unix.MmapPtr(-1, 0, nil, uintptr(b.mapped), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE); err != nil {
			return fmt.Errorf("room to move: %w", err)
		}
		at = room
	}
	at, err := unix.MremapPtr(b.at, uintptr(b.mapped), at, uintptr(b.mapped), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	if err != nil {
		if room != nil {
			_ = unix.MunmapPtr(room, uintptr(b.mapped))
		}
		return fmt.Errorf("mremap of %d bytes at %#x: %w", b.mapped, uintptr(b.at), err)
	}
	b.at = at
	return nil
}

// memObject is a file without a name, or shared memory.
type memObject struct{ fd int }

// NewShared is memfd_create.
func (p *process) NewShared(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	callingThread(t)
	fd, err := unix.MemfdCreate("rdmasim", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return sized(t, fd, size)
}

// NewFile makes a file without a name in the folder for temporary files.
func (p *process) NewFile(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	callingThread(t)
	fd, err := unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("a file in %s: %w", os.TempDir(), err)
	}
	return sized(t, fd, size)
}

func sized(t verbs.Thread, fd int, size uint64) (verbs.MemObject, error) {
	o := &memObject{fd}
	if err := o.Truncate(t, size); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return o, nil
}

func (o *memObject) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	callingThread(t)
	n, err := unix.Pread(o.fd, p, off)
	return max(n, 0), err
}

func (o *memObject) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	callingThread(t)
	n, err := unix.Pwrite(o.fd, p, off)
	return max(n, 0), err
}

// Truncate is ftruncate.
func (o *memObject) Truncate(t verbs.Thread, size uint64) error {
	callingThread(t)
	if size > 1<<62 {
		return fmt.Errorf("ftruncate to %d bytes: %w", size, syscall.EFBIG)
	}
	if err := unix.Ftruncate(o.fd, int64(size)); err != nil {
		return fmt.Errorf("ftruncate to %d bytes: %w", size, err)
	}
	return nil
}

// Close closes the descriptor; a second time it is EBADF.
func (o *memObject) Close(t verbs.Thread) error {
	callingThread(t)
	fd := o.fd
	o.fd = -1
	return unix.Close(fd)
}

// PageFaults is getrusage.
func (p *process) PageFaults(t verbs.Thread) (verbs.PageFaults, error) {
	callingThread(t)
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return verbs.PageFaults{}, fmt.Errorf("getrusage: %w", err)
	}
	return verbs.PageFaults{Minor: uint64(u.Minflt), Major: uint64(u.Majflt)}, nil
}

// MemoryUse reads /proc/self/status.
func (p *process) MemoryUse(t verbs.Thread) (use verbs.MemoryUse, err error) {
	callingThread(t)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return use, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		to := map[string]*uint64{"VmRSS": &use.Resident, "VmLck": &use.Locked, "VmPin": &use.Pinned}[name]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return use, fmt.Errorf("/proc/self/status: %q: %w", line, err)
		}
		*to = kib << 10
	}
	return use, nil
}
