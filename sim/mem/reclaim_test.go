package mem

import (
	"bytes"
	"syscall"
	"testing"
)

// Under pressure the pages that were used longest ago go to swap, and come back as they were.
func TestReclaim(t *testing.T) {
	s, va := lazySpaceOf(t, 8, MapOptions{Prot: Read | Write})
	s.m.SetPaging(4*PageSize, 100*PageSize)
	for i := range VA(4) {
		poke(t, s, va+i*PageSize, byte(i+1))
	}
	peek(t, s, va, 1)
	poke(t, s, va+4*PageSize, 5)
	if res, err := s.Resident(va, 5*PageSize); err != nil || !res[0] || res[1] || !res[2] || !res[3] || !res[4] {
		t.Errorf("resident: %v, %v", res, err)
	}
	for i := range VA(5) {
		peek(t, s, va+i*PageSize, byte(i+1))
	}
	if p := s.m.Paging(); s.m.Resident() != 4*PageSize || s.Faults().Major == 0 || p.SwappedIn != s.Faults().Major || p.SwappedOut != p.Reclaimed {
		t.Errorf("%d bytes resident, %+v, %+v", s.m.Resident(), s.Faults(), p)
	}
	released(t, s)
}

// What is pinned stays; when swap is full there is no more memory.
func TestReclaimFails(t *testing.T) {
	s, va := lazySpaceOf(t, 8, MapOptions{Prot: Read | Write})
	s.m.SetPaging(4*PageSize, 0)
	for i := range VA(4) {
		poke(t, s, va+i*PageSize, 9)
	}
	expect(t, "a page without swap", s.WriteAt([]byte{1}, va+4*PageSize), syscall.ENOMEM)
	s.m.SetPaging(4*PageSize, 2*PageSize)
	pages, err := s.Pin(va, 3*PageSize, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	poke(t, s, va+4*PageSize, 1)
	poke(t, s, va+5*PageSize, 1)
	expect(t, "a third page", s.WriteAt([]byte{1}, va+6*PageSize), syscall.ENOMEM)
	_, err = s.Pin(va, 6*PageSize, Read)
	expect(t, "pins beyond memory", err, syscall.ENOMEM)
	expect(t, "a range beyond memory", s.Range(va, 6*PageSize, 0, make([]Frame, 6)), syscall.ENOMEM)
	if s.Pinned != 3 {
		t.Errorf("%d pages are pinned", s.Pinned)
	}
	s.Unpin(pages)
	released(t, s)
}

// What is mapped at once, and what drivers take, comes from lazy memory when there is no other.
func TestReclaimForEager(t *testing.T) {
	s := NewSpace(New(firstPA + 16*PageSize))
	va := mapLazily(t, s, 16, MapOptions{Prot: Read | Write})
	data := bytes.Repeat([]byte{1, 2, 3}, 16*PageSize/3)
	if err := s.WriteAt(data, va); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Map(4*PageSize, Read); err != nil {
		t.Fatal(err)
	}
	pa, err := s.m.Alloc(PageSize, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(data))
	if err := s.ReadAt(got, va); err != nil || !bytes.Equal(got, data) {
		t.Error("other bytes", err)
	}
	s.m.Free(pa, PageSize)
	released(t, s)
}

// lateWrite is a link that holds back one write.
type lateWrite struct {
	m    *Memory
	pa   PA
	b    byte
	past bool // its place in the order of the run has passed
	held bool
}

func (l *lateWrite) Settle() {
	if l.held && l.past {
		l.arrive()
	}
}
func (l *lateWrite) Hurry() {}

func (l *lateWrite) arrive() {
	l.held = false
	l.m.HeldBack(-1)
	l.m.Unobserved(l.pa, 1)[0] = l.b
}

// DMA that is under way is in the content of a page that is reclaimed, copied or discarded: what
// has arrived by itself, and what a notifier waits for.
func TestReclaimKeepsDMA(t *testing.T) {
	for _, past := range []bool{true, false} {
		for what, do := range map[string]func(s *Space, va VA) error{
			"page out": func(s *Space, va VA) error { return s.PageOut(va, PageSize) },
			"fork": func(s *Space, va VA) error {
				c, err := s.Fork()
				if err == nil {
					err = s.WriteAt([]byte{1}, va)
					peek(t, c, va+9, 77)
					c.Release()
				}
				return err
			},
			"move": func(s *Space, va VA) error {
				to, err := s.Move(va, PageSize, 0)
				if err == nil {
					_, err = s.Move(to, PageSize, va)
				}
				return err
			},
		} {
			s, va := lazySpaceOf(t, 1, MapOptions{Prot: Read | Write})
			var f [1]Frame
			if err := s.Range(va, 1, RangeWrite, f[:]); err != nil {
				t.Fatal(err)
			}
			l := &lateWrite{m: s.m, pa: f[0].PA + 9, b: 77, past: past, held: true}
			s.m.SetLate(l)
			s.m.HeldBack(1)
			s.Notify(va, PageSize, func(VA, uint64) {
				if l.held {
					l.arrive()
				}
			})
			expect(t, what, do(s, va), 0)
			peek(t, s, va+9, 77)
			if l.held {
				t.Errorf("%s: a write is still under way", what)
			}
			released(t, s)
		}
	}
}
