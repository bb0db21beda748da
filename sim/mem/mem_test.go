package mem

import (
	"bytes"
	"errors"
	"runtime"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func wantErrno(t *testing.T, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func mustAlloc(t *testing.T, m *Memory, n, align uint64) PA {
	t.Helper()
	pa, err := m.Alloc(n, align)
	if err != nil {
		t.Fatal(err)
	}
	return pa
}

func TestAllocErrnos(t *testing.T) {
	m := New(4 << 20)
	_, err := m.Alloc(0, 0)
	wantErrno(t, err, syscall.EINVAL)
	_, err = m.Alloc(4096, 24)
	wantErrno(t, err, syscall.EINVAL)
	_, err = m.Alloc(4<<20, 0)
	wantErrno(t, err, syscall.ENOMEM)
	_, err = m.Alloc(1<<63, 0)
	wantErrno(t, err, syscall.ENOMEM)
	_, err = m.Alloc(^uint64(0), 0)
	wantErrno(t, err, syscall.ENOMEM)
	if m.Used() != 0 {
		t.Errorf("%d bytes used", m.Used())
	}
}

func TestAllocationsAreWindows(t *testing.T) {
	m := New(256 << 20)
	mustAlloc(t, m, 4096, 0)
	for _, n := range []uint64{1, 4096, 5000, 1 << 20, chunkSize, chunkSize + 4096, 5 << 20, MaxWindow} {
		pa := mustAlloc(t, m, n, 0)
		w := m.Window(pa, int(n))
		if uint64(len(w)) != n {
			t.Fatalf("no window of %d bytes", n)
		}
		w[0], w[n-1] = 1, 2
		got := make([]byte, n)
		if !m.Read(pa, got) || got[0] != w[0] || got[n-1] != w[n-1] {
			t.Errorf("%d bytes: the window is not the memory", n)
		}
		if m.Window(pa, int(m.pages(n)<<PageShift)+1) != nil {
			t.Errorf("%d bytes: a window beyond what is allocated", n)
		}
	}
}

func TestAlignment(t *testing.T) {
	m := New(64 << 20)
	for _, align := range []uint64{1, 4096, 8192, 1 << 16, 1 << 21, 1 << 22} {
		mustAlloc(t, m, 4096, 0)
		if pa := mustAlloc(t, m, 12345, align); uint64(pa)%max(align, 4096) != 0 {
			t.Errorf("%#x is not aligned to %d", uint64(pa), align)
		}
	}
}

func TestReusedMemoryIsZero(t *testing.T) {
	m := New(8 << 20)
	pa := mustAlloc(t, m, 3<<20, 0)
	m.Write(pa, bytes.Repeat([]byte{0xaa}, 3<<20))
	m.Free(pa, 3<<20)
	if m.Read(pa, make([]byte, 1)) || m.Write(pa, []byte{1}) || m.Window(pa, 1) != nil || m.DMAStore(pa, []byte{1}) {
		t.Error("free memory can be used")
	}
	pa = mustAlloc(t, m, 3<<20, 0)
	got := make([]byte, 3<<20)
	if !m.Read(pa, got) || bytes.ContainsFunc(got, func(r rune) bool { return r != 0 }) {
		t.Error("not zero")
	}
	m.Free(pa, 3<<20)
	if len(m.free) != 1 || m.Used() != 0 {
		t.Errorf("%d extents and %d bytes used when all is free", len(m.free), m.Used())
	}
	defer func() {
		if recover() == nil {
			t.Error("freed twice unnoticed")
		}
	}()
	m.Free(pa, 4096)
}

func TestNothingIsMadeBeforeItIsUsed(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := New(1 << 40)
	s := NewSpace(m)
	va, err := s.Map(20<<30, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	for i := range VA(16) {
		if err := s.WriteAt([]byte{1}, va+i<<30); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 160<<20 {
		t.Errorf("20 GiB of which 16 pages are used take %d MiB", used>>20)
	}
}

// Random allocations never overlap, and freeing all leaves one extent.
func TestAllocProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewConfig(Config{Size: 32 << 20, PageSize: rapid.SampledFrom([]uint64{4096, 65536}).Draw(t, "page")})
		owner := make(map[PA]int)
		type run struct {
			pa PA
			n  uint64
		}
		var live []run
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				k := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				r := live[k]
				m.Free(r.pa, r.n)
				for pg := r.pa; pg < r.pa+PA(r.n); pg += PA(m.PageSize()) {
					delete(owner, pg)
				}
				live = append(live[:k], live[k+1:]...)
				continue
			}
			n := rapid.Uint64Range(1, 3<<20).Draw(t, "n")
			pa, err := m.Alloc(n, 1<<rapid.IntRange(0, 18).Draw(t, "align"))
			if err != nil {
				continue
			}
			for pg := pa; pg < pa+PA(n); pg += PA(m.PageSize()) {
				if o, ok := owner[pg]; ok {
					t.Fatalf("page %#x belongs to %d and to %d", uint64(pg), o, i)
				}
				owner[pg] = i
			}
			w := m.Window(pa, int(n))
			if w == nil {
				t.Fatalf("no window of %d bytes at %#x", n, uint64(pa))
			}
			if w[0] != 0 || w[n/2] != 0 || w[n-1] != 0 {
				t.Fatal("not zeroed")
			}
			w[0], w[n/2], w[n-1] = 1, 1, 1
			live = append(live, run{pa, n})
		}
		if m.Used() != uint64(len(owner))*m.PageSize() {
			t.Fatalf("%d bytes used by %d pages", m.Used(), len(owner))
		}
		for _, r := range live {
			m.Free(r.pa, r.n)
		}
		if len(m.free) != 1 {
			t.Fatalf("%d extents when all is free", len(m.free))
		}
	})
}

// The rings of 10,000 QPs fit in a gigabyte; a tenth of them in a tenth.
func TestRingsOfManyQPs(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := NewSpace(New(64 << 30))
	for range 1000 {
		for _, n := range []uint64{128 * 64, 64 * 16, 256 * 64, PageSize} { // SQ, RQ, CQ, doorbell records
			va, err := s.Map(n, Read|Write)
			if err != nil {
				t.Fatal(err)
			}
			w := s.Window(va, int(n), Write)
			for i := range w {
				w[i] = 0xff
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 100<<20 {
		t.Errorf("1000 QPs take %d MiB", used>>20)
	}
	runtime.KeepAlive(s)
}
