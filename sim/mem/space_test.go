package mem

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newSpace(t *testing.T, size uint64) *Space {
	t.Helper()
	return NewSpace(New(size))
}

func mustMap(t *testing.T, s *Space, n uint64, prot Prot) VA {
	t.Helper()
	va, err := s.Map(n, prot)
	if err != nil {
		t.Fatal(err)
	}
	return va
}

func TestMapErrnos(t *testing.T) {
	s := newSpace(t, 4<<20)
	_, err := s.Map(0, Read)
	wantErrno(t, err, syscall.EINVAL)
	_, err = s.Map(4<<20, Read)
	wantErrno(t, err, syscall.ENOMEM)
	_, err = s.Map(^uint64(0), Read)
	wantErrno(t, err, syscall.ENOMEM)
	va := mustMap(t, s, 3*PageSize, Read)
	wantErrno(t, s.Unmap(va+1, PageSize), syscall.EINVAL)
	wantErrno(t, s.Unmap(va, 0), syscall.EINVAL)
	wantErrno(t, s.Unmap(va, 4*PageSize), syscall.EINVAL)
	wantErrno(t, s.Unmap(va, ^uint64(0)), syscall.EINVAL)
	wantErrno(t, s.Protect(va-PageSize, PageSize, Read), syscall.EINVAL)
	if err := s.Unmap(va+PageSize, PageSize); err != nil {
		t.Error(err)
	}
	wantErrno(t, s.Unmap(va+PageSize, PageSize), syscall.EINVAL)
	wantErrno(t, s.Unmap(va, 3*PageSize), syscall.EINVAL)
}

// Pages of a size lie at multiples of it, and none is contiguous with the one before.
func TestMapPages(t *testing.T) {
	s := newSpace(t, 1<<30)
	for _, size := range []uint64{PageSize, 2 << 20} {
		mustMap(t, s, 3*PageSize, Read)
		va, err := s.MapPages(5*size-1, size, Read|Write)
		if err != nil {
			t.Fatal(err)
		}
		before := PA(0)
		for i := range uint64(5) {
			pa, n, prot, ok := s.Translate(va + VA(i*size))
			if !ok || prot != Read|Write || n != size || uint64(pa)%size != 0 || uint64(va)%size != 0 || i > 0 && pa == before+PA(size) {
				t.Errorf("page %d of %d bytes: %#x, %d contiguous, rights %d, after one at %#x", i, size, uint64(pa), n, prot, uint64(before))
			}
			before = pa
		}
		used := s.Memory().Used()
		if err := s.Unmap(va, 5*size); err != nil || s.Memory().Used() != used-5*size {
			t.Errorf("unmap: %v, %d bytes in use of %d", err, s.Memory().Used(), used)
		}
	}
	for _, size := range []uint64{0, 1024, 3 * PageSize} {
		_, err := s.MapPages(1, size, Read)
		wantErrno(t, err, syscall.EINVAL)
	}
	for _, n := range []uint64{1 << 30, ^uint64(0)} {
		_, err := s.MapPages(n, 2<<20, Read)
		wantErrno(t, err, syscall.ENOMEM)
	}
	_, err := s.MapPages(0, PageSize, Read)
	wantErrno(t, err, syscall.EINVAL)
}

func TestMappingsAreApart(t *testing.T) {
	s := newSpace(t, 16<<20)
	a := mustMap(t, s, 2*PageSize, Read|Write)
	b := mustMap(t, s, PageSize, Read|Write)
	wantErrno(t, s.WriteAt(make([]byte, PageSize+1), a+PageSize), syscall.EFAULT)
	wantErrno(t, s.ReadAt(make([]byte, 2), b-1), syscall.EFAULT)
	if err := s.Unmap(b, PageSize); err != nil {
		t.Fatal(err)
	}
	if c := mustMap(t, s, PageSize, Read); c == b {
		t.Error("an address is used twice")
	}
}

func TestPartsAndRights(t *testing.T) {
	s := newSpace(t, 16<<20)
	va := mustMap(t, s, 4*PageSize, Read|Write)
	all := bytes.Repeat([]byte{7}, 4*PageSize)
	if err := s.WriteAt(all, va); err != nil {
		t.Fatal(err)
	}
	if err := s.Protect(va+PageSize, PageSize, Read); err != nil {
		t.Fatal(err)
	}
	if err := s.Unmap(va+2*PageSize, PageSize); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAt(make([]byte, 2*PageSize), va); err != nil {
		t.Error(err)
	}
	wantErrno(t, s.WriteAt([]byte{1, 1}, va+PageSize-1), syscall.EFAULT)
	if b := make([]byte, 1); s.ReadAt(b, va+PageSize-1) != nil || b[0] != 7 {
		t.Error("a refused write left bytes")
	}
	wantErrno(t, s.ReadAt(make([]byte, 2), va+2*PageSize-1), syscall.EFAULT)
	if _, n, prot, ok := s.Translate(va + 8); !ok || n != PageSize-8 || prot != Read|Write {
		t.Errorf("first page: %d bytes, rights %d, %v", n, prot, ok)
	}
	if _, _, _, ok := s.Translate(va + 2*PageSize); ok {
		t.Error("a hole translates")
	}
	if w := s.Window(va+PageSize, PageSize, Read); len(w) != PageSize || w[0] != 7 {
		t.Error("no window on the read-only page")
	}
	if s.Window(va+PageSize, 8, Write) != nil || s.Window(va, PageSize+1, Read) != nil || s.Window(va+2*PageSize, 8, Read) != nil {
		t.Error("a window that should not be")
	}
}

func TestPin(t *testing.T) {
	s := newSpace(t, 16<<20)
	va := mustMap(t, s, 3*PageSize, Read|Write)
	ro := mustMap(t, s, PageSize, Read)
	_, err := s.Pin(va, 0, Read)
	wantErrno(t, err, syscall.EINVAL)
	_, err = s.Pin(va, ^uint64(0), Read)
	wantErrno(t, err, syscall.EINVAL)
	_, err = s.Pin(va, 4*PageSize, Read)
	wantErrno(t, err, syscall.EFAULT)
	_, err = s.Pin(ro, 8, Write)
	wantErrno(t, err, syscall.EFAULT)
	if s.Pinned != 0 {
		t.Errorf("%d pages pinned by failures", s.Pinned)
	}
	if err := s.WriteAt([]byte("alive"), va+PageSize); err != nil {
		t.Fatal(err)
	}
	pages, err := s.Pin(va+PageSize-1, PageSize+1, Read|Write)
	if err != nil || len(pages) != 2 || s.Pinned != 2 {
		t.Fatalf("%v, %d pages", err, len(pages))
	}
	again, err := s.Pin(va+PageSize, 1, Read)
	if err != nil {
		t.Fatal(err)
	}
	used := s.Memory().Used()
	if err := s.Unmap(va, 3*PageSize); err != nil {
		t.Fatal(err)
	}
	if got := used - s.Memory().Used(); got != PageSize {
		t.Errorf("unmapping freed %d bytes, two of three pages are pinned", got)
	}
	b := make([]byte, 5)
	if !s.Memory().Read(pages[1], b) || string(b) != "alive" {
		t.Errorf("the pinned page holds %q", b)
	}
	s.Release()
	s.Unpin(pages)
	if !s.Memory().Read(again[0], b) {
		t.Error("a page pinned twice went with the first unpin")
	}
	s.Unpin(again)
	if s.Memory().Used() != 0 || s.Pinned != 0 {
		t.Errorf("%d bytes used, %d pins", s.Memory().Used(), s.Pinned)
	}
}

func TestNotifiers(t *testing.T) {
	s := newSpace(t, 16<<20)
	va := mustMap(t, s, 8*PageSize, Read|Write)
	var got []string
	note := func(name string) Notifier {
		return func(start VA, n uint64) {
			if _, _, _, ok := s.Translate(start); !ok {
				t.Error("told after the change")
			}
			got = append(got, fmt.Sprintf("%s+%d:%d", name, (start-va)/PageSize, n/PageSize))
		}
	}
	s.Notify(va, 4*PageSize, note("a"))
	remove := s.Notify(va+2*PageSize, 6*PageSize, note("b"))
	check := func(want ...string) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		got = nil
	}
	if err := s.Unmap(va+3*PageSize, 2*PageSize); err != nil {
		t.Fatal(err)
	}
	check("a+3:1", "b+3:2")
	if err := s.Protect(va, PageSize, Read); err != nil {
		t.Fatal(err)
	}
	check("a+0:1")
	remove()
	remove()
	if err := s.Unmap(va+6*PageSize, PageSize); err != nil {
		t.Fatal(err)
	}
	check()
	s.Release()
	check("a+0:4")
}

func TestFragmentedMemoryIsMappedInPieces(t *testing.T) {
	m := New(3 << 20) // two megabytes to use
	s := NewSpace(m)
	var kept []VA
	for range 512 {
		kept = append(kept, mustMap(t, s, PageSize, Read|Write))
	}
	for i := 0; i < len(kept); i += 2 {
		if err := s.Unmap(kept[i], PageSize); err != nil {
			t.Fatal(err)
		}
	}
	va := mustMap(t, s, 256*PageSize, Read|Write)
	in := make([]byte, 256*PageSize)
	for i := range in {
		in[i] = byte(i >> 8)
	}
	out := make([]byte, len(in))
	if err := s.WriteAt(in, va); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAt(out, va); err != nil || !bytes.Equal(in, out) {
		t.Error("bytes differ", err)
	}
	_, err := s.Map(PageSize, Read)
	wantErrno(t, err, syscall.ENOMEM)
}

func Test64KHost(t *testing.T) {
	s := NewSpace(NewConfig(Config{Size: 16 << 20, PageSize: 64 << 10}))
	va := mustMap(t, s, 1, Read|Write)
	if err := s.WriteAt([]byte{1}, va+65535); err != nil {
		t.Error(err)
	}
	wantErrno(t, s.WriteAt([]byte{1}, va+65536), syscall.EFAULT)
	wantErrno(t, s.Unmap(va+4096, 4096), syscall.EINVAL)
	pages, err := s.Pin(va+5000, 10, Read)
	if err != nil || len(pages) != 1 || pages[0]%65536 != 0 {
		t.Errorf("%v, pages %x", err, pages)
	}
}
