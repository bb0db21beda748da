package mem

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"
)

// tables is a process whose page tables can be asked. Pages of cold are not present.
type tables struct {
	*fakeProcess
	cold, readOnly map[VA]bool
	touched        []VA
	watched        []bool
}

func newTables(pages int) *tables {
	return &tables{fakeProcess: newFake(heap, pages), cold: map[VA]bool{}, readOnly: map[VA]bool{}}
}

func (p *tables) Touch(va VA, n uint64, write bool, f func(VA, uint64, uint8)) error {
	for at := va; at < va+VA(n); at += PageSize {
		switch {
		case p.pages[at] == nil:
			return syscall.EFAULT
		case write && p.readOnly[at]:
			return syscall.EPERM
		}
		p.touched = append(p.touched, at)
		delete(p.cold, at)
		f(at, PageSize, 0)
	}
	return nil
}

func (p *tables) Resident(va VA, n uint64, f func(VA, bool, uint8)) {
	for at := va; at < va+VA(n); at += PageSize {
		if p.pages[at] != nil && !p.cold[at] {
			f(at, !p.readOnly[at], 0)
		}
	}
}

func (p *tables) Watch(on bool) { p.watched = append(p.watched, on) }

func TestForeignPagesAreFoundInThePageTables(t *testing.T) {
	m, p := New(16<<20), newTables(4)
	p.cold[heap+PageSize], p.readOnly[heap+2*PageSize] = true, true
	s := foreignSpace(t, m, p)
	if !s.HasPageTables() || foreignSpace(t, m, newFake(heap, 1)).HasPageTables() || !NewSpace(m).HasPageTables() {
		t.Error("which spaces have page tables")
	}
	out := make([]Frame, 5)
	for _, c := range []struct {
		what    string
		from, n uint64 // pages
		how     RangeFlags
		want    error
		present []bool
		touched int
	}{
		{"snapshot", 0, 5, RangeSnapshot, nil, []bool{true, false, true, true, false}, 0},
		{"hole", 3, 2, 0, syscall.EFAULT, nil, 1},
		{"read-only page for writing", 1, 2, RangeWrite, syscall.EPERM, nil, 1},
		{"read-only page for reading", 2, 2, 0, nil, []bool{true, true}, 2},
		{"all", 0, 4, 0, nil, []bool{true, true, true, true}, 4},
	} {
		p.touched = nil
		err := s.Range(heap+VA(c.from*PageSize), c.n*PageSize, c.how, out)
		if !errors.Is(err, c.want) || len(p.touched) != c.touched {
			t.Errorf("%s: %v, %d pages touched", c.what, err, len(p.touched))
		}
		for i, want := range c.present {
			at := heap + VA(c.from+uint64(i))*PageSize
			if f := out[i]; f.Present != want || want && f.PA != s.x.pa(at) {
				t.Errorf("%s: page %d is %+v", c.what, i, f)
			}
		}
	}
	for _, va := range []VA{1 << 47, 1<<47 - PageSize/2, 1 << 60} {
		if err := s.Range(va, PageSize, 0, out); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("above the addresses of programs, %#x: %v", uint64(va), err)
		}
	}
	s.Release()
	if err := s.Range(heap, PageSize, 0, out); !errors.Is(err, syscall.EFAULT) {
		t.Errorf("the process has ended: %v", err)
	}
}

// What a notifier covers a device reaches without a pin, and nothing else.
func TestForeignPagesAreReachedWhileTheyAreWatched(t *testing.T) {
	m, p := New(16<<20), newTables(4)
	s := foreignSpace(t, m, p)
	copy(p.pages[heap+PageSize], "second page")
	b := make([]byte, 6)
	read := func(off VA, n int) bool { return m.Read(s.x.pa(heap+off), b[:n]) }
	if read(PageSize, 6) {
		t.Error("a page is read that nobody watches")
	}
	first := s.Notify(heap+PageSize, PageSize, func(VA, uint64) {})
	if !read(PageSize, 6) || !bytes.Equal(b, []byte("second")) {
		t.Errorf("a page that is watched: %q", b)
	}
	if read(PageSize-2, 4) || read(2*PageSize-2, 4) {
		t.Error("an access goes beyond what is watched")
	}
	second := s.Notify(heap+2*PageSize, PageSize, func(VA, uint64) {})
	if !read(2*PageSize-2, 4) {
		t.Error("an access over two ranges that are watched")
	}
	first()
	if read(PageSize, 6) || !read(2*PageSize, 6) {
		t.Error("after the end of one notifier")
	}
	second()
	if read(2*PageSize, 6) || s.Watched() || !slices.Equal(p.watched, []bool{true, false}) {
		t.Errorf("after the end of all: the process was told %v", p.watched)
	}
}

func TestInvalidateIsClipped(t *testing.T) {
	s := foreignSpace(t, New(16<<20), newTables(4))
	type span struct {
		va VA
		n  uint64
	}
	var got []span
	s.Notify(heap+PageSize, 2*PageSize, func(va VA, n uint64) { got = append(got, span{va, n}) })
	for _, c := range []span{{heap, PageSize}, {heap + 3*PageSize, PageSize}, {1 << 47, PageSize}, {1 << 63, 1 << 63}, {heap, 0}} {
		if s.Invalidate(c.va, c.n); got != nil {
			t.Fatalf("%#x: the notifier is told %v", c, got)
		}
	}
	s.Invalidate(heap, 2*PageSize)
	s.Invalidate(0, ^uint64(0))
	s.Invalidate(heap+2*PageSize, ^uint64(0))
	if want := []span{{heap + PageSize, PageSize}, {heap + PageSize, 2 * PageSize}, {heap + 2*PageSize, PageSize}}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
