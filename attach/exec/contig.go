//go:build linux && amd64

package exec

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/uapi"
)

// Memory of queues is shared with programs by an old kernel's mmap of "contiguous
// pages" on the device file, which libmlx5 still tries when the environment says so
// (queueEnv). Its offset names a size, not a buffer: so each gets a memory file of its
// own, which is put behind the descriptor before the kernel maps it. It stays there until
// the next mmap, and stands for the device file meanwhile: calls know it by its inode.

// queueEnv are the variables by which libmlx5 takes memory of queues from the device
// file where it can, and from the heap where not.
var queueEnv = []string{"MLX_QP_ALLOC_TYPE", "MLX_CQ_ALLOC_TYPE", "MLX_SRQ_ALLOC_TYPE", "MLX_RWQ_ALLOC_TYPE"}

const preferContig = "PREFER_CONTIG"

// maxBuffer is the longest buffer that is shared, and maxBuffers how many are shared of one file:
// to find one costs a look at each. Libraries put others on the heap.
const (
	maxBuffer  = 1 << 30
	maxBuffers = 1 << 11
)

// contiguousPage reports whether a page offset asks for contiguous pages of an order.
func contiguousPage(page uint64) bool {
	cmd, order := uapi.MmapCommand(page)
	return cmd == uapi.MmapContiguous && order < 256
}

// buffer is the memory file of a queue.
type buffer struct {
	inode  uverbs.Inode
	watch  int
	off    uint64 // in the file, of the program's mapping
	mem    []byte // that mapping here
	va     mem.VA // there; 0 while it is not known
	shared bool   // accesses go by mem
}

// mapping is an mmap that the kernel carries out after the descriptor was prepared for
// it. Until it is done no other thread's may change what the descriptor shows.
type mapping struct {
	tid   int
	inode uverbs.Inode
	off   uint64
}

// mmapOver notes that a thread makes another call, and so that its mmap has returned.
func (f *file) mmapOver(tid int) {
	if f.mapping != nil && f.mapping.tid == tid {
		f.mapping = nil
	}
}

func (m *mapping) done(p *procmem.Process) bool {
	found := false
	err := p.Mappings(func(x *procmem.Mapping) bool {
		found = x.Inode == m.inode.Ino && x.Dev == m.inode.Dev && x.Offset <= m.off && m.off < x.Offset+uint64(x.End-x.Start)
		return !found
	})
	return err != nil || found
}

// contiguous prepares the mmap of n bytes at offset off on descriptor fd.
func (f *file) contiguous(l *seccomp.Listener, id uint64, tid, fd int, off, n uint64) error {
	proc, err := f.s.procs.ofThread(tid)
	switch {
	case err != nil:
		return err
	case f.s.cfg.CopyQueues || proc != f.proc || n == 0 || n > maxBuffer || len(f.buffers) >= maxBuffers:
		return fmt.Errorf("contiguous pages: %w", syscall.ENOSYS) // as every present kernel answers
	}
	if f.held == nil {
		// The file must not end with the descriptor that shows a buffer now.
		if f.held, err = f.description(fd); err != nil {
			return err
		}
	}
	b, theirs, err := f.makeBuffer(off, (n+pageSize-1)&^(pageSize-1))
	if err != nil {
		f.releaseHeld()
		return err
	}
	defer theirs.Close()
	f.s.files.byInode[b.inode], f.s.files.byWatch[b.watch] = f, watched{f: f, b: b}
	f.buffers = append(f.buffers, b)
	if err := l.ReplaceFD(id, int(theirs.Fd()), fd, true); err != nil {
		f.dropBuffer(b)
		return err
	}
	f.mapping = &mapping{tid, b.inode, off}
	return nil
}

// description is the program's description of the device file behind a descriptor: another thread
// may have put another file there.
func (f *file) description(fd int) (*os.File, error) {
	held, err := f.proc.mem.File(fd)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(held.Fd()), &st); err != nil || (uverbs.Inode{Dev: st.Dev, Ino: st.Ino}) != f.inode {
		held.Close()
		return nil, fmt.Errorf("descriptor %d was changed: %w", fd, syscall.EBADF)
	}
	return held, nil
}

// makeBuffer is newBuffer within the limits. All bytes of the file count, since programs can write
// to them all.
func (f *file) makeBuffer(off, n uint64) (b *buffer, theirs *os.File, err error) {
	bytes := f.s.procs.limits.fileBytes
	if err := f.proc.maps.Take(1); err != nil {
		return nil, nil, err
	}
	if err = bytes.Take(int(off + n)); err == nil {
		if b, theirs, err = f.s.files.newBuffer(f, off, n); err == nil {
			return b, theirs, nil
		}
		bytes.Give(int(off + n))
	}
	f.proc.maps.Give(1)
	return nil, nil, err
}

// newBuffer makes the memory file, mapped here, and the description that the program gets:
// when that is closed the buffer ends.
func (t *files) newBuffer(f *file, off, n uint64) (b *buffer, theirs *os.File, err error) {
	m, err := newMemfd(int64(off + n))
	if err != nil {
		return nil, nil, err
	}
	defer m.close()
	b = &buffer{inode: m.inode, off: off}
	// Mapped through a description of its own: its end, when the mapping goes, comes
	// after that of the watch.
	own, err := m.open()
	if err != nil {
		return nil, nil, err
	}
	defer own.Close()
	if b.mem, err = unix.Mmap(int(own.Fd()), int64(off), int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, nil, fmt.Errorf("map a queue: %w", err)
	}
	if theirs, err = m.open(); err == nil {
		if b.watch, err = m.watch(t.inotify, own); err == nil {
			return b, theirs, nil
		}
		theirs.Close()
	}
	_ = unix.Munmap(b.mem)
	return nil, nil, err
}

// dropBuffer forgets a buffer that no descriptor and no mapping of a program shows.
func (f *file) dropBuffer(b *buffer) {
	t := f.s.files
	_, _ = unix.InotifyRmWatch(t.inotify, uint32(b.watch))
	delete(t.byInode, b.inode)
	delete(t.byWatch, b.watch)
	f.unshareBuffer(b)
	t.unmapLater(b.mem)
	f.proc.maps.Give(1)
	f.s.procs.limits.fileBytes.Give(int(b.off) + len(b.mem))
	for i, x := range f.buffers {
		if x == b {
			f.buffers = append(f.buffers[:i], f.buffers[i+1:]...)
			break
		}
	}
	f.releaseHeld()
}

// releaseHeld closes the session's copy of the program's description when there are no buffers
// left.
func (f *file) releaseHeld() {
	if f.held != nil && len(f.buffers) == 0 {
		f.held.Close()
		f.held = nil
	}
}

// showDeviceFile puts the device file back behind a descriptor that may show one of its buffers.
func (f *file) showDeviceFile(l *seccomp.Listener, id uint64, tid, fd int, shows uverbs.Inode, off uint64) error {
	if shows != f.inode {
		if err := l.ReplaceFD(id, int(f.held.Fd()), fd, true); err != nil {
			return err
		}
	}
	f.mapping = &mapping{tid, f.inode, off}
	return nil
}

// workQueues announces (on) or withdraws the work queues of a QP: one buffer holds both.
func (f *file) workQueues(q *uverbs.QP, on bool) {
	f.workQueue(q.RQAddr, q.SQAddr-q.RQAddr+uint64(q.SQCount)*prm.WQEBBSize, on)
}

// workQueue announces (on) or withdraws n bytes of work requests.
func (f *file) workQueue(addr, n uint64, on bool) {
	f.setShared(addr, on)
	f.s.procs.streams.WorkQueue(f.proc.mem, mem.VA(addr), n, on)
}

// completionQueue announces (on) or withdraws the memory of a CQ.
func (f *file) completionQueue(c *uverbs.CQ, on bool) {
	f.setShared(c.Addr, on)
	f.s.procs.streams.CompletionQueue(f.proc.mem, mem.VA(c.Addr), uint64(c.Entries)*uint64(c.CQESize), on)
}

func (f *file) setShared(addr uint64, on bool) {
	if on {
		f.share(addr)
	} else {
		f.unshare(addr)
	}
}

// share makes accesses to a queue that lies in a buffer go by its mapping here, until
// unshare. Other queues are copied.
func (f *file) share(addr uint64) {
	b := f.bufferAt(mem.VA(addr))
	if b == nil {
		f.s.files.copied++
		return
	}
	f.s.files.shared++
	if !b.shared {
		b.shared = true
		f.proc.mem.Share(b.va, b.mem)
	}
}

// unshare ends share: the program may give the memory back from now on.
func (f *file) unshare(addr uint64) {
	for _, b := range f.buffers {
		if b.va != 0 && b.va <= mem.VA(addr) && mem.VA(addr) < b.va+mem.VA(len(b.mem)) {
			f.unshareBuffer(b)
		}
	}
}

func (f *file) unshareBuffer(b *buffer) {
	if b.shared {
		b.shared = false
		f.proc.mem.Unshare(b.va)
	}
}

// bufferAt is the buffer that is mapped at addr, nil when none is.
func (f *file) bufferAt(addr mem.VA) (b *buffer) {
	if len(f.buffers) == 0 {
		return nil
	}
	_ = f.proc.mem.MappingsFrom(addr, func(m *procmem.Mapping) bool {
		if addr < m.Start || m.Inode == 0 {
			return false
		}
		for _, x := range f.buffers {
			if x.inode == (uverbs.Inode{Dev: m.Dev, Ino: m.Inode}) && m.Rights == mem.Read|mem.Write && m.Offset == x.off && m.End-m.Start == mem.VA(len(x.mem)) {
				x.va, b = m.Start, x
			}
		}
		return false
	})
	return b
}
