package sim

// FIFO is a first-in-first-out queue in a ring of memory that it uses again: a run that has
// reached its greatest length allocates nothing more. The zero FIFO is empty and ready.
//
// Pop does not clear the memory of a value, so pointers in it keep things alive until the
// place is used again.
type FIFO[T any] struct {
	ring    []T // its length is 0 or a power of two
	head, n int
}

// Len is how many values wait.
func (q *FIFO[T]) Len() int { return q.n }

// Push adds a value behind the others.
func (q *FIFO[T]) Push(x T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = x
	q.n++
}

// Front is the value that waits longest; the queue is not empty. The pointer is valid until
// the next Push or Pop.
func (q *FIFO[T]) Front() *T { return &q.ring[q.head&(len(q.ring)-1)] }

// Pop takes out the value that waits longest; the queue is not empty.
func (q *FIFO[T]) Pop() T {
	x := q.ring[q.head&(len(q.ring)-1)]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return x
}

//go:noinline
func (q *FIFO[T]) grow() {
	ring := make([]T, max(8, 2*len(q.ring)))
	k := copy(ring, q.ring[q.head:])
	copy(ring[k:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}
