package hca

// argQueue is a first-in-first-out queue of event words that reuses its memory.
type argQueue struct {
	q    []uint64
	head int
}

func (a *argQueue) len() int      { return len(a.q) - a.head }
func (a *argQueue) push(x uint64) { a.q = append(a.q, x) }
func (a *argQueue) pop() uint64 {
	x := a.q[a.head]
	a.head++
	switch {
	case a.head == len(a.q):
		a.q, a.head = a.q[:0], 0
	case a.head >= 64 && 2*a.head >= len(a.q):
		a.q = a.q[:copy(a.q, a.q[a.head:])]
		a.head = 0
	}
	return x
}
