package mem

// frame is physical memory of lazy mappings: a page, or a huge page. It has one reference on each
// of its pages; those beyond are pins.
type frame struct {
	pg, n uint64 // first page, and how many
	// maps are the page-table entries that name it. Of the page of zeroes they are only counted.
	maps  []mapRef
	one   [1]mapRef // room for the first
	zeros int
	// obj is the object whose page index it holds, or nil.
	obj   *Object
	index uint64
	// The frames that can be reclaimed, by last use.
	newer, older *frame
	listed       bool
}

// mapRef is a page-table entry: a space and the address of a page.
type mapRef struct {
	s  *Space
	va VA
}

// PagingStats count what happened to the lazily mapped memory of a host.
type PagingStats struct {
	Reclaimed   uint64 // pages taken for want of memory, or because a program asked (MADV_PAGEOUT)
	SwappedOut  uint64 // pages written to swap
	SwappedIn   uint64 // and read from it
	WrittenBack uint64 // pages of files that were reclaimed
}

// paging is the state of a memory's lazily mapped pages.
type paging struct {
	frames         map[uint64]*frame // by first page; never walked
	newest, oldest *frame
	resident       uint64 // pages
	limit          uint64 // of resident; 0: the physical memory
	zero           *frame // the page of zeroes, while it is mapped
	swap           swap
	stats          PagingStats
}

// needPaging is called before the first lazy mapping.
func (m *Memory) needPaging() {
	if m.lazy == nil {
		m.lazy = &paging{frames: map[uint64]*frame{}, swap: swap{limit: noLimit}}
	}
}

// Paging counts what happened to lazily mapped memory.
func (m *Memory) Paging() PagingStats {
	if m.lazy == nil {
		return PagingStats{}
	}
	return m.lazy.stats
}

// Resident is how many bytes of physical memory lazy mappings and objects have.
func (m *Memory) Resident() uint64 {
	if m.lazy == nil {
		return 0
	}
	return m.lazy.resident << m.shift
}

// newFrame takes n physical pages, zeroed, for a lazy mapping; others may be reclaimed for it.
func (m *Memory) newFrame(n uint64) (*frame, error) {
	start, err := m.obtain(n)
	if err != nil {
		return nil, err
	}
	f := &frame{pg: start, n: n}
	f.maps = f.one[:0]
	p := m.lazy
	p.frames[start] = f
	p.resident += n
	return f, nil
}

// dropFrame gives back a frame that nothing names. Pinned pages live on until they are unpinned.
func (m *Memory) dropFrame(f *frame) {
	p := m.lazy
	p.unlist(f)
	if f == p.zero {
		p.zero = nil
	} else {
		delete(p.frames, f.pg)
	}
	p.resident -= f.n
	held := m.pinned(f)
	for i := range f.n {
		m.put(f.pg + i)
	}
	if !held { // the bytes of a free page need no Go memory
		x := m.chunkAt(PA(f.pg << m.shift)).backing(m.index(f.pg))
		x.b, x.fill = nil, nil
	}
}

// pinned reports whether somebody else than page tables and objects holds a page.
func (m *Memory) pinned(f *frame) bool {
	for i := range f.n {
		if m.chunks[(f.pg+i)<<m.shift>>chunkShift].refs[m.index(f.pg+i)] > 1 {
			return true
		}
	}
	return false
}

// hold and letGo keep a frame from being reclaimed for the length of an operation.
func (m *Memory) hold(f *frame) {
	if f != nil {
		m.get(f.pg)
	}
}

func (m *Memory) letGo(f *frame) {
	if f != nil {
		m.put(f.pg)
	}
}

// zeroFrame is the page of zeroes that all untouched anonymous pages share.
func (m *Memory) zeroFrame() (*frame, error) {
	p := m.lazy
	if p.zero == nil {
		f, err := m.newFrame(1)
		if err != nil {
			return nil, err
		}
		delete(p.frames, f.pg)
		p.zero = f
	}
	return p.zero, nil
}

// frameOf is the frame that a present entry names.
func (m *Memory) frameOf(e pte) *frame {
	if z := m.lazy.zero; z != nil && z.pg == e.page() {
		return z
	}
	return m.lazy.frames[e.page()]
}

// enter puts a frame behind the page at va of an area, whose entry names none.
func (s *Space) enter(a *area, va VA, f *frame, writable bool) {
	e := pte(f.pg<<pteShift) | ptePresent
	if writable {
		e |= pte(Write)
	}
	s.lazy.pt.set(s.index(a, va), e)
	s.m.addRef(f, mapRef{s, a.unit(va)})
	s.m.lazy.use(f)
}

// leave takes the frame from behind the page at va, whose entry becomes e.
func (s *Space) leave(a *area, va VA, f *frame, e pte) {
	s.lazy.pt.set(s.index(a, va), e)
	s.m.dropRef(f, mapRef{s, a.unit(va)})
}

func (m *Memory) addRef(f *frame, r mapRef) {
	if f == m.lazy.zero {
		f.zeros++
		return
	}
	r.s.lazy.rss += f.n
	f.maps = append(f.maps, r)
}

// dropRef forgets an entry, and the frame with its last one unless it is an object's.
func (m *Memory) dropRef(f *frame, r mapRef) {
	if f == m.lazy.zero {
		f.zeros--
	} else {
		r.s.lazy.rss -= f.n
		for i, x := range f.maps {
			if x == r {
				f.maps[i] = f.maps[len(f.maps)-1]
				f.maps = f.maps[:len(f.maps)-1]
				break
			}
		}
	}
	if len(f.maps) == 0 && f.zeros == 0 && f.obj == nil {
		m.dropFrame(f)
	}
}

// use makes a frame the last one to be reclaimed. Huge pages and the page of zeroes stay.
func (p *paging) use(f *frame) {
	if f.n > 1 || f == p.zero || p.newest == f {
		return
	}
	p.unlist(f)
	f.older, f.newer, f.listed = p.newest, nil, true
	if p.newest != nil {
		p.newest.newer = f
	} else {
		p.oldest = f
	}
	p.newest = f
}

func (p *paging) unlist(f *frame) {
	if !f.listed {
		return
	}
	if f.newer != nil {
		f.newer.older = f.older
	} else {
		p.newest = f.older
	}
	if f.older != nil {
		f.older.newer = f.newer
	} else {
		p.oldest = f.newer
	}
	f.newer, f.older, f.listed = nil, nil, false
}

// content is a copy of a frame's bytes; nil when all are zero. DMA whose place in the order of the
// run has passed is in it.
func (m *Memory) content(f *frame) []byte {
	b := make([]byte, f.n<<m.shift)
	m.Read(PA(f.pg<<m.shift), b)
	if zero(b) {
		return nil
	}
	return b
}

// fillFrame writes what content gave into a new frame.
func (m *Memory) fillFrame(f *frame, b []byte) {
	if b != nil {
		m.Write(PA(f.pg<<m.shift), b)
	}
}
