package sim

// slabBlock is how many values a Slab allocates at a time; a power of two.
const slabBlock = 16

// Slab holds values that come and go, such as the requests that a unit has under way, and
// names each by an index, which fits the word of an event. Indices are used again, the one
// given back last first, so a run that has reached its greatest number of values at once
// allocates nothing more. The zero Slab is empty and ready.
//
// Values never move: a pointer from At stays valid for as long as the slab. Neither Put nor
// Get changes a value, so that a buffer in it can be used again; a holder that
// puts a value back clears the pointers in it that must not keep things alive.
type Slab[T any] struct {
	blocks []*[slabBlock]T
	free   []uint32 // indices that were given back
	n      uint32   // indices that were ever taken
}

// Get takes an index that is free. Its value is zero, or as its last holder left it.
func (s *Slab[T]) Get() uint32 {
	if len(s.free) == 0 {
		s.grow()
	}
	n := len(s.free) - 1
	i := s.free[n]
	s.free = s.free[:n]
	return i
}

// grow frees an index that was never taken.
//
//go:noinline
func (s *Slab[T]) grow() {
	if s.n%slabBlock == 0 {
		s.blocks = append(s.blocks, new([slabBlock]T))
	}
	s.n++
	s.Put(s.n - 1)
}

// Put gives an index back. Its holder does so once.
func (s *Slab[T]) Put(i uint32) { s.free = append(s.free, i) }

// At is the value at an index below Len.
func (s *Slab[T]) At(i uint32) *T { return &s.blocks[i/slabBlock][i%slabBlock] }

// Len is how many values there are, held or given back.
func (s *Slab[T]) Len() int { return int(s.n) }
