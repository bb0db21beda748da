package mem

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// modelPage is a page of the simple model of an address space.
type modelPage struct {
	prot Prot
	b    *[PageSize]byte
}

// modelPin is a pin of the model: the pages that must stay alive.
type modelPin struct {
	pas []PA
	b   []*[PageSize]byte
}

// model is an address space as a map of pages.
type model struct {
	pages map[VA]modelPage
	bases []VA
	pins  []modelPin
}

func (m *model) mapped(va VA, n uint64, prot Prot) bool {
	for a := va; a < va+VA(n); a++ {
		if p, ok := m.pages[a&^(PageSize-1)]; !ok || p.prot&prot != prot {
			return false
		}
	}
	return true
}

func (m *model) wholePages(va VA, n uint64) bool {
	return n > 0 && va%PageSize == 0 && m.mapped(va, (n+PageSize-1)&^(PageSize-1), 0)
}

// reader takes numbers from fuzz input.
type reader struct{ b []byte }

func (r *reader) n(limit uint64) uint64 {
	if len(r.b) < 2 {
		return 0
	}
	v := uint64(r.b[0])<<8 | uint64(r.b[1])
	r.b = r.b[2:]
	return v % limit
}

// FuzzSpace compares a Space with a map of pages, call by call.
func FuzzSpace(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03\x00\x01\x00\x00\x00\x10\x00\x20\x00\x04"))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 2, 0, 3, 0, 1, 0, 4, 0, 5, 0, 6}, 20))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := &reader{in}
		m := &model{pages: map[VA]modelPage{}}
		s := NewSpace(New(firstPA + 64*PageSize))
		fill := byte(0)
		for len(r.b) >= 2 {
			op := r.n(7)
			if op == 0 || len(m.bases) == 0 {
				m.mapPages(t, s, 1+r.n(9*PageSize), Prot(r.n(4)))
				continue
			}
			va := m.bases[r.n(uint64(len(m.bases)))] + VA(r.n(8))*PageSize - PageSize
			n := r.n(3 * PageSize)
			if op >= 3 && op <= 5 {
				va += VA(r.n(PageSize))
			}
			fill++
			switch op {
			case 1:
				m.unmap(t, s, va, n)
			case 2:
				m.protect(t, s, va, n, Prot(r.n(4)))
			case 3:
				m.read(t, s, va, n)
			case 4:
				m.write(t, s, va, bytes.Repeat([]byte{fill}, int(n)))
			case 5:
				m.pin(t, s, va, n, Prot(r.n(4)))
			case 6:
				if len(m.pins) > 0 {
					k := r.n(uint64(len(m.pins)))
					m.unpin(t, s, int(k))
				}
			}
		}
		s.Release()
		for len(m.pins) > 0 {
			m.unpin(t, s, 0)
		}
		if used := s.Memory().Used(); used != 0 || len(s.m.free) != 1 {
			t.Errorf("%d bytes used in the end, %d free extents", used, len(s.m.free))
		}
	})
}

// agree compares an error with what the model expects (0: none).
func agree(t *testing.T, what string, err error, want syscall.Errno) bool {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", what, err, want)
	}
	return err == nil
}

func when(ok bool, errno syscall.Errno) syscall.Errno {
	if ok {
		return 0
	}
	return errno
}

func (m *model) mapPages(t *testing.T, s *Space, n uint64, prot Prot) {
	free := s.Memory().Size() - firstPA - s.Memory().Used()
	pages := (n + PageSize - 1) / PageSize
	va, err := s.Map(n, prot)
	if !agree(t, "map", err, when(pages*PageSize <= free, syscall.ENOMEM)) {
		return
	}
	m.bases = append(m.bases, va)
	for i := range VA(pages) {
		if _, ok := m.pages[va+i*PageSize]; ok {
			t.Fatal("mapped over a mapping")
		}
		m.pages[va+i*PageSize] = modelPage{prot, new([PageSize]byte)}
	}
}

func (m *model) unmap(t *testing.T, s *Space, va VA, n uint64) {
	if agree(t, "unmap", s.Unmap(va, n), when(m.wholePages(va, n), syscall.EINVAL)) {
		for a := va; a < va+VA(n); a += PageSize {
			delete(m.pages, a)
		}
	}
}

func (m *model) protect(t *testing.T, s *Space, va VA, n uint64, prot Prot) {
	if agree(t, "protect", s.Protect(va, n, prot), when(m.wholePages(va, n), syscall.EINVAL)) {
		for a := va; a < va+VA(n); a += PageSize {
			m.pages[a] = modelPage{prot, m.pages[a].b}
		}
	}
}

func (m *model) read(t *testing.T, s *Space, va VA, n uint64) {
	p := make([]byte, n)
	if !agree(t, "read", s.ReadAt(p, va), when(m.mapped(va, n, Read), syscall.EFAULT)) {
		return
	}
	for i := range p {
		a := va + VA(i)
		if want := m.pages[a&^(PageSize-1)].b[a%PageSize]; p[i] != want {
			t.Fatalf("read %#x at %#x, want %#x", p[i], uint64(a), want)
		}
	}
}

func (m *model) write(t *testing.T, s *Space, va VA, p []byte) {
	if agree(t, "write", s.WriteAt(p, va), when(m.mapped(va, uint64(len(p)), Write), syscall.EFAULT)) {
		for i := range p {
			a := va + VA(i)
			m.pages[a&^(PageSize-1)].b[a%PageSize] = p[i]
		}
	}
}

func (m *model) pin(t *testing.T, s *Space, va VA, n uint64, prot Prot) {
	want := when(m.mapped(va, n, prot), syscall.EFAULT)
	if n == 0 {
		want = syscall.EINVAL
	}
	pas, err := s.Pin(va, n, prot)
	if !agree(t, "pin", err, want) {
		return
	}
	p := modelPin{pas: pas}
	for a := va &^ (PageSize - 1); a < va+VA(n); a += PageSize {
		p.b = append(p.b, m.pages[a].b)
	}
	if len(p.b) != len(pas) {
		t.Fatalf("%d pages pinned, want %d", len(pas), len(p.b))
	}
	m.pins = append(m.pins, p)
}

// unpin checks that a pinned page still holds its bytes, mapped or not.
func (m *model) unpin(t *testing.T, s *Space, k int) {
	p := m.pins[k]
	for i, pa := range p.pas {
		var b [PageSize]byte
		if !s.Memory().Read(pa, b[:]) || b != *p.b[i] {
			t.Fatalf("pinned page %#x changed", uint64(pa))
		}
	}
	s.Unpin(p.pas)
	m.pins = append(m.pins[:k], m.pins[k+1:]...)
}
