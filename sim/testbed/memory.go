package testbed

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// Map maps anonymous memory, with a page more when it begins inside one.
func (p *process) Map(t verbs.Thread, length uint64, o verbs.MapOptions) (verbs.Buffer, error) {
	provider.Of(t).P.Sync()
	page := uint64(p.host.PageSize())
	if o.PageSize != 0 && o.PageSize != page && o.PageSize != 2<<20 && o.PageSize != 1<<30 {
		return nil, fmt.Errorf("map: no pages of %d bytes: %w", o.PageSize, syscall.EINVAL)
	}
	page = max(page, o.PageSize)
	if o.Offset >= page {
		return nil, fmt.Errorf("map: offset %d in a page of %d: %w", o.Offset, page, syscall.EINVAL)
	}
	if length > 1<<47 {
		return nil, fmt.Errorf("map %d bytes: %w", length, syscall.ENOMEM)
	}
	n := (length + o.Offset + page - 1) &^ (page - 1)
	how, err := mapOptions(&o)
	if err != nil {
		return nil, err
	}
	b := &buffer{p: p, mapped: n, n: length, how: how, lazy: how.Lazy || how.Object != nil || how.At != 0}
	err = b.change(t, func(s *mem.Space) error {
		b.va, err = s.MapWith(n, how)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.addr = b.va + mem.VA(o.Offset)
	return b, nil
}

// mapOptions are those of a simulated mapping.
func mapOptions(o *verbs.MapOptions) (mem.MapOptions, error) {
	how := mem.MapOptions{
		Prot: mem.Read | mem.Write, PageSize: o.PageSize, Lazy: o.Lazy, Offset: o.ObjectOffset, Private: o.Private,
		At: mem.VA(o.At), NoReplace: o.NoReplace,
	}
	if o.ReadOnly {
		how.Prot = mem.Read
	}
	if o.NoAccess {
		how.Prot = 0
	}
	if o.Object != nil {
		x, ok := o.Object.(*object)
		if !ok {
			return how, fmt.Errorf("map: an object of another target: %w", syscall.EBADF)
		}
		how.Object = x.o
	}
	return how, nil
}

// buffer is mapped memory. Threads of other processes cannot touch it.
type buffer struct {
	p      *process
	va     mem.VA // of the mapping
	mapped uint64
	addr   mem.VA
	n      uint64
	how    mem.MapOptions
	lazy   bool // it has pages that come and go
}

func (b *buffer) Addr() uint64 { return uint64(b.addr) }
func (b *buffer) Len() uint64  { return b.n }

var errForeign = errors.New("memory of another process")

func (b *buffer) check(t verbs.Thread, n int, off int64) error {
	th := provider.Of(t)
	if t.Process() != verbs.Process(b.p) {
		return fmt.Errorf("thread %q: %w: %w", t.Name(), errForeign, syscall.EFAULT)
	}
	if off < 0 || uint64(off) > b.n || uint64(n) > b.n-uint64(off) {
		return fmt.Errorf("%d bytes at %d of a buffer of %d: %w", n, off, b.n, syscall.EFAULT)
	}
	th.P.Sync()
	return nil
}

// ReadAt copies from the buffer. A program's own reads and writes cost it nothing but page faults.
func (b *buffer) ReadAt(t verbs.Thread, p []byte, off int64) (int, error) {
	err := b.check(t, len(p), off)
	if err != nil {
		return 0, err
	}
	at := b.addr + mem.VA(off)
	if b.lazy {
		err = b.change(t, func(s *mem.Space) error { return s.ReadAt(p, at) })
	} else {
		err = b.p.lib.K.Space.ReadAt(p, at)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteAt copies to the buffer.
func (b *buffer) WriteAt(t verbs.Thread, p []byte, off int64) (int, error) {
	err := b.check(t, len(p), off)
	if err != nil {
		return 0, err
	}
	at := b.addr + mem.VA(off)
	if b.lazy {
		err = b.change(t, func(s *mem.Space) error { return s.WriteAt(p, at) })
	} else {
		err = b.p.lib.K.Space.WriteAt(p, at)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Remap puts fresh memory under the buffer.
func (b *buffer) Remap(t verbs.Thread) error {
	if err := b.Unmap(t); err != nil {
		return err
	}
	if !b.lazy {
		return b.p.lib.K.Space.MapAt(b.va, b.mapped, mem.Read|mem.Write)
	}
	how := mem.MapOptions{Prot: mem.Read | mem.Write, Lazy: true, PageSize: b.how.PageSize, At: b.va, NoReplace: true}
	return b.change(t, func(s *mem.Space) error {
		_, err := s.MapWith(b.mapped, how)
		return err
	})
}

// Unmap removes the mapping.
func (b *buffer) Unmap(t verbs.Thread) error {
	return b.change(t, func(s *mem.Space) error { return s.Unmap(b.va, b.mapped) })
}
