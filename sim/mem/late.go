package mem

// Late is a link that holds back DMA writes for which no event waits: they become visible
// without an event each, when the bytes are next read. Every reader sees what it would
// have seen otherwise: each read calls Settle first, and Hurry is called before a page is
// observed in another way (Watch, Window) or changes its owner.
type Late interface {
	// Settle makes visible the writes whose place in the order of the run has passed.
	Settle()
	// Hurry gives every write that is still under way an event of its own.
	Hurry()
}

// SetLate names the one link that holds back writes to this memory; nil ends it.
func (m *Memory) SetLate(l Late) { m.late = l }

// HeldBack adds n to the number of writes that the link holds back.
func (m *Memory) HeldBack(n int) { m.heldBack += n }

// Unobserved is the bytes at pa when they lie in one allocated page and are seen only
// through calls of Memory and Space, so that a write to them may be held back; else nil.
// They are valid until Hurry.
func (m *Memory) Unobserved(pa PA, n int) []byte {
	pg, at := uint64(pa)>>m.shift, uint64(pa)&(1<<m.shift-1)
	if s := &m.unobserved[pg%uint64(len(m.unobserved))]; s.page == pg+1 && uint64(n-1) < uint64(len(s.bytes))-at {
		return s.bytes[at : at+uint64(n)]
	}
	return m.lookUp(pa, n)
}

// unobservedPage is a page that Unobserved has found; forceLate forgets it.
type unobservedPage struct {
	page  uint64 // its number + 1
	bytes []byte
}

// lookUp is Unobserved of what it has not found of late.
//
//go:noinline
func (m *Memory) lookUp(pa PA, n int) []byte {
	c, i := m.pageOf(pa, n)
	if n == 0 || c == nil || i < uint64(len(c.watch)) && c.watch[i] != nil || i < uint64(len(c.window)) && c.window[i] {
		return nil
	}
	x, pg := c.backing(i), uint64(pa)>>m.shift
	start := int(PA(pg<<m.shift) - x.start)
	bytes := x.bytes()[start : start+1<<m.shift]
	m.unobserved[pg%uint64(len(m.unobserved))] = unobservedPage{pg + 1, bytes}
	at := uint64(pa) & (1<<m.shift - 1)
	return bytes[at : at+uint64(n)]
}

// settle is called before any look at bytes, and before anything but the link changes bytes.
func (m *Memory) settle() {
	if m.heldBack > 0 {
		m.late.Settle()
	}
}

// forceLate applies the writes that were held back, before the pages of [pa, pa+n) are observed in
// another way or change their owner.
func (m *Memory) forceLate(pa PA, n int) {
	for pg := uint64(pa) >> m.shift; pg <= (uint64(pa)+uint64(n)-1)>>m.shift; pg++ {
		if s := &m.unobserved[pg%uint64(len(m.unobserved))]; s.page == pg+1 {
			*s = unobservedPage{}
		}
	}
	if m.heldBack > 0 {
		m.late.Settle()
		m.late.Hurry()
	}
}

// expose marks the pages of a window for as long as they are allocated.
func (m *Memory) expose(pa PA, n int) {
	if n == 0 {
		return
	}
	m.forceLate(pa, n)
	for pg := uint64(pa) >> m.shift; pg <= (uint64(pa)+uint64(n)-1)>>m.shift; pg++ {
		c := &m.chunks[pg<<m.shift>>chunkShift]
		if c.window == nil {
			c.window = make([]bool, chunkSize>>m.shift)
		}
		c.window[m.index(pg)] = true
	}
}
