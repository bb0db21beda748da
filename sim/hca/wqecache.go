package hca

// The device keeps WQEs between their two uses: of a send WQE, the first is when it is
// sent; a READ or an atomic needs it again when its answer comes, to know where the data
// goes. Receive WQEs are read ahead. What is kept is bounded over all queues, and the
// oldest goes first: a READ whose WQE has gone reads it again, a receive queue whose
// WQEs have gone reads them when a message comes.

// lru is a set of a fixed number of keys, ordered by use.
type lru struct {
	nodes          []lruNode // empty: there is no such cache, and nothing is looked up
	newest, oldest int32
}

type lruNode struct {
	newer, older int32
	key          uint64
}

// newLRU makes a set of n keys, all 0, which is none.
func newLRU(n int) lru {
	l := lru{nodes: make([]lruNode, n), newest: 0, oldest: int32(n - 1)}
	for i := range l.nodes {
		l.nodes[i] = lruNode{newer: int32(i - 1), older: int32(i + 1)}
	}
	return l
}

// touch makes key the newest and reports whether it was there, and if not, what went
// for it. at is where the owner of the key keeps its place, 0 at first.
func (l *lru) touch(at *int32, key uint64) (hit bool, gone uint64) {
	i := *at - 1
	hit = i >= 0 && l.nodes[i].key == key
	if !hit {
		i = l.oldest
		gone = l.nodes[i].key
		l.nodes[i].key = key
		*at = i + 1
	}
	l.front(i)
	return hit, gone
}

// front moves a node to the newest end.
func (l *lru) front(i int32) {
	n := &l.nodes[i]
	if i == l.newest {
		return
	}
	l.nodes[n.newer].older = n.older
	if i == l.oldest {
		l.oldest = n.newer
	} else {
		l.nodes[n.older].newer = n.newer
	}
	n.older = l.newest
	l.nodes[l.newest].newer = i
	l.newest = i
}
