package kernel

import (
	"fmt"
	"math/bits"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// MKeyCache is the order in which new regions reuse the memory keys of deregistered ones. A key
// keeps its variant byte, so an old key names the new region.
type MKeyCache uint8

// The orders of the driver's cache of memory keys.
const (
	// LastKeyFirst is Linux from 6.0 on: an array of keys, taken from the end (mlx5_ib/mr.c,
	// push_mkey_locked and pop_mkey_locked; in 7.x ib_core's frmr_pools.c).
	LastKeyFirst MKeyCache = iota
	// FirstKeyFirst is Linux before 6.0: a list, taken from the head and added to at the tail.
	FirstKeyFirst
	// NoKeyAgain has no cache: each region has a new key.
	NoKeyAgain
)

// The persistent entries of the cache: the smallest and the largest number of translation entries
// of their keys, powers of two (MLX5_MR_CACHE_PERSISTENT_ENTRY_MIN_DESCS, and mkey_cache_max_order
// of a device whose UMR has no extended translation offset, and of one that has).
const (
	minCachedEntries  = 4
	maxCachedEntries  = minCachedEntries << 16
	maxCachedExtended = minCachedEntries << 20
)

// tempEntryLife is how long keys of other sizes are kept after the first was given back
// (mlx5r_handle_mkey_cleanup), excessLife how long those that are too many (__cache_work_func).
const (
	tempEntryLife = 30 * sim.Second
	excessLife    = 300 * sim.Second
)

// keyShape is what keys of one entry of the cache have in common (mlx5r_cache_rb_key).
type keyShape struct {
	entries int               // translation entries for which they have room
	ksm     bool              // they lead to other keys
	access  verbs.AccessFlags // rights that no UMR can give
}

// keyEntry is an entry of the cache.
type keyEntry struct {
	shape keyShape
	// keys are those to hand out, the oldest first. 0 is one that the driver made in advance,
	// and that the device model makes when it is first used.
	keys []uint32
	// limit is below how many keys the driver makes more, up to twice as many. 0: none, and keys
	// go in time.
	limit int
	temp  bool
	since sim.Time // when a temporary entry that has keys got the first
}

// keyCache holds the free memory keys of a device.
type keyCache struct {
	entries []*keyEntry
	newest  uint32   // index of the last key that was made, since this was cleared
	made    sim.Time // when the last key was
}

// cachedShape is the shape of the key for a region with n translation entries. False: no
// persistent entry has such keys.
func (d *Device) cachedShape(n int, a verbs.AccessFlags) (keyShape, bool) {
	if fixed := d.unchangeable(a); fixed != 0 || n > d.maxCached() {
		return keyShape{entries: n, access: fixed}, false
	}
	return keyShape{entries: max(minCachedEntries, 1<<bits.Len(uint(n-1)))}, true
}

// unchangeable are those of a region's rights that no UMR gives (get_unchangeable_access_flags).
func (d *Device) unchangeable(a verbs.AccessFlags) (fixed verbs.AccessFlags) {
	if a&verbs.AccessRemoteAtomic != 0 && !d.caps.umrAtomic {
		fixed |= verbs.AccessRemoteAtomic
	}
	if a&verbs.AccessRelaxedOrdering != 0 && (d.caps.roWrite && !d.caps.umrROWrite || d.caps.roRead && !d.caps.umrRORead) {
		fixed |= verbs.AccessRelaxedOrdering
	}
	return fixed
}

// maxCached is the number of translation entries of the largest persistent entry.
func (d *Device) maxCached() int {
	if d.caps.odp.extended {
		return maxCachedExtended
	}
	return maxCachedEntries
}

// keyLimit is the default profile's mr_cache[order].limit (mlx5_core/main.c).
func keyLimit(entries int) int {
	order := bits.Len(uint(entries)) - 1 - 2
	switch {
	case order <= 11:
		return 250
	case order <= 15:
		return 32 >> (order - 12)
	}
	return 4
}

// entryFor finds the entry for a region, or nil: the one of its size, or a temporary one of at
// most twice as many entries (mkey_cache_ent_from_rb_key).
func (d *Device) entryFor(n int, a verbs.AccessFlags) *keyEntry {
	shape, persistent := d.cachedShape(n, a)
	var best *keyEntry
	for _, e := range d.keys.entries {
		fits := !e.shape.ksm && e.shape.access == shape.access && e.shape.entries >= n && e.shape.entries <= max(2*n, minCachedEntries)
		if fits && (best == nil || e.shape.entries < best.shape.entries) {
			best = e
		}
	}
	if best == nil && persistent {
		best = &keyEntry{shape: shape, limit: keyLimit(shape.entries), keys: make([]uint32, 2*keyLimit(shape.entries))}
		d.keys.entries = append(d.keys.entries, best)
	}
	return best
}

// takeKey takes a key for a region with n translation entries from the cache, or makes one for it.
// The entry is nil for a key that has none: a region too large, or rights that no UMR gives.
func (k *call) takeKey(n int, a verbs.AccessFlags) (uint32, *keyEntry, error) {
	d := k.d
	e := d.entryFor(n, a)
	if e == nil {
		shape, _ := d.cachedShape(n, a)
		key, err := k.freeKey(shape, true)
		return key, nil, err
	}
	k.age(e)
	if len(e.keys) == 0 { // create_cache_mkey, which gives keys no variant of their own from 6.0 on
		key, err := k.freeKey(e.shape, d.p.MKeyCache == FirstKeyFirst)
		return key, e, err
	}
	i := 0
	if (d.p.MKeyCache == LastKeyFirst) != d.breaks(rule.FreedKeysHaveTheirOrder) {
		i = len(e.keys) - 1
	}
	key := e.keys[i]
	e.keys = slices.Delete(e.keys, i, i+1)
	if len(e.keys) < e.limit {
		e.keys = append(e.keys, make([]uint32, 2*e.limit-len(e.keys))...)
	}
	if key != 0 {
		return key, e, nil
	}
	busy := k.dev // it was made before
	key, err := k.freeKey(e.shape, true)
	k.dev = busy
	return key, e, err
}

// giveKey puts the key of a region that is revoked into the cache. shape is that of a key
// without an entry.
func (k *call) giveKey(key uint32, e *keyEntry, shape keyShape) *keyEntry {
	d := k.d
	if e == nil && shape.ksm {
		e = d.ksmEntry(shape)
	}
	if e == nil {
		if e = d.entryFor(shape.entries, shape.access); e == nil || e.shape != shape {
			e = &keyEntry{shape: shape, temp: true}
			d.keys.entries = append(d.keys.entries, e)
		}
	}
	k.age(e)
	if e.temp && len(e.keys) == 0 {
		e.since = k.d.eng.Now()
	}
	e.keys = append(e.keys, key)
	return e
}

// age removes the keys of an entry that its work has removed by now: all of a temporary one, and
// what a persistent one has too many.
func (k *call) age(e *keyEntry) {
	now, excess := k.d.eng.Now(), 0
	switch {
	case e.temp && now-e.since >= tempEntryLife:
		excess = len(e.keys)
	case !e.temp && len(e.keys) > 2*e.limit && now-k.d.keys.made > excessLife:
		excess = len(e.keys) - 2*e.limit
	}
	busy := k.dev // a work queue does it, at another time
	for ; excess > 0; excess-- {
		last := len(e.keys) - 1
		in := prm.NewIn(prm.OpDestroyMKey, 0)
		prm.DestroyMKeyIn(in).SetMKeyIndex(e.keys[last] >> 8)
		k.mustDestroy(in)
		e.keys = e.keys[:last]
	}
	k.dev = busy
}

// freeKey makes a key that is free: a UMR gives it what a region needs (set_cache_mkc).
func (k *call) freeKey(s keyShape, variant bool) (uint32, error) {
	d := k.d
	in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
	var v uint8
	if variant {
		d.mkeys++
		v = d.mkeys
	}
	c := prm.CreateMKeyIn(in).MKC()
	c.SetFree(true)
	c.SetUMREn(true)
	c.SetLR(true)
	c.SetA(s.access&verbs.AccessRemoteAtomic != 0)
	c.SetRelaxedOrderingWrite(s.access&verbs.AccessRelaxedOrdering != 0 && d.caps.roWrite)
	c.SetRelaxedOrderingRead(s.access&verbs.AccessRelaxedOrdering != 0 && d.caps.roRead)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetPD(d.pdn)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(uint32(v))
	c.SetTranslationsOctwordSize(uint32((s.entries + 1) / 2))
	if s.ksm {
		c.SetAccessMode(prm.MKeyModeKSM)
		c.SetTranslationsOctwordSize(uint32(s.entries))
	}
	c.SetLogPageSize(prm.PageShift)
	prm.CreateMKeyIn(in).SetPGAccess(d.caps.pageAccess)
	if err := k.exec(in, out); err != nil {
		return 0, err
	}
	d.keys.made, d.keys.newest = d.eng.Now(), prm.CreateMKeyOut(out).MKeyIndex()
	return prm.MKeyOf(d.keys.newest, uint32(v)), nil
}

// loadKey has the device give a free key the region's pages, range, rights and PD
// (mlx5r_umr_update_mr_pas with MLX5_IB_UPD_XLT_ENABLE).
func (m *mr) loadKey(k *call, size uint64) error {
	d := k.d
	list := make(prm.MTT, (8*m.mem.numBlocks(size)+umrAlign-1)&^(umrAlign-1))
	m.fillEntries(list, d, size)
	err := k.post(&umrRequest{key: m.mkey, flags: prm.UMRCheckFree, list: list,
		mask: d.rightsMask() | prm.MKeyMaskKey | prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskStartAddr | prm.MKeyMaskPageSize,
		mkc: func(c prm.MKC) {
			m.fillMKC(c, d, m.iova, m.access, uint8(m.mkey))
			c.SetLogPageSize(uint32(bits.TrailingZeros64(size)))
		}})
	if err != nil {
		return fmt.Errorf("translations by UMR: %w", err)
	}
	m.pageSize = size
	return nil
}

// revokeKey makes a key free and gives it to the driver (mlx5r_umr_revoke_mr). It fails while
// memory windows are bound to it.
func (m *mr) revokeKey(k *call) error {
	err := k.post(&umrRequest{key: m.mkey, flags: prm.UMRInline, mask: prm.MKeyMaskFree | prm.MKeyMaskPD, mkc: func(c prm.MKC) {
		c.SetFree(true)
		c.SetPD(k.d.pdn)
		c.SetQPN(prm.MKeyQPNAny)
		c.SetMKey70(m.mkey)
	}})
	if err == nil && k.umrFailed(m.mkey) {
		err = fmt.Errorf("revocation by UMR: %w", syscall.EINVAL)
	}
	return err
}
