package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Contexts, memory keys and translation entries live in host memory; the device keeps
// those that it used last. Associativity and replacement are not public: the caches
// here are direct-mapped by a hash, which loses hits little by little as the published
// curves do.

// caches are those of the device.
type caches struct {
	qpc, mpt, mtt cache
	lastMTT       uint64 // tag of the entry looked up last, which is in place with its key
	sendWQEs      lru    // by QP and index
	recvWQEs      lru    // by QP
}

func newCaches(p *Params) caches {
	return caches{
		qpc: newCache(p.QPCCache), mpt: newCache(p.MPTCache), mtt: newCache(p.MTTCache),
		sendWQEs: newLRU(p.WQECache), recvWQEs: newLRU(p.RecvCache),
	}
}

// cache holds keys, each in the only place that its hash allows.
type cache struct {
	tags  []uint64
	shift uint
}

// newCache makes an empty cache for n keys, a power of two.
func newCache(n int) cache {
	c := cache{tags: make([]uint64, n), shift: 64}
	for ; n > 1; n >>= 1 {
		c.shift--
	}
	return c
}

// place is where a key goes. Keys are numbers in sequence: the hash must scatter them
// as random ones (the finaliser of splitmix64).
func (c *cache) place(key uint64) uint32 {
	key += 0x9e3779b97f4a7c15
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return uint32((key ^ key>>31) >> c.shift)
}

// touch reports whether the key was there; it is afterwards. Key 0 is none.
func (c *cache) touch(at uint32, key uint64) bool {
	if c.tags[at] == key {
		return true
	}
	c.tags[at] = key
	return false
}

// miss is what a look-up costs: the time until the entry is here, and for how long
// the engine that needs it is held up, as ICMOverlap reads go on at once.
type miss struct{ late, stall sim.Time }

func (d *Device) missed(m *miss, t sim.Time) {
	m.late += t
	m.stall += t / sim.Time(d.p.ICMOverlap)
}

// touchQP looks up the QP's context.
func (d *Device) touchQP(q *connection, m *miss) {
	d.settle()
	d.c.QPCLookups++
	if !d.qpc.touch(q.place, uint64(q.num)) {
		d.c.QPCMisses++
		d.missed(m, d.p.QPCMiss)
	}
}

// touchKey looks up a memory key, and the translation of an address of it.
func (d *Device) touchKey(key uint32, va uint64, m *miss) {
	d.settle()
	index := key >> 8
	k := d.keys.At(index)
	if k == nil {
		return
	}
	entry, mapped := k.EntryIndex(va)
	tag := uint64(index)<<32 | entry + 1
	d.c.MPTLookups++
	if mapped {
		d.c.MTTLookups++
		if tag == d.lastMTT { // nothing has been looked up since
			return
		}
	}
	if !d.mpt.touch(d.mpt.place(uint64(index)), uint64(index)) {
		d.c.MPTMisses++
		d.missed(m, d.p.MPTMiss)
	}
	if !mapped {
		d.lastMTT = 0
		return
	}
	d.lastMTT = tag
	if !d.mtt.touch(d.mtt.place(tag), tag) {
		d.c.MTTMisses++
		d.missed(m, d.p.MTTMiss)
	}
}

// fillQP and fillKey are firmware commands that write what the caches hold: they leave
// it there. That they do is an assumption; it matters to the first message only.
func (d *Device) fillQP(q *connection) { d.qpc.touch(q.place, uint64(q.num)) }

func (d *Device) fillKey(index uint32, va, n uint64) {
	d.lastMTT = 0
	d.mpt.touch(d.mpt.place(uint64(index)), uint64(index))
	k := d.keys.At(index)
	first, ok := k.EntryIndex(va)
	if !ok || n == 0 {
		return
	}
	last, ok := k.EntryIndex(va + n - 1)
	for i := first; ok && i <= last; i++ {
		tag := uint64(index)<<32 | i + 1
		d.mtt.touch(d.mtt.place(tag), tag)
	}
}

// flushKeys forgets all keys and translations.
func (d *Device) flushKeys() {
	clear(d.mpt.tags)
	clear(d.mtt.tags)
	d.lastMTT = 0
	d.c.KeyFlushes++
}

// lookUp is what a packet that arrives costs in look-ups: the context of its QP, and
// what a WRITE names. A READ's are made when its data is fetched.
func (d *Device) lookUp(p *roce.Packet) (m miss) {
	q := d.qpn(p.BTH().DestQP())
	info := p.Info()
	if q == nil || info.Class == roce.ClassReadRequest {
		return m
	}
	d.touchQP(&q.connection, &m)
	if info.Headers.Has(roce.HasRETH) {
		if h := p.RETH(); h.Length() > 0 {
			d.touchKey(h.RKey(), h.VA(), &m)
		}
	}
	return m
}
