package mem

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// watches holds the watches of DMA writes. A watch is a chain of nodes, one for
// each page it touches; each page has a list of nodes in order of registration.
// Pages without a watch cost one nil check, so that thousands of parked pollers
// cost the device nothing.
type watches struct {
	list  sim.Slab[watch]
	nodes sim.Slab[watchNode]
	hit   []uint32 // pairs of a watch that the store in progress touches and its generation
}

type watch struct {
	h     func(arg uint64)
	arg   uint64
	first *watchNode // its chain of nodes
	gen   uint32
	live  bool
}

// watchNode stands for a watch on one of its pages. The bytes that it watches are here too: a store
// looks at the nodes of its page and at nothing else of those that it does not touch.
type watchNode struct {
	start, end PA
	page       uint64
	watch      uint32
	index      uint32     // of the node
	prev, next *watchNode // in the page's list
	chain      *watchNode // next node of the same watch
}

// Watch calls h(arg) each time a DMA write (DMAStore) touches [pa, pa+n), until
// Unwatch of the id. A poller of a CQ sleeps on it. The range is inside allocated
// memory. Handlers run in the order of their watches, and may Watch and Unwatch.
func (m *Memory) Watch(pa PA, n int, h func(arg uint64), arg uint64) (id int) {
	if n <= 0 || !m.present(pa, uint64(n)) {
		panic(fmt.Sprintf("mem: watch of %d B at %#x, which are not allocated", n, uint64(pa)))
	}
	m.forceLate(pa, n)
	w := &m.w
	i := w.list.Get()
	x := w.list.At(i)
	*x = watch{h: h, arg: arg, gen: x.gen, live: true}
	for pg := (uint64(pa) + uint64(n) - 1) >> m.shift; ; pg-- {
		x.first = m.addNode(watchNode{start: pa, end: pa + PA(n), page: pg, watch: i, chain: x.first})
		if pg == uint64(pa)>>m.shift {
			return int(i)
		}
	}
}

// addNode appends a node to the list of its page.
func (m *Memory) addNode(nd watchNode) *watchNode {
	nd.index = m.w.nodes.Get()
	k := m.w.nodes.At(nd.index)
	*k = nd
	c := &m.chunks[nd.page<<m.shift>>chunkShift]
	if c.watch == nil {
		c.watch = make([]*watchNode, chunkSize>>m.shift)
	}
	head := &c.watch[m.index(nd.page)]
	if *head == nil {
		*head = k
		return k
	}
	last := *head
	for last.next != nil {
		last = last.next
	}
	last.next, k.prev = k, last
	return k
}

// Unwatch ends a Watch. Ending one that is over does nothing.
func (m *Memory) Unwatch(id int) {
	w := &m.w
	if id < 0 || id >= w.list.Len() || !w.list.At(uint32(id)).live {
		return
	}
	x := w.list.At(uint32(id))
	for nd := x.first; nd != nil; nd = nd.chain {
		if nd.prev != nil {
			nd.prev.next = nd.next
		} else {
			m.chunks[nd.page<<m.shift>>chunkShift].watch[m.index(nd.page)] = nd.next
		}
		if nd.next != nil {
			nd.next.prev = nd.prev
		}
		w.nodes.Put(nd.index)
	}
	x.live, x.h, x.first = false, nil, nil
	x.gen++
	w.list.Put(uint32(id))
}

// DMAStore is Write by a device: it also wakes watchers, after the bytes are in. A link
// that holds back writes keeps their order itself.
// Foreign memory, which lies behind all chunks, has no watchers.
func (m *Memory) DMAStore(pa PA, p []byte) bool {
	if c, i := m.pageOf(pa, len(p)); c != nil && len(p) > 0 { // as nearly always
		x := c.backing(i)
		copy(x.bytes()[pa-x.start:], p)
		if c.watch != nil && c.watch[i] != nil {
			m.notify(pa, pa+PA(len(p)))
		}
		return true
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
		for nd := c.watch[m.index(pg)]; nd != nil; nd = nd.next {
			if nd.start < end && pa < nd.end && !contains(w.hit[base:], nd.watch) {
				w.hit = append(w.hit, nd.watch, w.list.At(nd.watch).gen)
			}
		}
	}
	for k := base; k < len(w.hit); k += 2 {
		if x := w.list.At(w.hit[k]); x.live && x.gen == w.hit[k+1] {
			x.h(x.arg)
		}
	}
	w.hit = w.hit[:base]
}

// contains looks for watch i among pairs of (watch, generation).
func contains(hit []uint32, i uint32) bool {
	for k := 0; k < len(hit); k += 2 {
		if hit[k] == i {
			return true
		}
	}
	return false
}
