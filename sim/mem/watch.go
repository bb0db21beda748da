package mem

import "fmt"

// watches holds who is told of DMA writes. A watch is a chain of nodes, one for
// each page it touches; each page has a list of nodes in order of registration.
// Pages without a watch cost one nil check, so that thousands of parked pollers
// cost the device nothing.
type watches struct {
	list  []watch
	nodes []watchNode
	freeW []int32
	freeN []int32
	hit   []int32 // watches that the store in progress touches
}

type watch struct {
	start, end PA
	h          func(arg uint64)
	arg        uint64
	first      int32 // its chain of nodes
	gen        uint32
	live       bool
}

type watchNode struct {
	watch      int32
	page       uint64
	prev, next int32 // in the page's list; -1 ends
	chain      int32 // next node of the same watch; -1 ends
}

// Watch calls h(arg) each time a DMA write (DMAStore) touches [pa, pa+n), until
// Unwatch of the id. A poller of a CQ sleeps on it. The range is inside allocated
// memory. Handlers run in the order of their watches, and may Watch and Unwatch.
func (m *Memory) Watch(pa PA, n int, h func(arg uint64), arg uint64) (id int) {
	if n <= 0 || !m.present(pa, uint64(n)) {
		panic(fmt.Sprintf("mem: watch of %d bytes at %#x, which are not allocated", n, uint64(pa)))
	}
	m.hurry()
	w := &m.w
	i := pop(&w.freeW)
	if i < 0 {
		i = int32(len(w.list))
		w.list = append(w.list, watch{})
	}
	gen := w.list[i].gen
	w.list[i] = watch{start: pa, end: pa + PA(n), h: h, arg: arg, first: -1, gen: gen, live: true}
	for pg := (uint64(pa) + uint64(n) - 1) >> m.shift; ; pg-- {
		w.list[i].first = m.addNode(i, pg, w.list[i].first)
		if pg == uint64(pa)>>m.shift {
			return int(i)
		}
	}
}

// addNode appends a node to the list of page pg.
func (m *Memory) addNode(watch int32, pg uint64, chain int32) int32 {
	w := &m.w
	k := pop(&w.freeN)
	if k < 0 {
		k = int32(len(w.nodes))
		w.nodes = append(w.nodes, watchNode{})
	}
	c := &m.chunks[pg<<m.shift>>chunkShift]
	if c.watch == nil {
		c.watch = make([]int32, chunkSize>>m.shift)
	}
	w.nodes[k] = watchNode{watch: watch, page: pg, prev: -1, next: -1, chain: chain}
	head := &c.watch[m.index(pg)]
	if *head == 0 {
		*head = k + 1
		return k
	}
	last := *head - 1
	for w.nodes[last].next >= 0 {
		last = w.nodes[last].next
	}
	w.nodes[last].next, w.nodes[k].prev = k, last
	return k
}

// Unwatch ends a Watch. Ending one that is over does nothing.
func (m *Memory) Unwatch(id int) {
	w := &m.w
	if id < 0 || id >= len(w.list) || !w.list[id].live {
		return
	}
	x := &w.list[id]
	for k := x.first; k >= 0; {
		nd := w.nodes[k]
		if nd.prev >= 0 {
			w.nodes[nd.prev].next = nd.next
		} else {
			m.chunks[nd.page<<m.shift>>chunkShift].watch[m.index(nd.page)] = nd.next + 1
		}
		if nd.next >= 0 {
			w.nodes[nd.next].prev = nd.prev
		}
		w.freeN = append(w.freeN, k)
		k = nd.chain
	}
	x.live, x.h, x.first = false, nil, -1
	x.gen++
	w.freeW = append(w.freeW, int32(id))
}

// DMAStore is Write by a device: it also wakes watchers, after the bytes are in. A link
// that holds back writes keeps their order itself.
// Nobody watches foreign memory, which lies behind all chunks.
func (m *Memory) DMAStore(pa PA, p []byte) bool {
	if pg := uint64(pa) >> m.shift; len(p) > 0 && (uint64(pa)+uint64(len(p))-1)>>m.shift == pg {
		if c, i := m.chunkAt(pa), m.index(pg); c != nil && c.refs != nil && c.refs[i] != 0 {
			// Bytes within a page, as nearly all are.
			copy(m.back(c)[pa&chunkMask:], p)
			if c.watch != nil && c.watch[i] != 0 {
				m.notify(pa, pa+PA(len(p)))
			}
			return true
		}
	}
	if !m.write(pa, p) {
		return false
	}
	if i := pa >> chunkShift; len(p) > 0 && i < PA(len(m.chunks)) {
		m.notify(pa, pa+PA(len(p)))
	}
	return true
}

// notify calls the watches that [pa, end) touches, each once.
func (m *Memory) notify(pa, end PA) {
	w := &m.w
	base := len(w.hit)
	for pg := uint64(pa) >> m.shift; pg <= uint64(end-1)>>m.shift; pg++ {
		c := &m.chunks[pg<<m.shift>>chunkShift]
		if c.watch == nil {
			continue
		}
		for k := c.watch[m.index(pg)] - 1; k >= 0; k = w.nodes[k].next {
			i := w.nodes[k].watch
			if x := &w.list[i]; x.start < end && pa < x.end && !contains(w.hit[base:], i) {
				w.hit = append(w.hit, i, int32(x.gen))
			}
		}
	}
	for k := base; k < len(w.hit); k += 2 {
		if x := &w.list[w.hit[k]]; x.live && x.gen == uint32(w.hit[k+1]) {
			x.h(x.arg)
		}
	}
	w.hit = w.hit[:base]
}

// contains looks for watch i among pairs of (watch, generation).
func contains(hit []int32, i int32) bool {
	for k := 0; k < len(hit); k += 2 {
		if hit[k] == i {
			return true
		}
	}
	return false
}

// pop takes the last free number, or -1.
func pop(free *[]int32) int32 {
	f := *free
	if len(f) == 0 {
		return -1
	}
	*free = f[:len(f)-1]
	return f[len(f)-1]
}
