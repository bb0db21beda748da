package mem

// table is a sparse array of page-table entries: a radix tree of tableDepth levels, as the
// processor's own. What has no entry costs nothing, and a node without entries is given back.
type table struct {
	root   *tableNode
	leaf   *tableNode // of the last look-up
	leafNo uint64
}

const (
	tableBits  = 9
	tableSize  = 1 << tableBits
	tableDepth = 4
	maxIndex   = 1<<(tableBits*tableDepth) - 1
)

// tableNode has entries at the lowest level, and nodes above it.
type tableNode struct {
	live int // places in use
	kids *[tableSize]*tableNode
	e    *[tableSize]pte
}

func newTableNode(level int) *tableNode {
	if level == 0 {
		return &tableNode{e: new([tableSize]pte)}
	}
	return &tableNode{kids: new([tableSize]*tableNode)}
}

func place(i uint64, level int) uint64 { return i >> (tableBits * level) & (tableSize - 1) }

// get is the entry of index i, or 0.
func (t *table) get(i uint64) pte {
	if t.leaf == nil || t.leafNo != i>>tableBits {
		n := t.root
		for level := tableDepth - 1; level > 0 && n != nil; level-- {
			n = n.kids[place(i, level)]
		}
		if n == nil || i > maxIndex {
			return 0
		}
		t.leaf, t.leafNo = n, i>>tableBits
	}
	return t.leaf.e[place(i, 0)]
}

// set enters e at index i; 0 removes what is there.
func (t *table) set(i uint64, e pte) {
	if t.get(i) == e {
		return
	}
	if t.root == nil {
		t.root = newTableNode(tableDepth - 1)
	}
	var path [tableDepth]*tableNode
	n := t.root
	for level := tableDepth - 1; level > 0; level-- {
		path[level] = n
		k := &n.kids[place(i, level)]
		if *k == nil {
			*k = newTableNode(level - 1)
			n.live++
		}
		n = *k
	}
	path[0] = n
	at := &n.e[place(i, 0)]
	switch {
	case *at == 0:
		n.live++
	case e == 0:
		n.live--
	}
	*at = e
	if n.live == 0 {
		t.prune(i, &path)
	}
}

// prune gives back the nodes on the way to index i that have become empty.
func (t *table) prune(i uint64, path *[tableDepth]*tableNode) {
	t.leaf = nil
	for level := 1; level < tableDepth; level++ {
		if path[level-1].live > 0 {
			return
		}
		path[level].kids[place(i, level)] = nil
		path[level].live--
	}
	if t.root.live == 0 {
		t.root = nil
	}
}

// next is the first entry at an index from i to last. Entries may change between two calls.
func (t *table) next(i, last uint64) (at uint64, e pte, ok bool) {
	if last = min(last, maxIndex); t.root == nil || i > last {
		return 0, 0, false
	}
	return t.root.next(i, last, tableDepth-1)
}

func (n *tableNode) next(i, last uint64, level int) (at uint64, e pte, ok bool) {
	if level == 0 {
		for ; ; i++ {
			if e = n.e[place(i, 0)]; e != 0 {
				return i, e, true
			}
			if i == last || place(i, 0) == tableSize-1 {
				return 0, 0, false
			}
		}
	}
	for {
		if k := n.kids[place(i, level)]; k != nil {
			if at, e, ok = k.next(i, last, level-1); ok {
				return at, e, true
			}
		}
		step := uint64(1) << (tableBits * level)
		i = (i + step) &^ (step - 1)
		if i > last || place(i, level) == 0 {
			return 0, 0, false
		}
	}
}

// any reports whether there is an entry with one of the flags at an index from i to last.
func (t *table) any(i, last uint64, flags pte) bool {
	for {
		at, e, ok := t.next(i, last)
		switch {
		case !ok:
			return false
		case e&flags != 0:
			return true
		case at == last:
			return false
		}
		i = at + 1
	}
}
