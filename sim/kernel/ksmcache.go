package kernel

import "github.com/rdmasim/rdmasim/verbs"

// ksmShape is the shape of the keys of implicit regions.
func (d *Device) ksmShape(a verbs.AccessFlags) keyShape {
	return keyShape{entries: implicitSlots, ksm: true, access: d.unchangeable(a)}
}

// ksmEntry is the entry of the cache for implicit regions: it is always there, and no key is made
// for it in advance (mlx5_odp_init_mkey_cache; the default profile has no limit for its order).
func (d *Device) ksmEntry(s keyShape) *keyEntry {
	for _, e := range d.keys.entries {
		if e.shape == s {
			return e
		}
	}
	e := &keyEntry{shape: s}
	d.keys.entries = append(d.keys.entries, e)
	return e
}

// takeKSM takes a key for an implicit region from the cache, or makes one.
func (k *call) takeKSM(a verbs.AccessFlags) (uint32, *keyEntry, error) {
	e := k.d.ksmEntry(k.d.ksmShape(a))
	k.age(e)
	if n := len(e.keys); n > 0 {
		i := n - 1
		if k.d.p.MKeyCache == FirstKeyFirst {
			i = 0
		}
		key := e.keys[i]
		e.keys = append(e.keys[:i], e.keys[i+1:]...)
		return key, e, nil
	}
	key, err := k.freeKey(e.shape, k.d.p.MKeyCache == FirstKeyFirst)
	return key, e, err
}
