package mem

// backing holds the bytes of an allocation, or of the part of it in one chunk when it is
// larger than MaxWindow.
type backing struct {
	m     *Memory
	start PA
	n     int
	b     []byte // nil until the first write or window
	fill  []byte // what the bytes are while b is nil, over and over; nil: zeroes
}

// bytes are those at start and after, for whoever may write to them.
func (x *backing) bytes() []byte {
	if x.b == nil {
		x.materialise()
	}
	return x.b
}

// largeBacking is the size from which a backing asks for small pages.
const largeBacking = 256 << 10

func (x *backing) materialise() {
	x.b = make([]byte, x.n)
	if x.n >= largeBacking {
		sparse(x.b)
	}
	x.m.everBacked += uint64(x.n)
	if x.fill != nil {
		repeat(x.b, x.fill)
		x.fill = nil
	}
}

// read copies out the bytes from pa on.
func (x *backing) read(pa PA, p []byte) {
	off := int(pa - x.start)
	switch {
	case x.b != nil:
		copy(p, x.b[off:])
	case x.fill == nil:
		clear(p)
	default:
		at := off % len(x.fill)
		n := copy(p, x.fill[at:])
		n += copy(p[n:], x.fill[:at])
		again(p, n)
	}
}

// repeat fills b with a pattern.
func repeat(b, pattern []byte) { again(b, copy(b, pattern)) }

// again fills b with its first n bytes, over and over.
func again(b []byte, n int) {
	for ; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// backing is what holds page i of the chunk, which is allocated.
func (c *chunk) backing(i uint64) *backing { return c.backings[i&uint64(len(c.backings)-1)] }

// holds reports whether a backing has the n bytes from pa on, one of whose pages is its own. Pages
// that were freed and given out again have another.
func (m *Memory) holds(x *backing, pa PA, n int) bool {
	if int(pa-x.start)+n > x.n {
		return false
	}
	for last := pa + PA(n); pa < last; pa += PA(m.left(pa)) {
		if m.chunkAt(pa).backing(m.page(pa)) != x {
			return false
		}
	}
	return true
}

// support puts a backing behind its pages.
func (m *Memory) support(x *backing) {
	for pa, end := x.start, x.start+PA(x.n); pa < end; {
		c, next := m.chunkAt(pa), min(end, pa&^chunkMask+chunkSize)
		if next-pa == chunkSize {
			c.backings = []*backing{x}
		} else {
			c.split(chunkSize >> m.shift)
			for pg := m.page(pa); pg <= m.page(next-1); pg++ {
				c.backings[pg] = x
			}
		}
		pa = next
	}
}

// split gives each of the n pages of a chunk an entry of its own.
func (c *chunk) split(n int) {
	if len(c.backings) == n {
		return
	}
	all := make([]*backing, n)
	if len(c.backings) == 1 {
		for i := range all {
			all[i] = c.backings[0]
		}
	}
	c.backings = all
}
