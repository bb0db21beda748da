package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// maskKnown are the fields of a context that a UMR of a program takes. Signatures are not among
// them: no driver here asks for them.
const maskKnown = prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN | prm.MKeyMaskLen | prm.MKeyMaskStartAddr |
	prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA

// Queue is the queue whose work request changes a key.
type Queue struct {
	User
	FastRegister bool // it may name physical memory: a queue of the host's kernel
	Driver       bool // and it changes keys of every PD and every QP: the one for UMRs
}

// Update changes a key as a UMR work request of queue u asks: binding and unbinding of memory
// windows, local invalidation, registration. list is what the request says of entries; c its
// context segment. All is checked before anything is changed.
func (t *Table) Update(u Queue, mkey uint32, umr prm.UMRCtrlSegment, c prm.MKC, list []byte) Result {
	r := t.update(u, mkey, umr, c, list)
	if r == NoKey && t.breaks(rule.ChangedKeyExists) {
		return OK
	}
	if r != OK {
		t.Failed[r]++
	}
	return r
}

// update is Update, uncounted.
func (t *Table) update(u Queue, mkey uint32, umr prm.UMRCtrlSegment, c prm.MKC, list []byte) Result {
	k := t.At(mkey >> 8)
	if r := t.checkUpdate(k, u, mkey, umr); r != OK {
		return r
	}
	mask, to := umr.MKeyMask(), window{}
	before := k.words()
	defer func() { t.words += k.words() - before }()
	listed := !u.FastRegister && k.listed(umr, list)
	switch {
	case listed:
		if r := t.checkList(k, list); r != OK {
			return r
		}
	case k.mode != prm.MKeyModeKLM || u.FastRegister && len(list) > 0:
		if r := k.checkLoad(u, umr, c, list); r != OK {
			return r
		}
		if !t.Room(k.growth(umr, list)) {
			return NoMemory
		}
		k.load(umr, c, list)
	case len(list) > 0:
		var r Result
		if to, r = t.target(k, c, list); r != OK {
			return r
		}
	}
	t.apply(k, mask, c)
	if k.mode == prm.MKeyModeKLM && (!k.inUse() || to.region != nil) {
		k.bind(to)
		k.forget()
	}
	if listed && k.inUse() {
		t.takeList(k, list)
	}
	return OK
}

// checkUpdate is the order in which the device checks a UMR and the key that it changes, a
// step each. A UMR that gives the key a new variant byte may name it by any.
func (t *Table) checkUpdate(k *Key, u Queue, mkey uint32, umr prm.UMRCtrlSegment) Result {
	mask, flags := umr.MKeyMask(), umr.Flags()
	switch {
	case k == nil:
		return NoKey
	case !k.mayTake(u, umr) && !t.breaks(rule.ChangeIsOfAKnownKind):
		return NotModelled
	case mask&prm.MKeyMaskKey == 0 && !k.named(mkey) && !t.breaks(rule.ChangedKeyHasItsVariant):
		return NoKey
	case !k.umrEnabled() && !t.breaks(rule.ChangedKeyAllowsIt):
		return NoRight
	case !u.Driver && !k.ofPD(u.PD) && !t.breaks(rule.ChangedKeyIsOfThePD):
		return OtherPD
	case flags&prm.UMRCheckFree != 0 && k.inUse() && !t.breaks(rule.BoundWindowIsNotBound):
		return NotFree
	case flags&prm.UMRCheckNotFree != 0 && !k.inUse() && !t.breaks(rule.ChangedKeyIsInUse):
		return Free
	case !u.Driver && (flags&prm.UMRCheckQPN != 0 || mask&prm.MKeyMaskFree != 0) && !k.ofQP(u.QPN) && !t.breaks(rule.UnboundWindowIsOfTheQP):
		return OtherQP
	}
	return OK
}

// mayTake says whether a queue may change the fields that a UMR names. A window has one entry.
func (k *Key) mayTake(u Queue, umr prm.UMRCtrlSegment) bool {
	known := uint64(maskKnown)
	if u.FastRegister {
		known |= loadable
	}
	if u.Driver {
		known |= prm.MKeyMaskPD
	}
	return umr.MKeyMask()&^known == 0 && (k.mode != prm.MKeyModeKLM || umr.Flags()&prm.UMRTranslationOffset == 0 || umr.XLTOffset() == 0)
}

// umrEnabled says whether work requests may change the key.
func (k *Key) umrEnabled() bool { return prm.MKC(k.Context[:]).UMREn() }

// target checks the one entry of a window that is to be bound, with the range and the
// rights of its new context.
func (t *Table) target(k *Key, c prm.MKC, entries []byte) (window, Result) {
	e := prm.KLM(entries[:prm.KLMSize])
	if k.mode != prm.MKeyModeKLM || uint32(len(entries)/prm.KLMSize) > prm.MKC(k.Context[:]).TranslationsOctwordSize() {
		return window{}, NotModelled
	}
	for _, b := range entries[prm.KLMSize:] {
		if b != 0 {
			return window{}, NotModelled
		}
	}
	n := uint64(e.ByteCount())
	if n == 0 {
		n = 1 << 31
	}
	region := t.At(e.MKey() >> 8)
	if r := t.checkBind(region, k, c, e.MKey(), e.VA(), n); r != OK {
		return window{}, r
	}
	return window{region, e.VA()}, OK
}

// checkBind is the order in which the device checks the region to [va, va+n) of which window
// w, with its new context c, shall be bound, a step each.
func (t *Table) checkBind(k, w *Key, c prm.MKC, mkey uint32, va, n uint64) Result {
	switch {
	case !k.named(mkey) && (k == nil || !t.breaks(rule.BoundRegionHasItsVariant)):
		return NoKey
	case !k.inUse() && !t.breaks(rule.BoundRegionIsInUse):
		return Free
	case !k.ofPD(w.PD) && !t.breaks(rule.WindowIsOfItsRegionsPD):
		return OtherPD
	case k.mode != prm.MKeyModeMTT && k.mode != prm.MKeyModePA && k.mode != prm.MKeyModeKSM && !t.breaks(rule.BoundRegionIsOfAKnownKind):
		return NotModelled
	case !k.covers(va, n) && !t.breaks(rule.WindowLiesInItsRegion):
		return OutOfRange
	case (c.Len() > n || c.Length64()) && !t.breaks(rule.WindowIsNotLongerThanItsEntry):
		return OutOfRange
	case (c.RW() || c.A()) && !k.permits(LocalWrite) && !t.breaks(rule.WritableWindowNeedsAWritableRegion):
		return NoRight
	}
	return OK
}

// Invalidate makes a key unusable on a SEND with invalidate from the peer of user u. It reports
// whether the key allows that. A window that is free is no QP's, as after a local invalidation
// (k:sw/rxe/rxe_mw.c rxe_do_invalidate_mw, which serves both).
func (t *Table) Invalidate(u User, mkey uint32) Result {
	k := t.At(mkey >> 8)
	switch {
	case !k.named(mkey):
		if t.breaks(rule.InvalidatedKeyExists) {
			return OK
		}
		return NoKey
	case !k.inUse() && !t.breaks(rule.InvalidatedKeyIsInUse):
		return Free
	case !k.ofPD(u.PD) && !t.breaks(rule.InvalidatedKeyIsOfThePD):
		return OtherPD
	case !k.ofQP(u.QPN) && !t.breaks(rule.InvalidatedKeyIsOfTheQP):
		return OtherQP
	case !k.remoteInvalidate && !t.breaks(rule.InvalidatedKeyAllowsIt):
		return NoRight
	}
	if t.breaks(rule.InvalidatedKeyIsFree) {
		return OK
	}
	k.free, k.qpn = true, prm.MKeyQPNAny
	c := prm.MKC(k.Context[:])
	c.SetFree(true)
	c.SetQPN(prm.MKeyQPNAny)
	k.bind(window{})
	return OK
}
