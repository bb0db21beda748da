package mem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWatch(t *testing.T) {
	m := New(16 << 20)
	pa := mustAlloc(t, m, 64<<10, 0)
	var got []uint64
	h := func(arg uint64) { got = append(got, arg) }
	store := func(at PA, n int, want ...uint64) {
		t.Helper()
		got = nil
		if !m.DMAStore(at, make([]byte, n)) {
			t.Error("store failed")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("store of %d at +%#x: %s", n, uint64(at-pa), d)
		}
	}
	a := m.Watch(pa+64, 64, h, 1)
	b := m.Watch(pa+4000, 8192, h, 2) // three pages
	c := m.Watch(pa+100, 4, h, 3)
	store(pa, 64)
	store(pa+63, 2, 1)
	store(pa+103, 1, 1, 3)
	store(pa+128, 8)
	store(pa+64, 9000, 1, 2, 3) // each once
	store(pa+8191, 1, 2)
	store(pa+4000+8192, 1)
	m.Unwatch(a)
	m.Unwatch(a)
	store(pa+64, 64, 3)
	a = m.Watch(pa+64, 64, h, 4)
	store(pa+64, 64, 3, 4)
	m.Write(pa+64, make([]byte, 64))
	if len(got) != 2 {
		t.Error("a store of a core woke a watcher")
	}
	m.Unwatch(b)
	m.Unwatch(c)
	m.Unwatch(a)
	store(pa, 64<<10)
}

func TestHandlersMayWatchAndUnwatch(t *testing.T) {
	m := New(16 << 20)
	pa := mustAlloc(t, m, 4096, 0)
	var got []string
	var a, b, c int
	a = m.Watch(pa, 8, func(uint64) {
		got = append(got, "a")
		m.Unwatch(a)
		m.Unwatch(b)
		c = m.Watch(pa, 8, func(uint64) { got = append(got, "c"); m.Unwatch(c) }, 0)
		m.DMAStore(pa, make([]byte, 8)) // a store inside a store
	}, 0)
	b = m.Watch(pa, 8, func(uint64) { got = append(got, "b") }, 0)
	m.DMAStore(pa, make([]byte, 8))
	m.DMAStore(pa, make([]byte, 8))
	if d := cmp.Diff([]string{"a", "c"}, got); d != "" {
		t.Error(d)
	}
}

// Watches behave as a list that every store is compared with.
func TestWatchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(16 << 20)
		pa, err := m.Alloc(5<<20, 0)
		if err != nil {
			t.Fatal(err)
		}
		type rec struct {
			id     int
			lo, hi PA
			arg    uint64
		}
		var model []rec
		var got []uint64
		rng := rapid.Custom(func(t *rapid.T) [2]int {
			off := rapid.IntRange(0, 20<<10).Draw(t, "off")
			if rapid.Bool().Draw(t, "far") {
				off += chunkSize - 10<<10
			}
			return [2]int{off, rapid.IntRange(1, 9000).Draw(t, "n")}
		})
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			r := rng.Draw(t, "range")
			lo, hi := pa+PA(r[0]), pa+PA(r[0]+r[1])
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op == 0:
				id := m.Watch(lo, r[1], func(arg uint64) { got = append(got, arg) }, uint64(i))
				model = append(model, rec{id, lo, hi, uint64(i)})
			case op == 1 && len(model) > 0:
				k := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				m.Unwatch(model[k].id)
				model = append(model[:k], model[k+1:]...)
			default:
				got = got[:0]
				m.DMAStore(lo, make([]byte, r[1]))
				want := map[uint64]bool{}
				for _, w := range model {
					if w.lo < hi && lo < w.hi {
						want[w.arg] = true
					}
				}
				for _, arg := range got {
					if !want[arg] {
						t.Fatalf("%d was called twice or in vain", arg)
					}
					delete(want, arg)
				}
				if len(want) > 0 {
					t.Fatalf("%v were not called", want)
				}
			}
		}
	})
}

func TestStoresAndWatchesDoNotAllocate(t *testing.T) {
	m := New(16 << 20)
	pa := mustAlloc(t, m, 64<<10, 0)
	n := 0
	h := func(uint64) { n++ }
	cqe := make([]byte, 64)
	for i := range PA(500) {
		m.Watch(pa+8192+i*64, 64, h, 0)
	}
	work := func() {
		id := m.Watch(pa+64, 64, h, 1)
		m.DMAStore(pa+64, cqe)
		m.Unwatch(id)
		m.DMAStore(pa+8192, cqe)
	}
	work()
	if a := testing.AllocsPerRun(100, work); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkDMAStore(b *testing.B) {
	m := New(16 << 20)
	pa, _ := m.Alloc(64<<10, 0)
	cqe := make([]byte, 64)
	b.Run("unwatched", func(b *testing.B) {
		for i := range b.N {
			m.DMAStore(pa+PA(i&1023)*64, cqe)
		}
	})
	for i := range PA(1024) {
		m.Watch(pa+i*64, 64, func(uint64) {}, 0)
	}
	b.Run("64 watches a page", func(b *testing.B) {
		for i := range b.N {
			m.DMAStore(pa+PA(i&1023)*64, cqe)
		}
	})
}

func BenchmarkWatch(b *testing.B) {
	m := New(16 << 20)
	pa, _ := m.Alloc(64<<10, 0)
	h := func(uint64) {}
	b.ReportAllocs()
	for range b.N {
		m.Unwatch(m.Watch(pa, 64, h, 0))
	}
}
