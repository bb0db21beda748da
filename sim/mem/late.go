package mem

// Late is a link that holds back DMA writes for which nobody waits: they become visible
// without an event each, when somebody looks. What anybody can see is the same, since
// every look at the bytes settles first, and a page that is seen otherwise (Watch,
// Window) or that changes hands has its writes hurried.
type Late interface {
	// Settle makes the writes that are due visible.
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
// They are good until Hurry.
func (m *Memory) Unobserved(pa PA, n int) []byte {
	pg := uint64(pa) >> m.shift
	if n == 0 || (uint64(pa)+uint64(n)-1)>>m.shift != pg {
		return nil
	}
	c := m.chunkAt(pa)
	if c == nil || c.refs == nil {
		return nil
	}
	i := m.index(pg)
	if c.refs[i] == 0 || c.watch != nil && c.watch[i] != 0 || c.window != nil && c.window[i] {
		return nil
	}
	at := int(pa & chunkMask)
	return m.back(c)[at : at+n]
}

// settle is called before any look at bytes, and before bytes change by another hand.
func (m *Memory) settle() {
	if m.heldBack > 0 {
		m.late.Settle()
	}
}

// hurry is called before somebody sees pages in another way, or they change hands.
func (m *Memory) hurry() {
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
	m.hurry()
	for pg := uint64(pa) >> m.shift; pg <= (uint64(pa)+uint64(n)-1)>>m.shift; pg++ {
		c := &m.chunks[pg<<m.shift>>chunkShift]
		if c.window == nil {
			c.window = make([]bool, chunkSize>>m.shift)
		}
		c.window[m.index(pg)] = true
	}
}
