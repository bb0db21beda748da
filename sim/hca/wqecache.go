package hca

import "github.com/rdmasim/rdmasim/prm"

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

// keepWQE notes a send WQE that has come, and reports whether it was kept.
func (q *qp) keepWQE(idx uint16) bool {
	if q.kept == nil {
		q.kept = make([]int32, q.sqSize)
	}
	hit, _ := q.d.sendWQEs.touch(&q.kept[uint32(idx)&(q.sqSize-1)], uint64(q.num)<<16|uint64(idx))
	return hit
}

// answered is the work of a processing unit on a READ or an atomic that was answered,
// whose WQE must be at hand. It is done by the unit that takes the QP next, or, when
// none works on it or is about to, by one that is free.
func (q *qp) answered(m *msg) {
	d := q.d
	t := d.p.PURead
	if len(d.sendWQEs.nodes) > 0 {
		d.c.WQELookups++
		if !q.keepWQE(m.idx) {
			d.c.WQEMisses++
			t += d.p.WQEMiss
			q.readAgain(m)
		}
	}
	d.c.PUBusy += t
	if q.running || q.queued {
		q.puOwed += t
	} else {
		q.puFree = max(q.puFree, d.e.Now()) + t
	}
}

// readAgain reads the WQE of a message for its bytes on the bus. What they say is known.
func (q *qp) readAgain(m *msg) {
	d := q.d
	slot := uint32(m.idx) & (q.sqSize - 1)
	pa, n := q.ring.at(q.sqOff+uint64(slot)*prm.WQEBBSize, min(int(m.nbb), int(q.sqSize-slot))*prm.WQEBBSize)
	d.c.WQEBlocksFetched += uint64(n / prm.WQEBBSize)
	d.bus.ReadDMA(pa, d.again[:n], d.h.none, 0)
}

// keepRecv notes that a QP reads receive WQEs ahead. Those of the queue that has done so
// least lately go, unless it reads right now: it is then about to use them.
func (q *qp) keepRecv() {
	d := q.d
	if len(d.recvWQEs.nodes) == 0 {
		return
	}
	d.c.RecvWQELookups++
	hit, gone := d.recvWQEs.touch(&q.rqKept, uint64(q.num))
	if hit {
		return
	}
	if q.rqHeld {
		d.c.RecvWQEMisses++
	}
	q.rqHeld = true
	if old := d.qpn(uint32(gone)); old != nil && old != q && !old.rqReading && old.srq == nil {
		old.rqGot = old.rqCI
	}
}
