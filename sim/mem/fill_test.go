package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestFillIsWrite does the same to two memories, filling one and writing the pattern to the
// other, and looks at the beginning of every page.
func TestFillIsWrite(t *testing.T) {
	const size = 128 << 20
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		filled, written := New(size), New(size)
		type run struct {
			pa PA
			n  int
		}
		var runs []run
		for range 30 {
			switch k := r.IntN(6); {
			case k < 2 || len(runs) == 0:
				n := (1 + r.IntN(10000)) * PageSize
				pa, err := filled.Alloc(uint64(n), 0)
				other, errOther := written.Alloc(uint64(n), 0)
				if pa != other || (err == nil) != (errOther == nil) {
					t.Fatalf("seed %d: allocated at %#x and %#x, %v and %v", seed, pa, other, err, errOther)
				}
				if err == nil {
					runs = append(runs, run{pa, n})
				}
			case k < 4:
				x := runs[r.IntN(len(runs))]
				pattern := make([]byte, 16<<r.IntN(4))
				for i := range pattern {
					pattern[i] = byte(r.Uint32())
				}
				filled.Fill(x.pa, x.n, pattern)
				for off := 0; off < x.n; off += PageSize {
					written.Write(x.pa+PA(off), bytes.Repeat(pattern, 256/len(pattern)))
				}
				clear(pattern) // the caller's to reuse
			case k == 4:
				x := runs[r.IntN(len(runs))]
				b, at := []byte{1, 2, 3}, x.pa+PA(r.IntN(x.n/PageSize)*PageSize+r.IntN(250))
				filled.DMAStore(at, b)
				written.DMAStore(at, b)
			default:
				i := r.IntN(len(runs))
				filled.Free(runs[i].pa, uint64(runs[i].n))
				written.Free(runs[i].pa, uint64(runs[i].n))
				runs = append(runs[:i], runs[i+1:]...)
			}
		}
		for _, x := range runs {
			var a, b [256]byte
			for pa := x.pa; pa < x.pa+PA(x.n); pa += PageSize {
				if !filled.Read(pa, a[:]) || !written.Read(pa, b[:]) || a != b {
					t.Fatalf("seed %d: memory at %#x of %d bytes at %#x differs", seed, pa, x.n, x.pa)
				}
			}
		}
	}
}

// TestFillBacksNothing: memory that a driver fills, and that is only read, costs nothing.
func TestFillBacksNothing(t *testing.T) {
	pattern := bytes.Repeat([]byte{1, 2, 3, 4}, 16)
	for _, size := range []int{PageSize, 128 << 10, MaxWindow, 512 << 20} {
		m := New(1 << 30)
		pa, err := m.Alloc(uint64(size), 0)
		if err != nil || !m.Fill(pa, size, pattern) {
			t.Fatal(err)
		}
		var b [100]byte
		if !m.Read(pa+PA(size-len(b)-5), b[:]) || !bytes.Equal(b[:], bytes.Repeat(pattern, 3)[192-5-len(b):192-5]) {
			t.Errorf("%d bytes: the end is % x", size, b)
		}
		if n := m.backed(); n > 0 {
			t.Errorf("%d bytes: %d are backed", size, n)
		}
		if m.Fill(pa+PA(size), PageSize, pattern) {
			t.Errorf("%d bytes: memory that is not allocated can be filled", size)
		}
	}
}

// backed is how many bytes of Go memory are behind pages.
func (m *Memory) backed() (n int) {
	seen := map[*backing]bool{}
	for _, c := range m.chunks {
		for _, x := range c.backings {
			if x != nil && !seen[x] {
				seen[x] = true
				n += len(x.b)
			}
		}
	}
	return n
}

// TestPagesGivenOutAgain: what is left of an allocation of which a page was freed does not see
// what is written to that page by its next owner, nor the other way round.
func TestPagesGivenOutAgain(t *testing.T) {
	for _, fill := range []bool{false, true} {
		m := New(8 << 20)
		s := NewSpace(m)
		va, err := s.Map(4*PageSize, Read|Write)
		if err != nil {
			t.Fatal(err)
		}
		pa, _, _, _ := s.Translate(va)
		if err := s.Unmap(va+PageSize, PageSize); err != nil {
			t.Fatal(err)
		}
		again, err := m.Alloc(PageSize, 0)
		if err != nil || again != pa+PageSize {
			t.Fatalf("the page at %#x was not given out again, but %#x: %v", pa+PageSize, again, err)
		}
		var want []byte
		if fill {
			want = bytes.Repeat([]byte{7, 8}, 2*PageSize)
			m.Fill(pa, len(want), want[:2])
		} else {
			want = make([]byte, 4*PageSize)
			for i := range want {
				want[i] = byte(i / 100)
			}
			m.Write(pa, want)
		}
		page, all := make([]byte, PageSize), make([]byte, len(want))
		if !m.Read(again, page) || !bytes.Equal(page, want[PageSize:2*PageSize]) || !m.Read(pa, all) || !bytes.Equal(all, want) {
			t.Errorf("fill %v: the pages do not hold what was written", fill)
		}
		if m.Window(pa, 2*PageSize) != nil {
			t.Errorf("fill %v: two allocations are one window", fill)
		}
	}
}
