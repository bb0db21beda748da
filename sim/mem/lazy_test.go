package mem

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
)

func poke(t *testing.T, s *Space, va VA, b byte) {
	t.Helper()
	if err := s.WriteAt([]byte{b}, va); err != nil {
		t.Fatal(err)
	}
}

func peek(t *testing.T, s *Space, va VA, want byte) {
	t.Helper()
	var b [1]byte
	if err := s.ReadAt(b[:], va); err != nil || b[0] != want {
		t.Errorf("byte at %#x: %d, %v; want %d", uint64(va), b[0], err, want)
	}
}

// What cannot be mapped, and why.
func TestMapWithErrors(t *testing.T) {
	s := NewSpace(New(64 << 20))
	o, err := s.m.NewFile(PageSize)
	if err != nil {
		t.Fatal(err)
	}
	gone, _ := s.m.NewShared(PageSize)
	gone.Close()
	foreign, err := NewForeignSpace(s.m, nil)
	if err != nil {
		t.Fatal(err)
	}
	there := mapLazily(t, s, 1, MapOptions{Prot: Read})
	eager, err := s.Map(PageSize, Read)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		n    uint64
		o    MapOptions
		want syscall.Errno
	}{
		{"nothing", 0, MapOptions{}, syscall.EINVAL},
		{"an address inside a page", 1, MapOptions{At: there + 1}, syscall.EINVAL},
		{"an offset inside a page", 1, MapOptions{Object: o, Offset: 1}, syscall.EINVAL},
		{"an object in huge pages", 1, MapOptions{Object: o, PageSize: 2 << 20}, syscall.EINVAL},
		{"pages of no power of two", 1, MapOptions{PageSize: 3 * PageSize}, syscall.EINVAL},
		{"a low address", 1, MapOptions{At: minVA - PageSize}, syscall.EPERM},
		{"an address of the kernel", 1, MapOptions{At: 1 << 47}, syscall.ENOMEM},
		{"an end behind all addresses", 2 * PageSize, MapOptions{At: lastVA - PageSize + 1<<40}, syscall.ENOMEM},
		{"more than there is", 1 << 62, MapOptions{}, syscall.ENOMEM},
		{"all there is", ^uint64(0), MapOptions{}, syscall.ENOMEM},
		{"an offset that overflows", 2 * PageSize, MapOptions{Object: o, Offset: ^uint64(0) &^ (PageSize - 1)}, syscall.EOVERFLOW},
		{"a closed object", 1, MapOptions{Object: gone}, syscall.EBADF},
		{"where something is", 1, MapOptions{At: there, NoReplace: true}, syscall.EEXIST},
		{"where something was mapped at once", 1, MapOptions{At: eager, NoReplace: true}, syscall.EEXIST},
		{"in its place", 1, MapOptions{At: eager, Prot: Read | Write}, 0},
	} {
		c.o.Lazy = true
		_, err := s.MapWith(c.n, c.o)
		expect(t, c.what, err, c.want)
	}
	poke(t, s, eager, 1)
	_, err = foreign.MapWith(PageSize, MapOptions{Lazy: true})
	expect(t, "a process outside", err, syscall.EINVAL)
	_, err = s.m.NewFile(maxObject + 1)
	expect(t, "a file that is too large", err, syscall.EFBIG)
	expect(t, "truncate", o.Truncate(maxObject+1), syscall.EFBIG)
	o.Close()
	released(t, s)
}

// Huge pages come as one, and are cut nowhere.
func TestLazyHugePages(t *testing.T) {
	const huge = 2 << 20
	s := NewSpace(New(64 << 20))
	va, err := s.MapWith(3*huge, MapOptions{Prot: Read | Write, Lazy: true, PageSize: huge})
	if err != nil || va%huge != 0 {
		t.Fatal(va, err)
	}
	poke(t, s, va+huge+5000, 7)
	if s.m.Resident() != huge {
		t.Errorf("%d bytes resident", s.m.Resident())
	}
	out := make([]Frame, 2)
	if err := s.Range(va+huge+4096, 2*PageSize, RangeWrite, out); err != nil || out[0].Shift != 21 || out[1].PA != out[0].PA+PageSize || out[0].PA%huge != PageSize {
		t.Errorf("%+v, %v", out, err)
	}
	expect(t, "unmap a part", s.Unmap(va, PageSize), syscall.EINVAL)
	expect(t, "protect a part", s.Protect(va+PageSize, huge, Read), syscall.EINVAL)
	expect(t, "discard a part", s.Discard(va+huge, PageSize), syscall.EINVAL)
	expect(t, "page out", s.PageOut(va, 3*huge), 0)
	child, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	poke(t, child, va+huge+5000, 8)
	peek(t, s, va+huge+5000, 7)
	peek(t, s, va+huge, 0)
	to, err := s.Move(va+huge, huge, 0)
	if err != nil || to%huge != 0 {
		t.Fatal(to, err)
	}
	peek(t, s, to+5000, 7)
	expect(t, "unmap", s.Unmap(va, huge), 0)
	eager, err := s.MapPages(huge, huge, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Range(eager, 1, 0, out[:1]); err != nil || out[0].Shift != 21 {
		t.Errorf("at once: %+v, %v", out[0], err)
	}
	released(t, s, child)
}

// What was mapped at once and what is lazy meet in one range.
func TestLazyBesideEager(t *testing.T) {
	s := NewSpace(New(64 << 20))
	eager, err := s.Map(2*PageSize, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.MapWith(2*PageSize, MapOptions{Prot: Read | Write, Lazy: true, At: eager + 2*PageSize}); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{3}, 4*PageSize-10)
	if err := s.WriteAt(data, eager+5); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(data))
	if err := s.ReadAt(got, eager+5); err != nil || !bytes.Equal(got, data) {
		t.Error("other bytes", err)
	}
	pages, err := s.Pin(eager, 4*PageSize, Read|Write)
	if err != nil || len(pages) != 4 || s.Pinned != 4 {
		t.Fatal(pages, err)
	}
	s.Unpin(pages)
	var notes []uint64
	s.Notify(eager, 4*PageSize, func(_ VA, n uint64) { notes = append(notes, n) })
	expect(t, "discard", s.Discard(eager, 4*PageSize), syscall.EINVAL)
	expect(t, "protect", s.Protect(eager, 4*PageSize, Read), 0)
	expect(t, "a write", s.WriteAt(data[:1], eager), syscall.EFAULT)
	expect(t, "a write", s.WriteAt(data[:1], eager+3*PageSize), syscall.EFAULT)
	if res, err := s.Resident(eager, 4*PageSize); err != nil || len(res) != 4 || !res[0] || !res[3] {
		t.Error(res, err)
	}
	expect(t, "map at once into it", s.MapAt(eager+2*PageSize, PageSize, Read), syscall.EEXIST)
	expect(t, "unmap", s.Unmap(eager+PageSize, 2*PageSize), 0)
	expect(t, "unmap again", s.Unmap(eager, 4*PageSize), 0)
	expect(t, "unmap what is gone", s.Unmap(eager, 4*PageSize), syscall.EINVAL)
	if len(notes) != 5 { // two pages that were mapped at once, an area, and two unmappings
		t.Errorf("notices of %d bytes", notes)
	}
	released(t, s)
}

// A window, and a translation, are good until the page changes.
func TestLazyWindow(t *testing.T) {
	s, va := lazySpaceOf(t, 4, MapOptions{Prot: Read | Write})
	r := s.Window(va, PageSize, Read)
	if len(r) != PageSize || r[7] != 0 {
		t.Fatal("no window of the page of zeroes")
	}
	changes := s.Changes
	poke(t, s, va+7, 9)
	if s.Changes == changes {
		t.Error("a page was replaced, and nothing tells")
	}
	w := s.Window(va, PageSize, Read|Write)
	if w[7] != 9 {
		t.Error("another window than the page")
	}
	w[8] = 4
	peek(t, s, va+8, 4)
	for what, b := range map[string][]byte{
		"two pages": s.Window(va+1, PageSize, Read), "a hole": s.Window(va+4*PageSize, 1, Read), "nothing": s.Window(va, 0, Read), "a negative one": s.Window(va, -1, Read),
	} {
		if b != nil {
			t.Errorf("%s: a window", what)
		}
	}
	pa, n, prot, ok := s.Translate(va + PageSize + 5)
	if !ok || n != PageSize-5 || prot != Read|Write || !s.m.Write(pa, []byte{6}) {
		t.Error(pa, n, prot, ok)
	}
	peek(t, s, va+PageSize+5, 6)
	if _, _, _, ok := s.Translate(va + 4*PageSize); ok {
		t.Error("a hole has a translation")
	}
	released(t, s)
}

// Files: mappings show what is written to them, and their pages are read back after they were
// reclaimed.
func TestObjects(t *testing.T) {
	s := NewSpace(New(64 << 20))
	o, err := s.m.NewFile(2*PageSize + 10)
	if err != nil {
		t.Fatal(err)
	}
	shared := mapLazily(t, s, 3, MapOptions{Prot: Read | Write, Object: o})
	private := mapLazily(t, s, 2, MapOptions{Prot: Read | Write, Object: o, Offset: PageSize, Private: true})
	if n, err := o.WriteAt([]byte("file"), PageSize+1); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	peek(t, s, shared+PageSize+1, 'f')
	peek(t, s, private+1, 'f')
	if s.m.Resident() != PageSize {
		t.Errorf("%d bytes resident of one page of a file", s.m.Resident())
	}
	poke(t, s, private+2, 'I')
	poke(t, s, shared+PageSize+1, 'F')
	peek(t, s, private+1, 'f')
	expect(t, "page out", s.PageOut(shared, 3*PageSize), 0)
	if res, err := s.Resident(shared, 3*PageSize); err != nil || res[0] || res[1] || res[2] {
		t.Error(res, err)
	}
	before := s.Faults()
	peek(t, s, shared+PageSize+2, 'i')
	if d := s.Faults().Major - before.Major; d != 1 || s.m.Paging() != (PagingStats{Reclaimed: 1, WrittenBack: 1}) {
		t.Errorf("%d major faults, %+v", d, s.m.Paging())
	}
	b := make([]byte, 20)
	if n, err := o.ReadAt(b, PageSize); n != 20 || err != nil || string(b[:5]) != "\x00File" {
		t.Error(n, err, b)
	}
	if n, err := o.ReadAt(b, 2*PageSize); n != 10 || err != io.EOF {
		t.Error(n, err)
	}
	if _, err := o.ReadAt(b, 3*PageSize); err != io.EOF {
		t.Error(err)
	}
	_, err = o.ReadAt(b, -1)
	expect(t, "read before the beginning", err, syscall.EINVAL)
	_, err = o.WriteAt(b, maxObject)
	expect(t, "write behind all", err, syscall.EFBIG)
	expect(t, "truncate", o.Truncate(PageSize+2), 0)
	expect(t, "grow", o.Truncate(4*PageSize), 0)
	peek(t, s, shared+PageSize+1, 'F')
	peek(t, s, shared+PageSize+2, 0)
	peek(t, s, private+2, 'I')
	if _, err := o.WriteAt([]byte{1}, 5*PageSize-1); err != nil || o.Size() != 5*PageSize {
		t.Error(err, o.Size())
	}
	expect(t, "truncate", o.Truncate(0), 0)
	if err := s.ReadAt(b[:1], private); !errors.Is(err, syscall.EFAULT) {
		t.Error("a copy behind the end is still there", err)
	}
	o.Close()
	released(t, s)
}

// mremap: one mapping, to where there is room, and nothing is lost.
func TestMove(t *testing.T) {
	s, va := lazySpaceOf(t, 4, MapOptions{Prot: Read | Write})
	poke(t, s, va+PageSize, 5)
	var was, is [1]Frame
	if err := s.Range(va+PageSize, 1, RangeWrite, was[:]); err != nil {
		t.Fatal(err)
	}
	other := mapLazily(t, s, 2, MapOptions{Prot: Read | Write})
	poke(t, s, other, 6)
	var notes []VA
	s.Notify(0, 1<<47, func(at VA, _ uint64) { notes = append(notes, at) })
	if to, err := s.Move(va+PageSize, 2*PageSize, other); to != other || err != nil {
		t.Fatal(to, err)
	}
	peek(t, s, other, 5)
	if err := s.Range(other, 1, RangeSnapshot, is[:]); err != nil || is != was {
		t.Error(is, was, err)
	}
	if len(notes) != 2 || notes[0] != other || notes[1] != va+PageSize {
		t.Errorf("notices of %x", notes)
	}
	expect(t, "a read of what moved away", s.ReadAt(make([]byte, 1), va+PageSize), syscall.EFAULT)
	for _, c := range []struct {
		what   string
		va, to VA
		n      uint64
		want   syscall.Errno
	}{
		{"a hole", va, 0, 2 * PageSize, syscall.EFAULT},
		{"nothing", va, 0, 0, syscall.EINVAL},
		{"onto itself", other, other + PageSize, 2 * PageSize, syscall.EINVAL},
		{"from inside a page", other + 1, 0, PageSize, syscall.EINVAL},
		{"to inside a page", other, va + 1, PageSize, syscall.EINVAL},
		{"above all", other, 1 << 47, PageSize, syscall.ENOMEM},
	} {
		_, err := s.Move(c.va, c.n, c.to)
		expect(t, c.what, err, c.want)
	}
	released(t, s)
}
