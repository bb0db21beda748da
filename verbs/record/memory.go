package record

import (
	"github.com/rdmasim/rdmasim/verbs"
)

func (p *process) Map(t verbs.Thread, length uint64, o verbs.MapOptions) (verbs.Buffer, error) {
	o.Object = bare(o.Object)
	b, err := p.Process.Map(innerThread(t), length, o)
	return p.r.buffer(t, "map", list(length), b, err)
}

// Reads and writes of memory are the program's own and are not recorded.
type buffer struct {
	verbs.Buffer
	r *Recorder
}

// buffer records a call that gives memory.
func (r *Recorder) buffer(t verbs.Thread, name string, args []string, b verbs.Buffer, err error) (verbs.Buffer, error) {
	return made(r, t, name, args, err, func() (verbs.Buffer, []string) {
		r.mapped(b.Addr(), b.Len())
		return &buffer{b, r}, []string{r.addr(b.Addr())}
	})
}

func (b *buffer) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return b.Buffer.ReadAt(innerThread(t), p, off)
}

func (b *buffer) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return b.Buffer.WriteAt(innerThread(t), p, off)
}

func (b *buffer) Unmap(t verbs.Thread) error {
	err := b.Buffer.Unmap(innerThread(t))
	return b.r.add(t, "unmap", list(b.r.addr(b.Addr())), err)
}

// Remap passes through where other memory can be put under the inner buffer.
func (b *buffer) Remap(t verbs.Thread) error {
	return on(b.Buffer, "other memory under a buffer of this target", func(x verbs.Remapper) error {
		err := x.Remap(innerThread(t))
		return b.r.add(t, "remap", list(b.r.addr(b.Addr())), err)
	})
}

// paged has f change pages of the inner buffer, where that can be.
func (b *buffer) paged(t verbs.Thread, name string, args []string, f func(verbs.PagedBuffer) error) error {
	return on(b.Buffer, "pages of a buffer of this target", func(x verbs.PagedBuffer) error { return b.r.add(t, name, args, f(x)) })
}

func (b *buffer) part(off, n uint64) []string { return list(b.r.addr(b.Addr()+off), n) }

func (b *buffer) Protect(t verbs.Thread, off, n uint64, prot verbs.Prot) error {
	return b.paged(t, "protect", append(b.part(off, n), mask(prot)), func(x verbs.PagedBuffer) error {
		return x.Protect(innerThread(t), off, n, prot)
	})
}

func (b *buffer) Advise(t verbs.Thread, off, n uint64, advice verbs.Advice) error {
	return b.paged(t, "advise", append(b.part(off, n), list(advice)...), func(x verbs.PagedBuffer) error {
		return x.Advise(innerThread(t), off, n, advice)
	})
}

// Resident is not recorded with what it found, which is the kernel's affair.
func (b *buffer) Resident(t verbs.Thread, off, n uint64) (pages []bool, err error) {
	err = b.paged(t, "resident", b.part(off, n), func(x verbs.PagedBuffer) error {
		pages, err = x.Resident(innerThread(t), off, n)
		return err
	})
	return pages, err
}

func (b *buffer) UnmapPart(t verbs.Thread, off, n uint64) error {
	return b.paged(t, "unmap", b.part(off, n), func(x verbs.PagedBuffer) error {
		return x.UnmapPart(innerThread(t), off, n)
	})
}

func (b *buffer) Move(t verbs.Thread, to uint64) error {
	args := []string{b.r.addr(b.Addr()), "anywhere"}
	if to != 0 {
		args[1] = b.r.addr(to)
	}
	err := b.paged(t, "move", args, func(x verbs.PagedBuffer) error { return x.Move(innerThread(t), to) })
	if err == nil {
		b.r.mapped(b.Addr(), b.Len())
	}
	return err
}

// memObject is an object of the inner testbed. Reads and writes are not recorded.
type memObject struct {
	verbs.MemObject
	r *Recorder
}

func (p *process) newObject(t verbs.Thread, name string, size uint64, make func(verbs.MemObjects) (verbs.MemObject, error)) (verbs.MemObject, error) {
	return valueOn(p.Process, "files and shared memory of this target", func(x verbs.MemObjects) (verbs.MemObject, error) {
		o, err := make(x)
		return made(p.r, t, name, list(size), err, func() (verbs.MemObject, []string) { return &memObject{o, p.r}, nil })
	})
}

func (p *process) NewShared(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	return p.newObject(t, "new_shared", size, func(x verbs.MemObjects) (verbs.MemObject, error) { return x.NewShared(innerThread(t), size) })
}

func (p *process) NewFile(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	return p.newObject(t, "new_file", size, func(x verbs.MemObjects) (verbs.MemObject, error) { return x.NewFile(innerThread(t), size) })
}

func (o *memObject) inner() verbs.MemObject { return o.MemObject }

func (o *memObject) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return o.MemObject.ReadAt(innerThread(t), p, off)
}

func (o *memObject) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	return o.MemObject.WriteAt(innerThread(t), p, off)
}

func (o *memObject) Truncate(t verbs.Thread, size uint64) error {
	return o.r.add(t, "truncate", list(size), o.MemObject.Truncate(innerThread(t), size))
}

func (o *memObject) Close(t verbs.Thread) error {
	return o.r.add(t, "close", nil, o.MemObject.Close(innerThread(t)))
}

// PageFaults passes through where the inner process can tell.
func (p *process) PageFaults(t verbs.Thread) (verbs.PageFaults, error) {
	return valueOn(p.Process, "page faults on this target", func(x verbs.PageFaultCounter) (verbs.PageFaults, error) { return x.PageFaults(innerThread(t)) })
}

// MemoryUse passes through likewise.
func (p *process) MemoryUse(t verbs.Thread) (verbs.MemoryUse, error) {
	return valueOn(p.Process, "memory use on this target", func(x verbs.MemoryUser) (verbs.MemoryUse, error) { return x.MemoryUse(innerThread(t)) })
}
