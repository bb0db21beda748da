package mem

// Present calls f for each page of [va, va+n) that is there, as Range with RangeSnapshot sees it,
// in no particular order. What is not there costs nothing.
func (s *Space) Present(va VA, n uint64, f func(at VA, x Frame)) {
	if n == 0 {
		return
	}
	ps := VA(s.m.PageSize())
	va, end := va&^(ps-1), (va+VA(n)+ps-1)&^(ps-1)
	if s.x != nil {
		s.x.presentPages(s.m, va, end, f)
		return
	}
	s.eachEager(va, end, func(v *mapping, i uint64) {
		at := v.start + VA(i<<s.m.shift)
		if x := (Frame{}); s.atOnce(&x, &v.pt[i], at, RangeSnapshot) == nil && x.Present {
			f(at, x)
		}
	})
	if s.lazy == nil {
		return
	}
	i := uint64(va) >> s.m.shift
	if a := s.lazy.at(va); a != nil {
		i = s.index(a, va)
	}
	for last := uint64(end-1) >> s.m.shift; i <= last; i++ {
		at, e, ok := s.lazy.pt.next(i, last)
		if !ok {
			return
		}
		i = at
		a := s.lazy.at(VA(at << s.m.shift))
		if !e.present() || a == nil || a.prot&Read == 0 {
			continue
		}
		unit := VA(at << s.m.shift)
		for p := max(unit, va); p < min(unit+1<<a.shift, end); p += ps {
			f(p, s.part(a, p, e))
		}
	}
}
