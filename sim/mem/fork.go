package mem

import (
	"bytes"
	"syscall"
)

// Fork is the address space of a forked child on a kernel that gives it copies of pinned
// pages. Of a page that nothing has pinned it makes no difference when the copy is made, so
// all are copied at once: contents and rights are the parent's, and nothing
// is pinned. What is mapped lazily is shared until one of the two writes to it, but for
// pages that are pinned, which are copied at once. ENOMEM when memory is used up.
func (s *Space) Fork() (*Space, error) {
	if s.x != nil {
		return nil, errorf(syscall.EINVAL, "fork of a process outside")
	}
	s.m.settle()
	child := &Space{m: s.m, next: s.next}
	page := make([]byte, s.m.PageSize())
	for _, v := range s.maps {
		c := &mapping{start: v.start, pt: make([]pte, len(v.pt))}
		child.maps = append(child.maps, c)
		for i, e := range v.pt {
			if !e.present() {
				continue
			}
			pg, ok := s.m.take(1, 1)
			if !ok {
				child.Release()
				return nil, errorf(syscall.ENOMEM, "fork")
			}
			c.pt[i] = makePTE(pg, e.prot())
			c.left++
			if s.m.Read(PA(e.page()<<s.m.shift), page) && !zero(page) { // what was never written costs nothing
				s.m.Write(PA(pg<<s.m.shift), page)
			}
		}
	}
	if s.lazy != nil {
		if err := s.forkLazily(child); err != nil {
			child.Release()
			return nil, err
		}
	}
	return child, nil
}

// forkLazily gives the child the lazy mappings. What may be copied on write later is announced to
// the parent's notifiers first, one area at a time; the child finds shared memory, and what was
// only read, by faults of its own.
func (s *Space) forkLazily(child *Space) error {
	child.lazy = &lazySpace{next: s.lazy.next}
	for _, a := range s.lazy.areas {
		b := *a
		child.insertArea(&b)
		if !a.private {
			continue
		}
		if s.anyOwn(a) {
			s.invalidate(a.start, uint64(a.end-a.start))
		}
		if err := s.shareArea(child, a, &b); err != nil {
			return err
		}
	}
	return nil
}

// anyOwn reports whether the process has pages of its own in an area.
func (s *Space) anyOwn(a *area) bool {
	for va := a.start; va < a.end; {
		at, e, ok := s.lazy.pt.next(uint64(va)>>s.m.shift, uint64(a.end-1)>>s.m.shift)
		if !ok {
			return false
		}
		if e.present() && s.m.isOwn(s.m.frameOf(e)) {
			return true
		}
		va = VA((at + 1) << s.m.shift)
	}
	return false
}

// isOwn reports whether a frame is anonymous memory that has content.
func (m *Memory) isOwn(f *frame) bool { return f.obj == nil && f != m.lazy.zero }

// shareArea gives the child b what the parent has in a.
func (s *Space) shareArea(child *Space, a, b *area) error {
	for va := a.start; va < a.end; {
		at, e, ok := s.lazy.pt.next(uint64(va)>>s.m.shift, uint64(a.end-1)>>s.m.shift)
		if !ok {
			return nil
		}
		va = VA(at << s.m.shift)
		switch {
		case e.swapped():
			s.m.lazy.swap.slots[e.page()].refs++
			child.lazy.pt.set(at, e)
		case !s.m.isOwn(s.m.frameOf(e)):
		case s.m.pinned(s.m.frameOf(e)):
			if err := s.copyPinned(child, b, va, s.m.frameOf(e)); err != nil {
				return err
			}
		default:
			s.lazy.pt.set(at, e&^pte(Write))
			child.enter(b, va, s.m.frameOf(e), false)
		}
		va += 1 << a.shift
	}
	return nil
}

// copyPinned gives the child a copy of a page that the parent has pinned.
func (s *Space) copyPinned(child *Space, b *area, va VA, f *frame) error {
	c, err := s.m.newFrame(f.n)
	if err != nil {
		return err
	}
	s.m.fillFrame(c, s.m.content(f))
	child.enter(b, va, c, b.prot&Write != 0)
	return nil
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
