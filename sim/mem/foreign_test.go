package mem

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// fakeProcess is a Foreign over pages in a map.
type fakeProcess struct {
	pages map[VA][]byte
	calls int
}

var errHole = errors.New("hole")

func newFake(start VA, pages int) *fakeProcess {
	f := &fakeProcess{pages: map[VA][]byte{}}
	for i := range pages {
		f.pages[start+VA(i*PageSize)] = make([]byte, PageSize)
	}
	return f
}

func (f *fakeProcess) each(va VA, p []byte, move func(mem, p []byte)) error {
	f.calls++
	for len(p) > 0 {
		b, ok := f.pages[va&^(PageSize-1)]
		if !ok {
			return errHole
		}
		b = b[va&(PageSize-1):]
		n := min(len(b), len(p))
		move(b[:n], p[:n])
		p, va = p[n:], va+VA(n)
	}
	return nil
}

func (f *fakeProcess) ReadAt(va VA, p []byte) error {
	return f.each(va, p, func(m, p []byte) { copy(p, m) })
}

func (f *fakeProcess) WriteAt(va VA, p []byte) error {
	return f.each(va, p, func(m, p []byte) { copy(m, p) })
}

// prober says what Probe is asked.
type prober struct {
	*fakeProcess
	va   VA
	n    uint64
	prot Prot
	err  error
}

func (p *prober) Probe(va VA, n uint64, prot Prot) error {
	p.va, p.n, p.prot = va, n, prot
	return p.err
}

const heap = VA(0x5555_0000_0000)

func foreignSpace(t *testing.T, m *Memory, f Foreign) *Space {
	t.Helper()
	s, err := NewForeignSpace(m, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestForeignPagesAreReachedByDMA(t *testing.T) {
	m := New(16 << 20)
	f := newFake(heap, 4)
	s := foreignSpace(t, m, f)
	pages, err := s.Pin(heap+100, 3*PageSize, Read|Write)
	if err != nil || len(pages) != 4 || s.Pinned != 4 {
		t.Fatalf("%v, %d pages, %d pinned", err, len(pages), s.Pinned)
	}
	for i, pa := range pages {
		if pa != pages[0]+PA(i*PageSize) {
			t.Fatalf("page %d is at %#x, the first at %#x", i, uint64(pa), uint64(pages[0]))
		}
	}
	if pages[0]&(1<<21-1) != PA(heap&(1<<21-1)) {
		t.Errorf("%#x is not aligned as %#x", uint64(pages[0]), uint64(heap))
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 512)
	f.calls = 0
	if !m.DMAStore(pages[0]+PageSize-8, text) || f.calls != 1 {
		t.Fatalf("store over three pages failed or took %d calls", f.calls)
	}
	got := make([]byte, len(text))
	if !m.Read(pages[0]+PageSize-8, got) || !bytes.Equal(got, text) {
		t.Error("other bytes come back")
	}
	if err := s.ReadAt(got[:5], heap+PageSize-8); err != nil || string(got[:5]) != "01234" {
		t.Errorf("through the space: %q, %v", got[:5], err)
	}
	if err := s.WriteAt([]byte("new"), heap+PageSize); err != nil {
		t.Error(err)
	}
	if !m.Read(pages[1], got[:3]) || string(got[:3]) != "new" {
		t.Error("a write through the space is not seen by DMA")
	}
	if m.Window(pages[0], 8) != nil || s.Window(heap, 8, Read) != nil {
		t.Error("a window into another process")
	}
	if m.Used() != 0 {
		t.Errorf("%d bytes of our memory are used", m.Used())
	}
}

func TestForeignAccessNeedsAPin(t *testing.T) {
	m := New(16 << 20)
	f := newFake(heap, 600)
	s := foreignSpace(t, m, f)
	a, err := s.Pin(heap, 600*PageSize, Read)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Pin(heap+PageSize, PageSize, Read)
	if err != nil || b[0] != a[1] {
		t.Fatalf("%v: a page has two addresses", err)
	}
	buf := make([]byte, 2*PageSize)
	for _, x := range []struct {
		what string
		pa   PA
		n    int
		want bool
	}{
		{"all pinned", a[0], 2 * PageSize, true},
		{"past the end", a[599], PageSize + 1, false},
		{"before the start", a[0] - 1, 2, false},
		{"another slot", a[0] + 1<<foreignBits, 8, false},
		{"no such space", ^PA(0) - 8, 8, false},
		{"wraps", ^PA(0), 8, false},
	} {
		if m.Read(x.pa, buf[:x.n]) != x.want || m.Write(x.pa, buf[:x.n]) != x.want || m.DMAStore(x.pa, buf[:x.n]) != x.want {
			t.Errorf("%s: want %v", x.what, x.want)
		}
	}
	s.Unpin(a)
	if m.Read(a[0], buf[:8]) || m.Read(a[599], buf[:8]) {
		t.Error("an unpinned page is read")
	}
	if !m.Read(a[1], buf[:8]) {
		t.Error("a page pinned twice went with the first unpin")
	}
	s.Unpin(b)
	if m.Read(a[1], buf[:8]) || s.Pinned != 0 {
		t.Error("a page outlives its pins")
	}
}

func TestForeignErrorsAreAborts(t *testing.T) {
	m := New(16 << 20)
	f := newFake(heap, 4)
	s := foreignSpace(t, m, f)
	_, err := s.Pin(heap, 5*PageSize, Read)
	wantErrno(t, err, syscall.EFAULT)
	_, err = s.Pin(heap, 0, Read)
	wantErrno(t, err, syscall.EINVAL)
	_, err = s.Pin(1<<foreignBits-PageSize, 2*PageSize, Read)
	wantErrno(t, err, syscall.EFAULT)
	_, err = s.Map(PageSize, Read)
	wantErrno(t, err, syscall.EINVAL)
	wantErrno(t, s.Unmap(heap, PageSize), syscall.EINVAL)
	if s.Pinned != 0 {
		t.Errorf("%d pages pinned by failures", s.Pinned)
	}
	pages, err := s.Pin(heap, 4*PageSize, Read)
	if err != nil {
		t.Fatal(err)
	}
	delete(f.pages, heap+2*PageSize)
	b := make([]byte, PageSize+1)
	if m.Read(pages[1], b) || m.Write(pages[2], b[:1]) || m.DMAStore(pages[1], b) {
		t.Error("memory that the program has unmapped answers")
	}
	if !m.Read(pages[3], b[:8]) || !s.Mapped(heap, 2*PageSize, Read) || s.Mapped(heap, 4*PageSize, Read) {
		t.Error("the rest is not there")
	}
}

func TestForeignProbe(t *testing.T) {
	m := New(16 << 20)
	p := &prober{fakeProcess: newFake(heap, 4)}
	s := foreignSpace(t, m, p)
	if _, err := s.Pin(heap+8, PageSize, Read|Write); err != nil {
		t.Fatal(err)
	}
	if p.va != heap || p.n != 2*PageSize || p.prot != Read|Write || p.calls != 0 {
		t.Errorf("asked for %#x, %d bytes, rights %d; %d reads", uint64(p.va), p.n, p.prot, p.calls)
	}
	p.err = errHole
	_, err := s.Pin(heap, PageSize, Read)
	wantErrno(t, err, syscall.EFAULT)
}

func TestForeignSlotsAreReused(t *testing.T) {
	m := New(16 << 20)
	a, b := newFake(heap, 1), newFake(heap, 1)
	sa, sb := foreignSpace(t, m, a), foreignSpace(t, m, b)
	pa, err := sa.Pin(heap, 8, Read)
	if err != nil {
		t.Fatal(err)
	}
	pb, err := sb.Pin(heap, 8, Read)
	if err != nil || pa[0] == pb[0] {
		t.Fatalf("%v: two processes share %#x", err, uint64(pa[0]))
	}
	sa.Release()
	_, err = sa.Pin(heap, 8, Read)
	wantErrno(t, err, syscall.EFAULT)
	if c := foreignSpace(t, m, newFake(heap, 1)); c.x.slot == sa.x.slot {
		t.Fatal("addresses are given away that are still pinned")
	}
	sa.Unpin(pa)
	if c := foreignSpace(t, m, newFake(heap, 1)); c.x.slot != sa.x.slot {
		t.Error("the slot is not used again")
	}
	if m.Read(pa[0], make([]byte, 8)) {
		t.Error("the old address reaches the new process without a pin")
	}
	sb.Unpin(pb)
}

func BenchmarkForeignStore(b *testing.B) {
	m := New(16 << 20)
	s, err := NewForeignSpace(m, newFake(heap, 4))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := s.Pin(heap, 4*PageSize, Read)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		m.DMAStore(pages[1], buf)
	}
}
