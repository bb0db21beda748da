package sim

import (
	"math/rand/v2"
	"testing"
)

func TestSlabGivesLowIndicesFirstAndTheLastReturnedAgain(t *testing.T) {
	var s Slab[int]
	for want := range uint32(3 * slabBlock) {
		if i := s.Get(); i != want {
			t.Fatalf("index %d of %d, want %d", i, s.Len(), want)
		}
	}
	s.Put(7)
	s.Put(3)
	if a, b, c := s.Get(), s.Get(), s.Get(); a != 3 || b != 7 || c != 3*slabBlock {
		t.Errorf("indices %d, %d, %d, want 3, 7, %d", a, b, c, 3*slabBlock)
	}
}

func TestSlabKeepsValuesWhereTheyAre(t *testing.T) {
	var s Slab[int]
	first := s.At(s.Get())
	*first = 42
	for range 10 * slabBlock {
		s.Get()
	}
	if s.At(0) != first || *s.At(0) != 42 {
		t.Error("the first value moved")
	}
	s.Put(0)
	if i := s.Get(); i != 0 || *s.At(i) != 42 {
		t.Error("Put or Get changed the value")
	}
}

// No index is held twice, whatever the order of Get and Put, and each holder finds its
// own value.
func TestSlabIndicesAreDistinct(t *testing.T) {
	var s Slab[uint64]
	rnd := rand.New(rand.NewPCG(1, 2))
	held := map[uint32]uint64{}
	var order []uint32
	for step := range uint64(20000) {
		if len(order) == 0 || rnd.IntN(100) < 52 {
			i := s.Get()
			if _, twice := held[i]; twice || int(i) >= s.Len() {
				t.Fatalf("step %d: index %d of %d is held", step, i, s.Len())
			}
			held[i], *s.At(i) = step, step
			order = append(order, i)
			continue
		}
		k := rnd.IntN(len(order))
		i := order[k]
		order[k] = order[len(order)-1]
		order = order[:len(order)-1]
		if *s.At(i) != held[i] {
			t.Fatalf("step %d: value %d at %d, want %d", step, *s.At(i), i, held[i])
		}
		delete(held, i)
		s.Put(i)
	}
	if len(held) < slabBlock {
		t.Fatalf("%d values in the end: the walk tested little", len(held))
	}
}

func TestSlabAllocatesNothingInTheLongRun(t *testing.T) {
	var s Slab[[4]uint64]
	churn := func() {
		var held [2 * slabBlock]uint32
		for k := range held {
			held[k] = s.Get()
		}
		for _, i := range held {
			s.Put(i)
		}
	}
	churn()
	if n := testing.AllocsPerRun(100, churn); n != 0 {
		t.Errorf("%v allocations in a round", n)
	}
}

// request is about what units keep in a slab.
type request struct {
	arg  uint64
	data [14]uint32
}

// The pair compares a slab with a slice and a list of free indices, as a unit would write
// them by hand.
func BenchmarkSlab(b *testing.B) {
	const depth = 24
	b.Run("slab", func(b *testing.B) {
		var s Slab[request]
		var held [depth]uint32
		for k := range held {
			held[k] = s.Get()
		}
		for n := range b.N {
			k := n % depth
			s.At(held[k]).arg++
			s.Put(held[k])
			held[k] = s.Get()
			s.At(held[k]).data[0]++
		}
	})
	b.Run("by hand", func(b *testing.B) {
		var s struct {
			values []request
			free   []uint32
		}
		get := func() uint32 {
			if n := len(s.free); n > 0 {
				i := s.free[n-1]
				s.free = s.free[:n-1]
				return i
			}
			s.values = append(s.values, request{})
			return uint32(len(s.values) - 1)
		}
		var held [depth]uint32
		for k := range held {
			held[k] = get()
		}
		for n := range b.N {
			k := n % depth
			s.values[held[k]].arg++
			s.free = append(s.free, held[k])
			held[k] = get()
			s.values[held[k]].data[0]++
		}
	})
}
