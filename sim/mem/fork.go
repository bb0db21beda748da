package mem

import "syscall"

// Fork is the address space of a forked child on a kernel that gives it copies of pinned
// pages. Of a page that nothing has pinned it makes no difference when the copy is made, so
// all are copied at once: contents and rights are the parent's, and nothing
// is pinned. ENOMEM when memory is used up.
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
	return child, nil
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
