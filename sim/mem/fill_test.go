package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestFillIsWrite does the same to two memories, filling one and writing the pattern to the
// other, and looks at the beginning of every page. Only what is larger than MaxWindow is kept
// without a backing.
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

// TestFillBacksNothing: memory that a driver fills and nobody looks at costs nothing.
func TestFillBacksNothing(t *testing.T) {
	m := New(1 << 30)
	pa, err := m.Alloc(512<<20, 0)
	if err != nil || !m.Fill(pa, 512<<20, make([]byte, 64)) {
		t.Fatal(err)
	}
	backed := 0
	for _, c := range m.chunks {
		if c.b != nil {
			backed++
		}
	}
	if backed > 2 { // where the range begins and ends inside a chunk
		t.Errorf("%d chunks have a backing", backed)
	}
	if m.Fill(pa+512<<20, PageSize, make([]byte, 64)) {
		t.Error("memory that is not allocated can be filled")
	}
}
