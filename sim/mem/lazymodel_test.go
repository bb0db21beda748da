package mem

import "syscall"

// lazyModel is what programs of a host see of their memory: no page tables, no copy-on-write, no
// swap.
type lazyModel struct {
	objects []*modelObject
	procs   []*modelProc
}

// cell is a page: its first and its last byte.
type cell struct{ b [2]byte }

// modelObject is a file or shared memory.
type modelObject struct {
	o     *Object
	size  uint64
	cells map[uint64]*cell
}

func (o *modelObject) cell(i uint64) *cell {
	if o.cells[i] == nil {
		o.cells[i] = new(cell)
	}
	return o.cells[i]
}

func (o *modelObject) truncate(size uint64, procs []*modelProc) {
	first := (size + PageSize - 1) / PageSize
	for i := range o.cells {
		if i >= first {
			delete(o.cells, i)
		}
	}
	if size < o.size && size%PageSize != 0 {
		if c := o.cells[size/PageSize]; c != nil {
			c.b[1] = 0
		}
	}
	for _, p := range procs {
		for _, x := range p.pages {
			if x.o == o && x.index >= first && size < o.size {
				x.own = nil
			}
		}
	}
	o.size = size
}

// lazyPage is a page of a mapping.
type lazyPage struct {
	prot    Prot
	area    int // pages of one mapping have the same
	own     *cell
	o       *modelObject
	index   uint64
	private bool
}

// behind reports whether the page lies behind the end of its object.
func (x *lazyPage) behind() bool { return x.o != nil && x.index*PageSize >= x.o.size }

// see is the page as it is read.
func (x *lazyPage) see() *cell {
	switch {
	case x.own != nil:
		return x.own
	case x.o != nil:
		return x.o.cell(x.index)
	}
	return new(cell)
}

// mine is the page as it is written, or pinned.
func (x *lazyPage) mine() *cell {
	if x.private && x.own == nil {
		c := *x.see()
		x.own = &c
	}
	return x.see()
}

// modelProc is a process, and a device that has translations of its pages until it is told that
// they change.
type modelProc struct {
	s       *Space
	pages   map[VA]*lazyPage
	entries map[VA]Frame
	pins    []modelLazyPin
}

type modelLazyPin struct {
	pa []PA
	c  []*cell
}

func newModelProc(s *Space) *modelProc {
	p := &modelProc{s: s, pages: map[VA]*lazyPage{}, entries: map[VA]Frame{}}
	s.Notify(0, 1<<47, func(va VA, n uint64) {
		for at := range p.entries {
			if at+PageSize > va && at < va+VA(n) {
				delete(p.entries, at)
			}
		}
	})
	return p
}

// access is the errno of a read, a write or a pin of a page.
func (p *modelProc) access(va VA, prot Prot) syscall.Errno {
	x := p.pages[va]
	if x == nil || x.prot&prot != prot || x.behind() {
		return syscall.EFAULT
	}
	return 0
}

// hole reports whether a page of [va, va+n pages) is not mapped.
func (p *modelProc) hole(va VA, n int) bool {
	for i := range n {
		if p.pages[va+VA(i)*PageSize] == nil {
			return true
		}
	}
	return false
}

// fork is the child's memory.
func (p *modelProc) fork(child *Space) *modelProc {
	c := newModelProc(child)
	for va, x := range p.pages {
		y := *x
		if x.own != nil {
			own := *x.own
			y.own = &own
		}
		c.pages[va] = &y
	}
	return c
}

// learn takes over which pages of a range a call that failed has copied before.
func (p *modelProc) learn(va VA, n int) {
	for i := range VA(n) {
		at := va + i*PageSize
		if x := p.pages[at]; x != nil && x.private {
			if e := p.s.lazy.pt.get(uint64(at) >> PageShift); e.swapped() || e.present() && p.s.m.isOwn(p.s.m.frameOf(e)) {
				x.mine()
			}
		}
	}
}
