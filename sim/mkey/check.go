package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Check looks whether user u may do a to [va, va+n) with a key (index and variant). n is at
// least 1.
func (t *Table) Check(u User, mkey uint32, va uint64, n uint64, a Access) (*Key, Result) {
	k, r := t.check(u, mkey, va, n, a)
	if r != OK {
		t.Failed[r]++
	}
	return k, r
}

// check is the order in which the device checks the key of an access, a step each.
func (t *Table) check(u User, mkey uint32, va, n uint64, a Access) (*Key, Result) {
	k := t.At(mkey >> 8)
	switch {
	case !k.named(mkey) && (k == nil || !t.breaks(rule.KeyHasItsVariant)):
		return t.checkDumpFill(mkey, a)
	case !k.inUse() && !t.breaks(rule.KeyIsInUse):
		return nil, Free
	case !k.ofPD(u.PD) && !t.breaks(rule.KeyIsOfThePD):
		return nil, OtherPD
	case !k.ofQP(u.QPN) && !t.breaks(rule.KeyIsOfTheQP):
		return nil, OtherQP
	case wraps(va, n) && !t.breaks(rule.AccessDoesNotWrap):
		return nil, OutOfRange
	case !k.covers(va, n) && !t.breaks(rule.KeyCoversTheAccess):
		return nil, OutOfRange
	case !k.permits(a) && !t.breaks(rule.KeyPermitsTheAccess):
		return nil, NoRight
	case !k.boundToUsable() && !t.breaks(rule.WindowNeedsItsRegion):
		return nil, Free
	case !k.modelled() && !t.breaks(rule.KeyIsOfAKnownKind):
		return nil, NotModelled
	}
	return k, OK
}

// checkDumpFill is the check of a key that names no entry of the table.
func (t *Table) checkDumpFill(mkey uint32, a Access) (*Key, Result) {
	switch {
	case t.dumpFill == nil || mkey != t.dumpFillMKey && !t.breaks(rule.KeyExists):
		return nil, NoKey
	case a&^(LocalRead|LocalWrite) != 0 && !t.breaks(rule.NullKeyIsLocal):
		return nil, NoRight
	}
	return t.dumpFill, OK
}

// named says whether there is a key and the variant byte of mkey is its own.
func (k *Key) named(mkey uint32) bool { return k != nil && k.variant == uint8(mkey) }

// inUse says whether the key is not in the free state, to which an invalidation and
// unbinding bring it.
func (k *Key) inUse() bool { return !k.free }

// ofPD says whether the key is of a protection domain.
func (k *Key) ofPD(pd uint32) bool { return k.PD == pd }

// ofQP says whether a QP may use the key: a window of type 2 is bound to one.
func (k *Key) ofQP(qpn uint32) bool { return k.qpn == prm.MKeyQPNAny || k.qpn == qpn }

// wraps says whether [va, va+n) goes beyond the last address.
func wraps(va, n uint64) bool { return va+n < va && va+n != 0 }

// covers says whether the key's range holds [va, va+n), which does not wrap.
func (k *Key) covers(va, n uint64) bool {
	return k.length64 || va >= k.start && va-k.start <= k.len && n <= k.len-(va-k.start)
}

// permits says whether the key has all rights of a set.
func (k *Key) permits(a Access) bool { return k.rights&a == a }

// boundToUsable says that the key is not a window whose region has become free.
func (k *Key) boundToUsable() bool {
	return k.mode != prm.MKeyModeKLM || k.window.region == nil || k.window.region.inUse()
}

// modelled says whether the device can translate by a key of this mode.
func (k *Key) modelled() bool {
	switch k.mode {
	case prm.MKeyModePA, prm.MKeyModeMTT, prm.MKeyModeMemic, prm.MKeyModeSWICM, prm.MKeyModeKSM:
		return true
	}
	return k.mode == prm.MKeyModeKLM && (k.window.region != nil || len(k.children) > 0 || k.rounds != nil)
}
