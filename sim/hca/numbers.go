package hca

// numbers hands out object numbers first..limit-1: the lowest free one, or, when
// late is set, fresh ones before any that was given back, and those in the order
// of their return, so that what still names a dead object is noticed.
type numbers struct {
	next, limit uint32
	first, flip uint32 // what is handed out has the bits of flip inverted, and is not below first
	late        bool
	free        []uint32 // a min-heap, or with late a queue from head on
	head        int
}

// reuseAfter is how many numbers must have been given back before one is used again.
const reuseAfter = 64

func (n *numbers) alloc() (uint32, bool) {
	back := len(n.free) - n.head
	if back > 0 && (!n.late || back > reuseAfter || n.next >= n.limit) {
		return n.reuse(), true
	}
	for n.next < n.limit {
		n.next++
		if x := (n.next - 1) ^ n.flip; x >= n.first {
			return x, true
		}
	}
	if back > 0 {
		return n.reuse(), true
	}
	return 0, false
}

func (n *numbers) reuse() uint32 {
	if n.late {
		x := n.free[n.head]
		n.head++
		if n.head > 2*reuseAfter && 2*n.head > len(n.free) {
			n.free = n.free[:copy(n.free, n.free[n.head:])]
			n.head = 0
		}
		return x
	}
	top := n.free[0]
	last := len(n.free) - 1
	n.free[0] = n.free[last]
	n.free = n.free[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && n.free[c+1] < n.free[c] {
			c++
		}
		if n.free[i] <= n.free[c] {
			break
		}
		n.free[i], n.free[c] = n.free[c], n.free[i]
		i = c
	}
	return top
}

func (n *numbers) release(x uint32) {
	n.free = append(n.free, x)
	if n.late {
		return
	}
	for i := len(n.free) - 1; i > 0; {
		p := (i - 1) / 2
		if n.free[p] <= n.free[i] {
			break
		}
		n.free[p], n.free[i] = n.free[i], n.free[p]
		i = p
	}
}

// put stores x at index n of a table that grows.
func put[T any](t []T, n uint32, x T) []T {
	for uint64(len(t)) <= uint64(n) {
		var zero T
		t = append(t, zero)
	}
	t[n] = x
	return t
}
