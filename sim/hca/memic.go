package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// memory is what the device has on its chip for programs (MEMIC). Programs see it in the
// last pages of BAR 0; the device reaches it without the bus, as physical addresses from
// onChip on.
type memory struct {
	start uint64   // of the pages in BAR 0
	pages [][]byte // what lies behind each; nil: nothing is allocated there
	sizes []uint32 // of the allocation that begins with a page
	used  int      // bytes
	ops   memicOps
	icm   icm // for flow steering by programs, from icmOffset on
}

// memicOps are the addresses of operations on the memory: before its pages BAR 0 has as many for
// each operation.
type memicOps struct {
	start uint64 // of the first operation's pages; memory.start where the device has no operations
	on    [prm.MemicOps][]bool
}

// onChip marks addresses of memory on the device, which are not on the bus.
const onChip = pcie.OwnBAR0

// memicUnit is what allocations are multiples of (MLX5_MEMIC_BASE_SIZE).
const memicUnit = 64

func newMemory(p *Params) memory {
	n := (p.MemicSize + pageBytes - 1) / pageBytes
	m := memory{start: uint64(p.BARSize - n*pageBytes), pages: make([][]byte, n), sizes: make([]uint32, n), icm: newICM(p)}
	if m.ops.start = m.start; p.MemicOps {
		m.ops.start -= uint64(prm.MemicOps * n * pageBytes)
		for i := range m.ops.on {
			m.ops.on[i] = make([]bool, n)
		}
	}
	return m
}

// page is the number of the page at a place in BAR 0, and whether memory can be seen there.
func (m *memory) page(off uint64) (int, bool) {
	i := (off - m.start) / pageBytes
	return int(i), off >= m.start && i < uint64(len(m.pages))
}

// holds reports whether [off, off+n) of BAR 0 lies in one allocation.
func (m *memory) holds(off, n uint64) bool {
	first, ok := m.page(off)
	for ok && first > 0 && m.sizes[first] == 0 {
		first--
	}
	if !ok {
		return false
	}
	at := off - m.start - uint64(first)*pageBytes
	size := uint64(m.sizes[first])
	return at <= size && n <= size-at
}

// each calls f with the pieces of [off, off+n) of BAR 0 that are allocated.
func (m *memory) each(off uint64, n int, f func(at int, b []byte)) {
	for at := 0; at < n; {
		i, ok := m.page(off + uint64(at))
		in := int((off + uint64(at)) % pageBytes)
		l := min(n-at, pageBytes-in)
		if ok && m.pages[i] != nil {
			m.use(i, func() { f(at, m.pages[i][in:in+l]) })
		}
		at += l
	}
}

// use calls access, which reads or writes page i. Bytes that BackMemory put there may be gone (the
// kernel takes a page away whose memory is broken): where that is a panic (debug.SetPanicOnFault),
// the device goes on with an empty page.
func (m *memory) use(i int, access func()) (ok bool) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
		m.pages[i] = make([]byte, pageBytes)
	}()
	access()
	return true
}

// read fills p; what is not allocated reads as zeros.
func (m *memory) read(off uint64, p []byte) {
	if off >= icmOffset {
		m.icm.read(off-icmOffset, p)
		return
	}
	clear(p)
	m.each(off, len(p), func(at int, b []byte) { copy(p[at:], b) })
}

// write stores p; what is not allocated takes nothing.
func (m *memory) write(off uint64, p []byte) {
	if off >= icmOffset {
		m.icm.write(off-icmOffset, p)
		return
	}
	m.each(off, len(p), func(at int, b []byte) { copy(b, p[at:]) })
}
