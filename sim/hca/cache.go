package hca

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// Contexts, memory keys and translation entries live in host memory; the device keeps
// those that it used last. Associativity and replacement are not public: each cache here
// has sets of so many entries as its parameter says, found by a hash, in which the entry used
// longest ago is replaced. Sets of one lose hits little by little, as the published curve of
// contexts does; one of translations does not.

// caches are those of the device.
type caches struct {
	*core
	holders       recvHolders
	keys          *mkey.Table
	qpc, mpt, mtt cache
	lastMTT       uint64 // tag of the entry looked up last, which is in place with its key
	sendWQEs      lru    // by QP and index
	recvWQEs      lru    // by QP
}

// recvHolders are the QPs that read receive WQEs ahead, as the cache sees them.
type recvHolders interface {
	// loseRecv has a QP drop them, for others.
	loseRecv(qpn uint32)
}

func newCaches(k *core, keys *mkey.Table, holders recvHolders) caches {
	p := &k.p
	return caches{
		core: k, keys: keys, holders: holders,
		qpc: newCache(p.QPCCache, p.QPCWays), mpt: newCache(p.MPTCache, p.MPTWays), mtt: newCache(p.MTTCache, p.MTTWays),
		sendWQEs: newLRU(p.WQECache), recvWQEs: newLRU(p.RecvCache),
	}
}

// cache holds keys, each in the only set that its hash allows, those of a set in the order of
// their last use.
type cache struct {
	tags  []uint64
	shift uint
	ways  uint32 // entries of a set
}

// newCache makes an empty cache for n keys in sets of some, both powers of two. One that is smaller
// than a set is a set.
func newCache(n, ways int) cache {
	ways = min(ways, n)
	c := cache{tags: make([]uint64, n), shift: 64, ways: uint32(ways)}
	for n /= ways; n > 1; n >>= 1 {
		c.shift--
	}
	return c
}

// place is where the set of a key begins. Keys are numbers in sequence: the hash must scatter them
// as random ones (the finaliser of splitmix64).
func (c *cache) place(key uint64) uint32 {
	key += 0x9e3779b97f4a7c15
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return uint32((key^key>>31)>>c.shift) * c.ways
}

// touch reports whether the key was there; it is afterwards. Key 0 is none.
func (c *cache) touch(at uint32, key uint64) bool { return c.tags[at] == key || c.search(at, key) }

// search is touch of a key that is not the one used last in its set.
func (c *cache) search(at uint32, key uint64) (found bool) {
	if c.ways == 1 {
		c.tags[at] = key
		return false
	}
	set := c.tags[at : at+c.ways]
	i := 1
	for i < len(set)-1 && set[i] != key {
		i++
	}
	found = set[i] == key
	copy(set[1:i+1], set)
	set[0] = key
	return found
}

// miss is what a look-up costs: the time until the entry is here, and for how long
// the engine that needs it is held up, as some reads go on at once.
type miss struct{ late, stall sim.Time }

func (m *miss) add(t sim.Time, overlap int) {
	m.late += t
	m.stall += t / sim.Time(overlap)
}

// cachedQP is a QP as the cache of contexts knows it.
type cachedQP struct{ num, place uint32 }

// touchQP looks up the QP's context.
func (h *caches) touchQP(q cachedQP, m *miss) {
	h.settle()
	*m = h.findQP(q, *m)
}

// findQP is touchQP for a packet that arrives, behind all that arrived before; it returns m with
// what is added.
func (h *caches) findQP(q cachedQP, m miss) miss {
	h.c.QPCLookups++
	if h.qpc.tags[q.place] != uint64(q.num) {
		return h.searchQP(q, m)
	}
	return m
}

// searchQP is findQP of a QP that is not the one used last in its set.
//
//go:noinline
func (h *caches) searchQP(q cachedQP, m miss) miss {
	if !h.qpc.search(q.place, uint64(q.num)) {
		h.c.QPCMisses++
		m.add(h.p.QPCMiss, h.p.QPCOverlap)
	}
	return m
}

// touchKey looks up a memory key, and the translation of an address of it.
func (h *caches) touchKey(key uint32, va uint64, m *miss) {
	h.settle()
	*m = h.findKey(key, va, *m)
}

// findKey is touchKey for a packet that arrives, behind all that arrived before; it returns m with
// what is added.
func (h *caches) findKey(key uint32, va uint64, m miss) miss {
	index := key >> 8
	k := h.keys.At(index)
	if k == nil {
		return m
	}
	h.c.MPTLookups++
	entry, mapped := k.EntryIndex(va)
	tag := uint64(index)<<32 | entry + 1
	if mapped {
		h.c.MTTLookups++
		if tag == h.lastMTT { // nothing has been looked up since
			return m
		}
	}
	if h.mpt.tags[k.Place] != uint64(index) {
		m = h.searchKey(k.Place, index, m)
	}
	if !mapped {
		h.lastMTT = 0
		return m
	}
	h.lastMTT = tag
	if k.LastEntry != tag {
		k.LastEntry, k.EntryPlace = tag, h.mtt.place(tag)
	}
	if h.mtt.tags[k.EntryPlace] != tag {
		m = h.searchEntry(k.EntryPlace, tag, m)
	}
	return m
}

// searchKey and searchEntry look for what is not the one used last in its set.
//
//go:noinline
func (h *caches) searchKey(at, index uint32, m miss) miss {
	if !h.mpt.search(at, uint64(index)) {
		h.c.MPTMisses++
		m.add(h.p.MPTMiss, h.p.MPTOverlap)
	}
	return m
}

//go:noinline
func (h *caches) searchEntry(at uint32, tag uint64, m miss) miss {
	if !h.mtt.search(at, tag) {
		h.c.MTTMisses++
		m.add(h.p.MTTMiss, h.p.MTTOverlap)
	}
	return m
}

// fillQP and fillKey are firmware commands that write what the caches hold: they leave
// it there. That they do is an assumption; it matters to the first message only.
func (h *caches) fillQP(q cachedQP) { h.qpc.touch(q.place, uint64(q.num)) }

func (h *caches) fillKey(index uint32, va, n uint64) {
	h.lastMTT = 0
	k := h.keys.At(index)
	k.Place = h.mpt.place(uint64(index))
	h.mpt.touch(k.Place, uint64(index))
	first, ok := k.EntryIndex(va)
	if !ok || n == 0 {
		return
	}
	last, ok := k.EntryIndex(va + n - 1)
	for i := first; ok && i <= last; i++ {
		tag := uint64(index)<<32 | i + 1
		h.mtt.touch(h.mtt.place(tag), tag)
	}
}

// flushKeys forgets all keys and translations.
func (h *caches) flushKeys() {
	clear(h.mpt.tags)
	clear(h.mtt.tags)
	h.lastMTT = 0
	h.c.KeyFlushes++
}
