package sim

// FIFO is a first-in-first-out queue in a ring of memory that it uses again: a run that has
// reached its greatest length allocates nothing more. The zero FIFO is empty and ready.
//
// Pop does not clear the memory of a value, so pointers in it keep things alive until the
// place is used again.
type FIFO[T any] struct {
	ring       []T // its length is 0 or a power of two
	head, tail uint32
}

// Len is how many values wait.
func (q *FIFO[T]) Len() int { return int(q.tail - q.head) }

// Cap is how many values there is room for.
func (q *FIFO[T]) Cap() int { return len(q.ring) }

// Push adds a value behind the others.
func (q *FIFO[T]) Push(x T) {
	if int(q.tail-q.head) == len(q.ring) {
		q.grow()
	}
	q.ring[int(q.tail)&(len(q.ring)-1)] = x
	q.tail++
}

// Front is the value that waits longest; the queue is not empty. The pointer is valid until
// the next Push or Pop.
func (q *FIFO[T]) Front() *T { return &q.ring[int(q.head)&(len(q.ring)-1)] }

// At is the value that i others wait longer than; there are more than i. The pointer is valid
// as that of Front is.
func (q *FIFO[T]) At(i int) *T { return &q.ring[(int(q.head)+i)&(len(q.ring)-1)] }

// Reserve makes room for one more value.
func (q *FIFO[T]) Reserve() {
	if int(q.tail-q.head) == len(q.ring) {
		q.grow()
	}
}

// Extend adds a value behind the others, for which there is room (Reserve), for the caller to fill
// in; it is as another left it. The pointer is valid as that of Front is. Both are inlined; one
// function is not.
func (q *FIFO[T]) Extend() *T {
	q.tail++
	return &q.ring[int(q.tail-1)&(len(q.ring)-1)]
}

// Truncate keeps the n values that wait longest.
func (q *FIFO[T]) Truncate(n int) { q.tail = q.head + uint32(n) }

// Drop takes out the value that waits longest; the queue is not empty.
func (q *FIFO[T]) Drop() { q.head++ }

// Pop takes out the value that waits longest; the queue is not empty.
func (q *FIFO[T]) Pop() T {
	x := q.ring[int(q.head)&(len(q.ring)-1)]
	q.head++
	return x
}

//go:noinline
func (q *FIFO[T]) grow() {
	n := len(q.ring)
	ring := make([]T, max(8, 2*n))
	if n > 0 {
		first := int(q.head) & (n - 1)
		k := copy(ring, q.ring[first:])
		copy(ring[k:], q.ring[:first])
	}
	q.ring, q.head, q.tail = ring, 0, uint32(n)
}
