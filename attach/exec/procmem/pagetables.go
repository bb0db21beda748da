//go:build linux && amd64

package procmem

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/uapi"
)

var _ mem.PageTables = (*Memory)(nil)

// Sizes of what is looked at in one call: bytes that are read, entries of pagemap, and bytes whose
// pages are faulted for writing, of which the kernel takes so many at once (PVM_MAX_USER_PAGES of
// mm/process_vm_access.c is 1,024 pages).
const (
	touchChunk = 64 << 10
	mapChunk   = 8 << 10
	writeChunk = 2 << 20
)

// Touch implements mem.PageTables.
func (p *Process) Touch(va mem.VA, n uint64, write bool, f func(va mem.VA, n uint64, shift uint8)) error {
	at, end := va, va+mem.VA(n)
	var failed error
	err := p.MappingsFrom(at, func(m *Mapping) bool {
		switch {
		case m.Start > at || m.Rights&mem.Read == 0:
			return false
		case write && m.Rights&mem.Write == 0:
			failed = fmt.Errorf("memory of process %d at %#x is read-only: %w", p.pid, uint64(at), unix.EPERM)
			return false
		}
		if m.Shared {
			p.noteAlias(m.Start, m.End)
		}
		part := min(m.End, end)
		if failed = p.populate(at, part, write); failed != nil {
			return false
		}
		f(at, uint64(part-at), m.Shift)
		at = part
		return at < end
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("%w: %w", unix.EFAULT, err)
	case at < end:
		return fmt.Errorf("memory of process %d at %#x: %w", p.pid, uint64(at), unix.EFAULT)
	}
	return nil
}

// populate makes [at, end), of one mapping, present. Pages of a mapping that cannot be present, as
// those behind the end of a file, are EFAULT.
func (p *Process) populate(at, end mem.VA, write bool) error {
	if write {
		for a := at; a < end; a += writeChunk {
			p.faultForWriting(a, min(writeChunk, int(end-a)))
		}
	}
	if p.touched == nil {
		p.touched = make([]byte, touchChunk)
	}
	for ; at < end; at += touchChunk {
		if err := p.ReadAt(at, p.touched[:min(touchChunk, end-at)]); err != nil {
			return err
		}
	}
	return nil
}

// faultForWriting has the kernel make pages present and writable, as a store does, and change
// nothing: it looks for the pages before it finds that what is to be copied there cannot be read
// (EFAULT in either case).
func (p *Process) faultForWriting(at mem.VA, n int) {
	from := unreadable()
	if from == nil || p.gone {
		return
	}
	p.local[0] = unix.Iovec{Base: (*byte)(from), Len: uint64(n)}
	p.remote[0] = unix.RemoteIovec{Base: uintptr(at), Len: n}
	_, e := p.call(unix.SYS_PROCESS_VM_WRITEV, p.local[:1], p.remote[:1])
	if e == unix.ESRCH && p.nextThread() {
		_, _ = p.call(unix.SYS_PROCESS_VM_WRITEV, p.local[:1], p.remote[:1])
	}
	p.local[0].Base = nil
}

// unreadable are writeChunk bytes of addresses that nothing can read; nil when there is no room for
// them.
var unreadable = sync.OnceValue(func() unsafe.Pointer {
	at, err := unix.MmapPtr(-1, 0, nil, writeChunk, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return at
})

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent   = 1 << 63
	pageExclusive = 1 << 56 // nobody else maps it
)

// Resident implements mem.PageTables. Of a private mapping a page that others map too, or that is
// of a file, is one that a store copies.
func (p *Process) Resident(va mem.VA, n uint64, f func(at mem.VA, writable bool, shift uint8)) {
	tables, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", p.tid))
	if err != nil {
		return
	}
	defer tables.Close()
	end := va + mem.VA(n)
	_ = p.MappingsFrom(va, func(m *Mapping) bool {
		from, to := max(va, m.Start), min(end, m.End)
		if from < to && m.Rights&mem.Read != 0 {
			if m.Shared {
				p.noteAlias(m.Start, m.End)
			}
			residentOf(tables, from, to, func(at mem.VA, entry uint64) {
				const ofFile = 1 << 61 // or shared memory
				own := entry&pageExclusive != 0 && entry&ofFile == 0
				f(at, m.Rights&mem.Write != 0 && (m.Shared || own), m.Shift)
			})
		}
		return m.End < end
	})
}

// residentOf reads the entries of [at, end), of one mapping, and gives those of present pages to f.
func residentOf(tables *os.File, at, end mem.VA, f func(at mem.VA, entry uint64)) {
	const size = uapi.PagemapEntrySize
	var b [mapChunk * size]byte
	for at < end {
		n := min(mapChunk, int((end-at)/mem.PageSize))
		got, err := tables.ReadAt(b[:n*size], int64(at/mem.PageSize)*size)
		for i := range got / size {
			if e := uapi.PagemapEntry(b[:], i); e&pagePresent != 0 {
				f(at+mem.VA(i)*mem.PageSize, e)
			}
		}
		if err != nil || n == 0 {
			return
		}
		at += mem.VA(n) * mem.PageSize
	}
}

// Watch implements mem.PageTables.
func (m *Memory) Watch(on bool) {
	if on {
		m.S.watched.Add(1)
	} else {
		m.S.watched.Add(-1)
	}
}

// Watched reports whether changes of any process's mappings have to be told. Any thread may ask.
func (s *Streams) Watched() bool { return s.watched.Load() > 0 }
