package mem

import "syscall"

// Bank is memory of another device of the host, such as a GPU's, where the bus sees it: at
// addresses behind the host's own. Its pages are read, written and watched as all others are; no
// process gets them by mapping memory.
type Bank struct {
	m        *Memory
	start, n uint64 // pages
	free     []extent
	used     uint64
}

// bankAlign is what a bank's address is a multiple of, in bytes.
const bankAlign = 1 << 30

// AddBank adds a bank of size bytes, in whole pages. EINVAL: there is nothing, or more than there
// are addresses.
func (m *Memory) AddBank(size uint64) (*Bank, error) {
	base := m.size
	if k := len(m.banks); k > 0 {
		base = (m.banks[k-1].start + m.banks[k-1].n) << m.shift
	}
	base = alignUp(base, bankAlign)
	n := size >> m.shift
	if n == 0 || size > uint64(foreignPA)-base {
		return nil, errorf(syscall.EINVAL, "a bank of %d B at %#x", size, base)
	}
	b := &Bank{m: m, start: base >> m.shift, n: n, free: []extent{{base >> m.shift, n}}}
	m.banks = append(m.banks, b)
	return b, nil
}

// bankOf is the bank in which a page lies; nil: it is the host's own.
func (m *Memory) bankOf(pg uint64) *Bank {
	for _, b := range m.banks {
		if pg >= b.start && pg < b.start+b.n {
			return b
		}
	}
	return nil
}

// Range is where the bank lies, and its size in bytes.
func (b *Bank) Range() (PA, uint64) { return PA(b.start << b.m.shift), b.n << b.m.shift }

// Used is how many bytes are allocated.
func (b *Bank) Used() uint64 { return b.used << b.m.shift }

// Alloc takes n contiguous bytes, in whole pages, aligned to align (a power of two), zeroed.
// Memory.Free gives them back. ENOMEM; EINVAL for n of 0.
func (b *Bank) Alloc(n, align uint64) (PA, error) {
	pages := b.m.pages(n)
	if pages == 0 || align&(align-1) != 0 {
		return 0, errorf(syscall.EINVAL, "allocate %d B aligned to %d of a bank", n, align)
	}
	start, ok := b.m.takeFrom(&b.free, pages, max(align>>b.m.shift, 1))
	if !ok {
		return 0, errorf(syscall.ENOMEM, "allocate %d B of a bank of %d B, of which %d are in use", n, b.n<<b.m.shift, b.Used())
	}
	b.used += pages
	return PA(start << b.m.shift), nil
}
