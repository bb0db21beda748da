package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

var (
	_ verbs.PagedBuffer      = (*buffer)(nil)
	_ verbs.Remapper         = (*buffer)(nil)
	_ verbs.MemObjects       = (*process)(nil)
	_ verbs.PageFaultCounter = (*process)(nil)
	_ verbs.MemoryUser       = (*process)(nil)
)

// change does something to the process's memory, in order. The thread then waits for the page
// faults that it caused, and for what devices take to give up pages.
func (b *buffer) change(t verbs.Thread, f func(s *mem.Space) error) error { return b.p.change(t, f) }

func (p *process) change(t verbs.Thread, f func(s *mem.Space) error) error {
	th := provider.Of(t)
	th.P.Sync()
	s := p.lib.K.Space
	before := s.Faults()
	err := f(s)
	after := s.Faults()
	p.lib.K.AwaitInvalidations(kernel.Caller{P: th.P, Core: th.Core})
	k := &p.host.tb.prof.Kernel
	if n := after.Minor - before.Minor; n > 0 {
		th.Core.Run(th.P, sim.Time(n)*k.MinorFault)
	}
	if n := after.Major - before.Major; n > 0 {
		th.P.Sleep(sim.Time(n) * k.MajorFault)
	}
	return err
}

// part is the address of a part of the buffer.
func (b *buffer) part(t verbs.Thread, off, n uint64) (mem.VA, error) {
	if t.Process() != verbs.Process(b.p) {
		return 0, fmt.Errorf("thread %q: %w: %w", t.Name(), errForeign, syscall.EINVAL)
	}
	if off+n < off || uint64(b.addr)+off+n < off+n {
		return 0, fmt.Errorf("%d bytes at %d of a buffer: %w", n, off, syscall.EINVAL)
	}
	return b.addr + mem.VA(off), nil
}

// changePart is change of a part of the buffer.
func (b *buffer) changePart(t verbs.Thread, off, n uint64, f func(s *mem.Space, va mem.VA) error) error {
	va, err := b.part(t, off, n)
	if err != nil {
		return err
	}
	return b.change(t, func(s *mem.Space) error { return f(s, va) })
}

// Protect is mprotect.
func (b *buffer) Protect(t verbs.Thread, off, n uint64, prot verbs.Prot) error {
	if prot&^(verbs.ProtRead|verbs.ProtWrite) != 0 {
		return fmt.Errorf("protect: rights %#x: %w", prot, syscall.EINVAL)
	}
	return b.changePart(t, off, n, func(s *mem.Space, va mem.VA) error { return s.Protect(va, n, protOf(prot)) })
}

func protOf(p verbs.Prot) (to mem.Prot) {
	if p&verbs.ProtRead != 0 {
		to |= mem.Read
	}
	if p&verbs.ProtWrite != 0 {
		to |= mem.Write
	}
	return to
}

// Advise is madvise.
func (b *buffer) Advise(t verbs.Thread, off, n uint64, advice verbs.Advice) error {
	return b.changePart(t, off, n, func(s *mem.Space, va mem.VA) error {
		switch advice {
		case verbs.AdviceDontNeed:
			return s.Discard(va, n)
		case verbs.AdvicePageOut:
			return s.PageOut(va, n)
		case verbs.AdvicePopulateRead, verbs.AdvicePopulateWrite:
			return s.Populate(va, n, advice == verbs.AdvicePopulateWrite)
		}
		return fmt.Errorf("advice %d: %w", advice, syscall.EINVAL)
	})
}

// Resident is mincore.
func (b *buffer) Resident(t verbs.Thread, off, n uint64) (pages []bool, err error) {
	err = b.changePart(t, off, n, func(s *mem.Space, va mem.VA) (err error) {
		pages, err = s.Resident(va, n)
		return err
	})
	return pages, err
}

// UnmapPart is munmap of a part.
func (b *buffer) UnmapPart(t verbs.Thread, off, n uint64) error {
	return b.changePart(t, off, n, func(s *mem.Space, va mem.VA) error { return s.Unmap(va, n) })
}

// Move is mremap.
func (b *buffer) Move(t verbs.Thread, to uint64) error {
	if _, err := b.part(t, 0, b.n); err != nil {
		return err
	}
	return b.change(t, func(s *mem.Space) error {
		va, err := s.Move(b.va, b.mapped, mem.VA(to))
		if err == nil {
			b.addr, b.va = va+b.addr-b.va, va
		}
		return err
	})
}

// object is a file or shared memory.
type object struct{ o *mem.Object }

// change is change for the process whose thread it is, which need not be the one that made the
// object.
func (x *object) change(t verbs.Thread, f func() error) error {
	p, ok := t.Process().(*process)
	if !ok {
		return fmt.Errorf("a thread of another target: %w", syscall.EINVAL)
	}
	return p.change(t, func(*mem.Space) error { return f() })
}

// NewShared is memfd_create.
func (p *process) NewShared(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	return p.newObject(t, size, p.host.mem.NewShared)
}

// NewFile makes a file without a name.
func (p *process) NewFile(t verbs.Thread, size uint64) (verbs.MemObject, error) {
	return p.newObject(t, size, p.host.mem.NewFile)
}

func (p *process) newObject(t verbs.Thread, size uint64, make func(uint64) (*mem.Object, error)) (verbs.MemObject, error) {
	provider.Of(t).P.Sync()
	o, err := make(size)
	if err != nil {
		return nil, err
	}
	p.objects = append(p.objects, o)
	return &object{o}, nil
}

func (x *object) ReadAt(t verbs.Thread, p []byte, off int64) (n int, err error) {
	err = x.change(t, func() (err error) {
		n, err = x.o.ReadAt(p, off)
		return err
	})
	return n, err
}

func (x *object) WriteAt(t verbs.Thread, p []byte, off int64) (n int, err error) {
	err = x.change(t, func() (err error) {
		n, err = x.o.WriteAt(p, off)
		return err
	})
	return n, err
}

// Truncate is ftruncate.
func (x *object) Truncate(t verbs.Thread, size uint64) error {
	return x.change(t, func() error { return x.o.Truncate(size) })
}

// Close gives the object up.
func (x *object) Close(t verbs.Thread) error {
	return x.change(t, func() error {
		x.o.Close()
		return nil
	})
}

// PageFaults counts the page faults of lazy mappings.
func (p *process) PageFaults(t verbs.Thread) (verbs.PageFaults, error) {
	provider.Of(t).P.Sync()
	f := p.lib.K.Space.Faults()
	return verbs.PageFaults{Minor: f.Minor, Major: f.Major}, nil
}

// MemoryUse tells what the process has of memory. Nothing is locked: what is mapped at once only
// stays.
func (p *process) MemoryUse(t verbs.Thread) (verbs.MemoryUse, error) {
	provider.Of(t).P.Sync()
	s := p.lib.K.Space
	return verbs.MemoryUse{Resident: s.RSS(), Pinned: s.Pinned * p.host.mem.PageSize()}, nil
}
