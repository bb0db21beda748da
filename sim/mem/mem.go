// Package mem is the memory of a simulated host: physical memory in chunks, and
// the page tables of processes. It has no opinion on time or on RDMA.
//
// Physical memory is a table of chunks. An allocation has Go memory behind it from its first write
// on, so that a host of 64 GiB costs what its programs touch; one of up to MaxWindow bytes has one
// piece of it: a ring or a buffer can be held as one slice (Window). Each physical page has a
// reference count: one for its allocation or mapping, one for each pin; it is free when the last is
// gone.
package mem

import (
	"cmp"
	"fmt"
	"math/bits"
	"syscall"
)

// PA is a physical (bus) address of a host.
type PA uint64

// VA is a virtual address of a process.
type VA uint64

// PageShift and PageSize are those of a 4 KiB host, the default. Config.PageSize
// makes a 64 KiB one; code that must work on both asks Memory.PageSize.
const (
	PageShift = 12
	PageSize  = 1 << PageShift
)

const (
	chunkShift = 21
	chunkSize  = 1 << chunkShift
	chunkMask  = chunkSize - 1

	// MaxWindow is the largest allocation that is one Window.
	MaxWindow = 16 << 20

	// firstPA keeps the first megabyte unused, so that no object has address 0.
	firstPA = 1 << 20
)

// Config of a memory. Size and PageSize in bytes; a PageSize of 0 is 4 KiB.
type Config struct {
	Size     uint64
	PageSize uint64
}

// Memory is the physical memory of one host.
type Memory struct {
	size       uint64
	shift      uint // of a page
	chunks     []chunk
	free       []extent // by address, never adjacent
	used       uint64   // pages
	everBacked uint64   // bytes that have got Go memory since New
	w          watches
	late       Late               // the link that holds back writes; may be nil
	unobserved [64]unobservedPage // by the number of the page
	// heldBack is how many writes it holds back.
	heldBack int
	// foreign are the address spaces of processes outside, by slot; nil when free.
	foreign []*foreign
	// ranges are the memory of a virtual machine, beside or in place of the simulated one.
	ranges ranges
	// lazy are the pages of lazy mappings; nil while there never was one.
	lazy *paging
	// banks are the memory of other devices of the host, by address.
	banks []*Bank
}

// chunk is 2 MiB of physical memory.
type chunk struct {
	refs []int32 // for each page; nil while all are free
	// backings are what holds the bytes of each page, or the one that holds those of all.
	backings []*backing
	watch    []*watchNode // first of each page's list; nil while there is none
	// window says which pages are seen through a Window; nil while none is.
	window []bool
}

// extent is a run of free pages.
type extent struct{ start, n uint64 }

// New makes a host memory of size bytes and 4 KiB pages. Nothing is allocated
// until it is used.
func New(size uint64) *Memory { return NewConfig(Config{Size: size}) }

// NewConfig makes a host memory. It panics when the page size is not a power of
// two between 4 KiB and 2 MiB: profiles are checked where they are read.
func NewConfig(c Config) *Memory {
	c.PageSize = cmp.Or(c.PageSize, PageSize)
	if bits.OnesCount64(c.PageSize) != 1 || c.PageSize < PageSize || c.PageSize > chunkSize {
		panic(fmt.Sprintf("mem: page size %d", c.PageSize))
	}
	m := &Memory{size: c.Size &^ (c.PageSize - 1), shift: uint(bits.TrailingZeros64(c.PageSize))}
	if first := max(uint64(firstPA), c.PageSize); m.size > first {
		m.free = append(m.free, extent{first >> m.shift, (m.size - first) >> m.shift})
	}
	return m
}

// PageSize is the size of a page in bytes.
func (m *Memory) PageSize() uint64 { return 1 << m.shift }

// Size is the size of the memory in bytes.
func (m *Memory) Size() uint64 { return m.size }

// Backed returns for how many bytes there has been Go memory since New, in bytes. Pages that were
// freed and allocated again count twice: it is a bound of what the memory costs at any time.
func (m *Memory) Backed() uint64 { return m.everBacked }

// Used is how many bytes are allocated, in whole pages.
func (m *Memory) Used() uint64 { return m.used << m.shift }

// chunkAt returns the chunk of pa when it is inside what was ever allocated.
func (m *Memory) chunkAt(pa PA) *chunk {
	i := uint64(pa) >> chunkShift
	if i >= uint64(len(m.chunks)) {
		return nil
	}
	return &m.chunks[i]
}

// pageOf is the place of the one allocated page that holds the n bytes at pa; nil: there is none.
func (m *Memory) pageOf(pa PA, n int) (*chunk, uint64) {
	pg, k := uint64(pa)>>m.shift, uint64(pa)>>chunkShift
	if (uint64(pa)+uint64(n)-1)>>m.shift == pg && k < uint64(len(m.chunks)) {
		c, i := &m.chunks[k], m.index(pg)
		if i < uint64(len(c.refs)) && c.refs[i] != 0 {
			return c, i
		}
	}
	return nil, 0
}

// present reports whether every page of [pa, pa+n) is allocated.
func (m *Memory) present(pa PA, n uint64) bool {
	if n == 0 {
		return true
	}
	last := uint64(pa) + n - 1
	if last < uint64(pa) || last>>chunkShift >= uint64(len(m.chunks)) {
		return false
	}
	for pg := uint64(pa) >> m.shift; pg <= last>>m.shift; pg++ {
		if c := &m.chunks[pg<<m.shift>>chunkShift]; c.refs == nil || c.refs[m.index(pg)] == 0 {
			return false
		}
	}
	return true
}

// index is the place of page pg in its chunk.
func (m *Memory) index(pg uint64) uint64 { return pg & (chunkMask >> m.shift) }

// page is the place of the page around pa in its chunk.
func (m *Memory) page(pa PA) uint64 { return m.index(uint64(pa) >> m.shift) }

// left is how many bytes there are from pa to the end of its page.
func (m *Memory) left(pa PA) int { return 1<<m.shift - int(pa)&(1<<m.shift-1) }

// Window is the bytes at pa, n long, as a slice into the memory itself, or nil when the
// range is not part of one allocation of at most MaxWindow bytes. (A larger one has windows
// too, in which no 2 MiB boundary lies.) A window stays valid while its pages are allocated.
func (m *Memory) Window(pa PA, n int) []byte {
	if n < 0 || !m.present(pa, max(uint64(n), 1)) {
		return nil
	}
	x := m.chunkAt(pa).backing(m.page(pa))
	if !m.holds(x, pa, n) {
		return nil
	}
	m.expose(pa, n)
	off := int(pa - x.start)
	return x.bytes()[off : off+n : off+n]
}

// Read copies bytes out. It reports false, and p is then untouched, when part of
// the range is not allocated. Pinned foreign pages (NewForeignSpace) are read from
// their process, and foreign ranges (MapForeign) from where they are; after a failure
// there p may hold a part.
func (m *Memory) Read(pa PA, p []byte) bool {
	m.settle()
	if c, i := m.pageOf(pa, len(p)); c != nil { // as nearly always
		c.backing(i).read(pa, p)
		return true
	}
	if !m.present(pa, uint64(len(p))) {
		return m.readForeign(pa, p)
	}
	for len(p) > 0 {
		n := min(len(p), m.left(pa))
		m.chunkAt(pa).backing(m.page(pa)).read(pa, p[:n])
		p, pa = p[n:], pa+PA(n)
	}
	return true
}

// Write copies bytes in. It reports false, and nothing is written, when part of
// the range is not allocated. It wakes no watcher: it is what a core does. Pinned
// foreign pages are written in their process; a failure there may leave a part.
func (m *Memory) Write(pa PA, p []byte) bool {
	m.settle()
	return m.write(pa, p)
}

func (m *Memory) write(pa PA, p []byte) bool {
	if !m.present(pa, uint64(len(p))) {
		return m.writeForeign(pa, p)
	}
	for len(p) > 0 {
		n, x := min(len(p), m.left(pa)), m.chunkAt(pa).backing(m.page(pa))
		copy(x.bytes()[pa-x.start:], p[:n])
		p, pa = p[n:], pa+PA(n)
	}
	return true
}

// errorf wraps an errno with what was tried.
func errorf(errno syscall.Errno, format string, a ...any) error {
	return fmt.Errorf("mem: "+format+": %w", append(a, errno)...)
}
