package mem

import (
	"bytes"
	"errors"
	"runtime"
	"syscall"
	"testing"
)

// lazySpaceOf is a space and n pages that it maps lazily.
func lazySpaceOf(t *testing.T, n uint64, o MapOptions) (*Space, VA) {
	t.Helper()
	s := NewSpace(New(64 << 20))
	return s, mapLazily(t, s, n, o)
}

func mapLazily(t *testing.T, s *Space, n uint64, o MapOptions) VA {
	t.Helper()
	o.Lazy = true
	va, err := s.MapWith(n*s.m.PageSize(), o)
	if err != nil {
		t.Fatal(err)
	}
	return va
}

// released checks that nothing is left of a space that ends.
func released(t *testing.T, spaces ...*Space) {
	t.Helper()
	for _, s := range spaces {
		s.Release()
	}
	m := spaces[0].m
	if m.Used() != 0 || m.Resident() != 0 || m.Swapped() != 0 || len(m.lazy.frames) != 0 || m.lazy.newest != nil || len(m.free) != 1 {
		t.Errorf("left: %d bytes used, %d resident, %d in swap, %d frames, %d extents", m.Used(), m.Resident(), m.Swapped(), len(m.lazy.frames), len(m.free))
	}
}

func expect(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// A snapshot tells what is there and touches nothing; holes are absent.
func TestRangeSnapshot(t *testing.T) {
	s, va := lazySpaceOf(t, 4, MapOptions{Prot: Read | Write})
	if err := s.WriteAt([]byte{1}, va); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAt(make([]byte, 1), va+PageSize); err != nil {
		t.Fatal(err)
	}
	if err := s.Unmap(va+2*PageSize, PageSize); err != nil {
		t.Fatal(err)
	}
	before := s.Faults()
	out := make([]Frame, 6)
	if err := s.Range(va, 6*PageSize, RangeSnapshot|RangeWrite, out); err != nil {
		t.Fatal(err)
	}
	if !out[0].Present || !out[0].Writable || !out[1].Present || out[1].Writable || out[2] != (Frame{}) || out[3] != (Frame{}) || out[5] != (Frame{}) {
		t.Errorf("%+v", out)
	}
	if s.Faults() != before || before != (Faults{Minor: 2}) {
		t.Errorf("faults %+v, before %+v", s.Faults(), before)
	}
	released(t, s)
}

// Without a snapshot pages are made: the page of zeroes for a read, one of its own for a write.
func TestRangeFaults(t *testing.T) {
	s, va := lazySpaceOf(t, 3, MapOptions{Prot: Read | Write})
	var notes []VA
	s.Notify(va, 3*PageSize, func(at VA, n uint64) { notes = append(notes, at) })
	out := make([]Frame, 3)
	if err := s.Range(va+5, 2*PageSize, 0, out); err != nil {
		t.Fatal(err)
	}
	if out[0].PA != out[1].PA || out[0].Writable || !out[0].Present || s.m.Resident() != PageSize {
		t.Errorf("reads: %+v, %d bytes resident", out, s.m.Resident())
	}
	if err := s.Range(va, PageSize, RangeWrite, out[:1]); err != nil {
		t.Fatal(err)
	}
	if out[0].PA == out[1].PA || !out[0].Writable || s.Faults() != (Faults{Minor: 4, COW: 1}) {
		t.Errorf("a write: %+v, faults %+v", out[0], s.Faults())
	}
	if len(notes) != 1 || notes[0] != va {
		t.Errorf("notices of %x", notes)
	}
	if err := s.Range(va, PageSize, RangeWrite, out[1:2]); err != nil || out[1] != out[0] {
		t.Errorf("again: %+v, %v", out[1], err)
	}
	released(t, s)
}

// What cannot be found: EFAULT, and EPERM for a write where the mapping is read-only.
func TestRangeErrors(t *testing.T) {
	s, va := lazySpaceOf(t, 4, MapOptions{Prot: Read | Write})
	ro := mapLazily(t, s, 2, MapOptions{Prot: Read})
	o, err := s.m.NewShared(3 * PageSize)
	if err != nil {
		t.Fatal(err)
	}
	sh := mapLazily(t, s, 3, MapOptions{Prot: Read | Write, Object: o})
	out := make([]Frame, 4)
	if err := s.Range(sh, 3*PageSize, RangeWrite, out); err != nil {
		t.Fatal(err)
	}
	expect(t, "truncate", o.Truncate(PageSize+1), 0)
	expect(t, "unmap", s.Unmap(va+PageSize, PageSize), 0)
	expect(t, "protect", s.Protect(va+2*PageSize, PageSize, 0), 0)
	for _, c := range []struct {
		what string
		va   VA
		n    uint64
		how  RangeFlags
		want syscall.Errno
	}{
		{"a hole", va, 2 * PageSize, 0, syscall.EFAULT},
		{"no rights", va + 2*PageSize, 1, 0, syscall.EFAULT},
		{"a page behind one without rights", va + 3*PageSize, 1, RangeWrite, 0},
		{"a write to a read-only mapping", ro, 1, RangeWrite, syscall.EPERM},
		{"a read of it", ro, 2 * PageSize, 0, 0},
		{"a write to it, there", ro, 1, RangeWrite, syscall.EPERM},
		{"an object's page, partly cut off", sh + PageSize, PageSize, RangeWrite, 0},
		{"an object's page, cut off", sh + PageSize, 2 * PageSize, 0, syscall.EFAULT},
		{"a snapshot of it", sh, 3 * PageSize, RangeSnapshot, 0},
		{"nothing", va, 0, 0, syscall.EINVAL},
		{"a wrap", VA(^uint64(0)), 2, 0, syscall.EINVAL},
		{"above all", 1 << 47, 1, 0, syscall.EFAULT},
	} {
		expect(t, c.what, s.Range(c.va, c.n, c.how, out), c.want)
	}
	o.Close()
	released(t, s)
}

// A write breaks copy-on-write, and the other process keeps what it had.
func TestRangeBreaksCopyOnWrite(t *testing.T) {
	s, va := lazySpaceOf(t, 2, MapOptions{Prot: Read | Write})
	if err := s.WriteAt(bytes.Repeat([]byte{7}, 2*PageSize), va); err != nil {
		t.Fatal(err)
	}
	var notes int
	s.Notify(va, 2*PageSize, func(VA, uint64) { notes++ })
	child, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if notes != 1 || s.m.Resident() != 2*PageSize {
		t.Errorf("%d notices of the fork, %d bytes resident", notes, s.m.Resident())
	}
	a, b := make([]Frame, 1), make([]Frame, 1)
	if err := s.Range(va, 1, 0, a); err != nil || a[0].Writable {
		t.Errorf("a read: %+v, %v", a[0], err)
	}
	if err := s.Range(va, 1, RangeWrite, a); err != nil {
		t.Fatal(err)
	}
	if err := child.Range(va, 1, RangeWrite, b); err != nil {
		t.Fatal(err)
	}
	if a[0].PA == b[0].PA || !a[0].Writable || !b[0].Writable || notes != 2 || s.Faults().COW != 1 || child.Faults().COW != 0 {
		t.Errorf("%+v and %+v, %d notices, %+v and %+v", a[0], b[0], notes, s.Faults(), child.Faults())
	}
	s.m.Write(a[0].PA, []byte{9})
	got := make([]byte, 1)
	if err := child.ReadAt(got, va); err != nil || got[0] != 7 {
		t.Errorf("the child reads %d, %v", got[0], err)
	}
	released(t, s, child)
}

// A mapping of 512 GiB costs what is touched of it. What other goroutines of the test process
// allocate meanwhile counts too, so the least of a few tries is judged.
func TestLazyMappingCost(t *testing.T) {
	const tries = 5
	for _, c := range []struct {
		what   string
		stride uint64
		limit  int64 // bytes for each page, its own among them
	}{{"neighbours", PageSize, 5000}, {"one in 16 MiB", 16 << 20, 10000}} {
		least := costOfLazyMapping(t, c.stride)
		for range tries - 1 {
			cost := costOfLazyMapping(t, c.stride)
			for i := range cost {
				least[i] = min(least[i], cost[i])
			}
		}
		t.Logf("%s: %d bytes untouched, %d for each touched page, %d of them left", c.what, least[0], least[1], least[2])
		if least[0] > 4096 {
			t.Errorf("512 GiB that nobody touches cost %d bytes", least[0])
		}
		if least[1] > c.limit {
			t.Errorf("%s: %d bytes for each touched page, over %d", c.what, least[1], c.limit)
		}
		if least[2] > 200 {
			t.Errorf("%s: %d bytes for each page that was touched are left", c.what, least[2])
		}
	}
}

// costOfLazyMapping returns what 512 GiB cost, in bytes of heap: untouched; each page that was
// touched, one in every stride bytes; and each of those once all is unmapped.
func costOfLazyMapping(t *testing.T, stride uint64) [3]int64 {
	heap := func() int64 {
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return int64(ms.HeapAlloc)
	}
	const pages = 8192
	s := NewSpace(New(1 << 40))
	empty := heap()
	va := mapLazily(t, s, 512<<30>>PageShift, MapOptions{Prot: Read | Write})
	mapped := heap()
	for i := range uint64(pages) {
		if err := s.WriteAt([]byte{1}, va+VA(i*stride)); err != nil {
			t.Fatal(err)
		}
	}
	touched := heap()
	if err := s.Unmap(va, 512<<30); err != nil {
		t.Fatal(err)
	}
	unmapped := heap()
	released(t, s)
	return [3]int64{mapped - empty, (touched - mapped) / pages, (unmapped - empty) / pages}
}
