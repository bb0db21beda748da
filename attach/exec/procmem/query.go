//go:build linux && amd64

package procmem

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// procmapQuery is struct procmap_query of linux/fs.h, since Linux 6.11.
type procmapQuery struct {
	size, flags, addr                uint64
	start, end, rights, page, offset uint64
	inode                            uint64
	major, minor                     uint32
	nameSize, buildSize              uint32
	nameAddr, buildAddr              uint64
}

// PROCMAP_QUERY is _IOWR('f', 17, struct procmap_query).
const ioctlProcmapQuery = 3<<30 | uintptr(unsafe.Sizeof(procmapQuery{}))<<16 | 'f'<<8 | 17

// Flags of a query and of its answer.
const (
	vmaReadable, vmaWritable, vmaShared = 0x01, 0x02, 0x08
	coveringOrNext                      = 0x10
)

// errNoQuery says that the kernel has to be asked in the old way.
var errNoQuery = errors.New("no query of mappings")

// TellsOne reports whether the kernel can tell one mapping of the process.
func (p *Process) TellsOne() bool {
	return p.query(func(ask func(mem.VA, *Mapping) error) error { return ask(0, new(Mapping)) }) == nil
}

// query lets ask tell the mapping at an address, or the first above it. The file is opened each
// time, since a file that stays open shows the memory from before an exec. The end of the mappings
// is no error.
func (p *Process) query(use func(ask func(mem.VA, *Mapping) error) error) error {
	if p.noQuery {
		return errNoQuery
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/maps", p.tid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var q procmapQuery
	err = use(func(va mem.VA, m *Mapping) error {
		q = procmapQuery{size: uint64(unsafe.Sizeof(q)), flags: coveringOrNext, addr: uint64(va)}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlProcmapQuery, uintptr(unsafe.Pointer(&q))); e != 0 {
			return e
		}
		*m = Mapping{Start: mem.VA(q.start), End: mem.VA(q.end), Shared: q.rights&vmaShared != 0, Offset: q.offset,
			Dev: unix.Mkdev(q.major, q.minor), Inode: q.inode}
		if q.rights&vmaReadable != 0 {
			m.Rights |= mem.Read
		}
		if q.rights&vmaWritable != 0 {
			m.Rights |= mem.Write
		}
		if q.page > mem.PageSize {
			m.Shift = uint8(bits.TrailingZeros64(q.page))
		}
		return nil
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS):
		p.noQuery = true
	}
	return err
}
