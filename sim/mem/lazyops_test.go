package mem

import (
	"slices"
	"syscall"

	"pgregory.net/rapid"
)

// The operations of lazyRun that change mappings.

// wantHoles checks the errno of a call that a hole makes fail with ENOMEM.
func (r *lazyRun) wantHoles(what string, err error, hole bool) {
	if hole {
		r.want(what, err, syscall.ENOMEM)
	} else if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

func (r *lazyRun) unmap(p *modelProc) {
	va, n := r.place()
	if err := p.s.Unmap(va, uint64(n)*PageSize); err != nil {
		r.Fatalf("unmap: %v", err)
	}
	for i := range n {
		delete(p.pages, va+VA(i)*PageSize)
	}
}

func (r *lazyRun) protect(p *modelProc) {
	va, n := r.place()
	prot := rapid.SampledFrom([]Prot{Read | Write, Read, 0}).Draw(r.T, "prot")
	r.wantHoles("protect", p.s.Protect(va, uint64(n)*PageSize, prot), p.hole(va, n))
	for i := range n {
		x := p.pages[va+VA(i)*PageSize]
		if x == nil {
			return
		}
		x.prot = prot
	}
}

func (r *lazyRun) discard(p *modelProc) {
	va, n := r.place()
	r.wantHoles("discard", p.s.Discard(va, uint64(n)*PageSize), p.hole(va, n))
	for i := range n {
		if x := p.pages[va+VA(i)*PageSize]; x != nil {
			x.own = nil
		}
	}
}

func (r *lazyRun) pageOut(p *modelProc) {
	va, n := r.place()
	r.wantHoles("page out", p.s.PageOut(va, uint64(n)*PageSize), p.hole(va, n))
	if got, err := p.s.Resident(va, uint64(n)*PageSize); !p.hole(va, n) && (err != nil || len(got) != n) {
		r.Fatalf("residency: %v, %v", got, err)
	}
}

func (r *lazyRun) populate(p *modelProc) {
	va, _ := r.place()
	write := rapid.Bool().Draw(r.T, "write")
	prot, want, x := Read, syscall.Errno(0), p.pages[va]
	if write {
		prot = Write
	}
	switch {
	case x == nil:
		want = syscall.ENOMEM
	case x.prot&prot == 0:
		want = syscall.EINVAL
	case x.behind():
		want = syscall.EFAULT
	}
	if r.want("populate", p.s.Populate(va, PageSize, write), want) && write {
		x.mine()
	}
}

func (r *lazyRun) move(p *modelProc) {
	va, n := r.place()
	to := VA(0)
	if rapid.Bool().Draw(r.T, "fixed") {
		to, _ = r.place()
	}
	size := VA(n) * PageSize
	at, err := p.s.Move(va, uint64(size), to)
	switch {
	case to != 0 && to < va+size && va < to+size:
		r.want("move onto itself", err, syscall.EINVAL)
		return
	case p.hole(va, n):
		r.want("move a hole", err, syscall.EFAULT)
		return
	case err != nil: // the pages are not of one mapping, which the model does not know
		r.want("move", err, syscall.EFAULT)
		return
	}
	for i := range VA(n) {
		x := p.pages[va+i*PageSize]
		delete(p.pages, va+i*PageSize)
		p.pages[at+i*PageSize] = x
	}
	r.top = max(r.top, at+size)
}

func (r *lazyRun) fork(p *modelProc) {
	if len(r.model.procs) == 4 {
		return
	}
	child, err := p.s.Fork()
	if r.want("fork", err, 0) {
		r.model.procs = append(r.model.procs, p.fork(child))
	}
}

func (r *lazyRun) exit(p *modelProc) {
	if len(r.model.procs) == 1 {
		return
	}
	r.release(p)
	r.model.procs = slices.DeleteFunc(r.model.procs, func(q *modelProc) bool { return p == q })
}

func (r *lazyRun) release(p *modelProc) {
	p.s.Release()
	if len(p.entries) > 0 {
		r.Fatalf("the device keeps %d pages of a process that has ended", len(p.entries))
	}
	for _, pin := range p.pins {
		p.s.Unpin(pin.pa)
	}
	if p.s.Pinned != 0 || p.s.RSS() != 0 {
		r.Fatalf("%d pages are pinned in the end, %d bytes resident", p.s.Pinned, p.s.RSS())
	}
}

func (r *lazyRun) truncate(*modelProc) {
	o := rapid.SampledFrom(r.model.objects).Draw(r.T, "object")
	size := uint64(rapid.IntRange(0, 6*PageSize).Draw(r.T, "size"))
	if size%PageSize == PageSize-1 {
		size++
	}
	if r.want("truncate", o.o.Truncate(size), 0) || size == o.o.Size() {
		o.truncate(size, r.model.procs)
	}
}

func (r *lazyRun) pwrite(*modelProc) {
	o := rapid.SampledFrom(r.model.objects).Draw(r.T, "object")
	if o.size == 0 {
		return
	}
	i, b := uint64(rapid.IntRange(0, int(o.size-1)/PageSize).Draw(r.T, "page")), rapid.Byte().Draw(r.T, "byte")
	_, err := o.o.WriteAt([]byte{b}, int64(i*PageSize))
	if r.want("pwrite", err, 0) {
		o.cell(i).b[0] = b
	}
}

func (r *lazyRun) pin(p *modelProc) {
	va, n := r.place()
	prot := rapid.SampledFrom([]Prot{Read, Read | Write}).Draw(r.T, "prot")
	want := syscall.Errno(0)
	for i := range n {
		if e := p.access(va+VA(i)*PageSize, prot); e != 0 {
			want = e
		}
	}
	pa, err := p.s.Pin(va, uint64(n)*PageSize, prot)
	if !r.want("pin", err, want) {
		p.learn(va, n)
		return
	}
	pin := modelLazyPin{pa: pa}
	for i := range n {
		pin.c = append(pin.c, p.pages[va+VA(i)*PageSize].mine())
	}
	p.pins = append(p.pins, pin)
}

func (r *lazyRun) pinnedWrite(p *modelProc) {
	if len(p.pins) > 0 {
		pin := rapid.SampledFrom(p.pins).Draw(r.T, "pin")
		b := rapid.Byte().Draw(r.T, "byte")
		r.m.DMAStore(pin.pa[0], []byte{b})
		pin.c[0].b[0] = b
	}
}

func (r *lazyRun) unpin(p *modelProc) {
	if n := len(p.pins); n > 0 {
		p.s.Unpin(p.pins[n-1].pa)
		p.pins = p.pins[:n-1]
	}
}

// end releases everything and counts.
func (r *lazyRun) end() {
	for _, p := range r.model.procs {
		r.release(p)
	}
	for _, o := range r.model.objects {
		o.o.Close()
	}
	if r.m.Used() != 0 || r.m.Resident() != 0 || r.m.Swapped() != 0 || len(r.m.lazy.frames) != 0 || r.m.lazy.newest != nil || len(r.m.free) != 1 {
		r.Fatalf("left: %d bytes used, %d resident, %d in swap, %d frames", r.m.Used(), r.m.Resident(), r.m.Swapped(), len(r.m.lazy.frames))
	}
}
