package mem

import (
	"bytes"
	"errors"
	"math/rand"
	"syscall"
	"testing"
)

// outside is memory that may fail.
type outside struct {
	b    []byte
	fail bool
}

func (o *outside) ReadAt(va VA, p []byte) error {
	if o.fail {
		return syscall.EIO
	}
	if copy(p, o.b[va:]) != len(p) {
		panic("read beyond the range")
	}
	return nil
}

func (o *outside) WriteAt(va VA, p []byte) error {
	if o.fail {
		return syscall.EIO
	}
	if copy(o.b[va:], p) != len(p) {
		panic("write beyond the range")
	}
	return nil
}

func newOutside(n int) *outside { return &outside{b: make([]byte, n)} }

func TestForeignRanges(t *testing.T) {
	m := New(1 << 21)
	const base = PA(1 << 32)
	a, b, rom := newOutside(0x3000), newOutside(0x1000), newOutside(0x1000)
	rom.b[0] = 7
	for _, x := range []struct {
		pa   PA
		n    uint64
		prot Prot
		f    Foreign
		want error
	}{
		{base, 0x3000, Read | Write, a, nil},
		{base + 0x3000, 0x1000, Read | Write, b, nil},
		{base + 0x8000, 0x1000, Read, rom, nil},
		{base + 0x2fff, 1, Read, rom, syscall.EEXIST},
		{base - 1, 2, Read, rom, syscall.EEXIST},
		{base - 1, 1 << 20, Read, rom, syscall.EEXIST},
		{base + 0x9000, 0, Read, rom, syscall.EINVAL},
		{1<<21 - 1, 1, Read, rom, syscall.EINVAL},
		{0, 1, Read, rom, syscall.EINVAL},
		{1 << 62, 1, Read, rom, syscall.EINVAL},
		{1<<64 - 1, 2, Read, rom, syscall.EINVAL},
	} {
		if err := m.MapForeign(x.pa, x.n, x.prot, x.f); !errors.Is(err, x.want) {
			t.Errorf("%#x, %#x bytes: %v, want %v", x.pa, x.n, err, x.want)
		}
	}
	// Over the border of two ranges.
	text := []byte("over the border")
	if !m.DMAStore(base+0x2ffa, text) || string(a.b[0x2ffa:]) != "over t" || string(b.b[:9]) != "he border" {
		t.Errorf("%q %q", a.b[0x2ffa:], b.b[:9])
	}
	got := make([]byte, len(text))
	if !m.Read(base+0x2ffa, got) || !bytes.Equal(got, text) {
		t.Errorf("%q", got)
	}
	// Over the end, in a hole, without a right: nothing moves.
	for _, pa := range []PA{base + 0x3ffa, base - 1, base + 0x5000, base + 0x8000, base + 0x7fff, 1<<64 - 4} {
		if m.DMAStore(pa, text) || m.Write(pa, text) {
			t.Errorf("%#x was written to", pa)
		}
	}
	if rom.b[0] != 7 || !bytes.Equal(b.b[0xffa:], make([]byte, 6)) || a.b[0] != 0 {
		t.Error("a refused write left bytes")
	}
	if m.Read(base+0x3ffa, got) || !bytes.Equal(got, text) || !m.Read(base+0x8000, got[:1]) || got[0] != 7 {
		t.Errorf("%q", got)
	}
	a.fail = true
	if m.Read(base, got) || m.Write(base, got) || !m.Write(base+0x3000, got) {
		t.Error("a range that fails, or one beside it")
	}
	if err := m.UnmapForeign(base + 0x1000); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
	if err := m.UnmapForeign(base + 0x3000); err != nil || m.Write(base+0x3000, got) {
		t.Error("a range that is gone is written to:", err)
	}
	// The memory's own pages, and foreign spaces, are as before.
	pa, err := m.Alloc(PageSize, PageSize)
	if err != nil || !m.Write(pa, text) || !m.Read(pa, got) || !bytes.Equal(got, text) {
		t.Errorf("own memory: %v, %q", err, got)
	}
}

// TestForeignRangesAtRandom compares with a flat array and a map of rights.
func TestForeignRangesAtRandom(t *testing.T) {
	const pages, base = 64, PA(16 << PageShift)
	draw := rand.New(rand.NewSource(1))
	m := New(0)
	flat := make([]byte, pages<<PageShift)
	prots := make([]Prot, pages)
	starts := map[PA]int{}
	for range 20000 {
		at, n := draw.Intn(pages), 1+draw.Intn(8)
		pa := base + PA(at)<<PageShift
		switch draw.Intn(4) {
		case 0:
			free := at+n <= pages
			for i := at; free && i < at+n; i++ {
				free = prots[i] == 0
			}
			prot := Read | Prot(draw.Intn(2))*Write
			if at+n > pages {
				continue
			}
			o := &outside{b: flat[at<<PageShift : (at+n)<<PageShift]}
			if err := m.MapForeign(pa, uint64(n)<<PageShift, prot, o); (err == nil) != free {
				t.Fatalf("map of %d pages at %d: %v", n, at, err)
			} else if err == nil {
				starts[pa] = n
				for i := at; i < at+n; i++ {
					prots[i] = prot
				}
			}
		case 1:
			err := m.UnmapForeign(pa)
			if k := starts[pa]; (err == nil) != (k > 0) {
				t.Fatalf("unmap at %d: %v", at, err)
			}
			for i := at; i < at+starts[pa]; i++ {
				prots[i] = 0
			}
			delete(starts, pa)
		default:
			off := at<<PageShift + draw.Intn(1<<PageShift)
			p := make([]byte, 1+draw.Intn(3<<PageShift))
			prot := Read
			write := draw.Intn(2) == 0
			if write {
				prot = Write
				draw.Read(p)
			}
			can := off+len(p) <= len(flat)
			for i := off >> PageShift; can && i <= (off+len(p)-1)>>PageShift; i++ {
				can = prots[i]&prot == prot
			}
			before := bytes.Clone(flat)
			var ok bool
			if write {
				ok = m.DMAStore(base+PA(off), p)
				if ok {
					copy(before[off:], p)
				}
			} else {
				ok = m.Read(base+PA(off), p) && bytes.Equal(p, flat[off:off+len(p)])
			}
			if ok != can || !bytes.Equal(before, flat) {
				t.Fatalf("%d bytes at %#x, write %v: %v, want %v", len(p), off, write, ok, can)
			}
		}
	}
}

// BenchmarkForeignRange is a DMA write and read of 64 bytes.
func BenchmarkForeignRange(b *testing.B) {
	m := New(0)
	for i := range PA(20) {
		if err := m.MapForeign(i<<20, 1<<20, Read|Write, newOutside(1<<20)); err != nil {
			b.Fatal(err)
		}
	}
	var p [64]byte
	b.ReportAllocs()
	for i := range b.N {
		pa := PA(i&0xff)<<12 + 5<<20
		if !m.DMAStore(pa, p[:]) || !m.Read(pa, p[:]) {
			b.Fatal("not moved")
		}
	}
}
