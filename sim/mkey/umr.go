package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// maskKnown are the fields of a context that Update takes. Sizes of pages, whole
// regions and signatures are not among them: no driver here asks for them.
const maskKnown = prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN | prm.MKeyMaskLen | prm.MKeyMaskStartAddr |
	prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA

// Update changes a key as a UMR work request of user u asks: binding and unbinding of
// memory windows, and local invalidation. All is checked before anything is changed.
func (t *Table) Update(u User, mkey uint32, umr prm.UMRCtrlSegment, c prm.MKC, entries []byte) Result {
	r := t.update(u, mkey, umr, c, entries)
	if r == NoKey && t.breaks(rule.ChangedKeyExists) {
		return OK
	}
	if r != OK {
		t.Failed[r]++
	}
	return r
}

// update is Update, uncounted.
func (t *Table) update(u User, mkey uint32, umr prm.UMRCtrlSegment, c prm.MKC, entries []byte) Result {
	k := t.At(mkey >> 8)
	if r := t.checkUpdate(k, u, mkey, umr); r != OK {
		return r
	}
	mask := umr.MKeyMask()
	to := window{}
	if len(entries) > 0 {
		var r Result
		if to, r = t.target(k, c, entries); r != OK {
			return r
		}
	}
	k.apply(mask, c)
	if k.mode == prm.MKeyModeKLM && (!k.inUse() || to.region != nil) {
		k.bind(to)
	}
	return OK
}

// checkUpdate is the order in which the device checks a UMR and the key that it changes, a
// step each. A UMR that gives the key a new variant byte may name it by any.
func (t *Table) checkUpdate(k *Key, u User, mkey uint32, umr prm.UMRCtrlSegment) Result {
	mask, flags := umr.MKeyMask(), umr.Flags()
	switch {
	case k == nil:
		return NoKey
	case (mask&^maskKnown != 0 || flags&prm.UMRTranslationOffset != 0 && umr.XLTOffset() != 0) && !t.breaks(rule.ChangeIsOfAKnownKind):
		return NotModelled
	case mask&prm.MKeyMaskKey == 0 && !k.named(mkey) && !t.breaks(rule.ChangedKeyHasItsVariant):
		return NoKey
	case !k.umrEnabled() && !t.breaks(rule.ChangedKeyAllowsIt):
		return NoRight
	case !k.ofPD(u.PD) && !t.breaks(rule.ChangedKeyIsOfThePD):
		return OtherPD
	case flags&prm.UMRCheckFree != 0 && k.inUse() && !t.breaks(rule.BoundWindowIsNotBound):
		return NotFree
	case flags&prm.UMRCheckNotFree != 0 && !k.inUse() && !t.breaks(rule.ChangedKeyIsInUse):
		return Free
	case (flags&prm.UMRCheckQPN != 0 || mask&prm.MKeyMaskFree != 0) && !k.ofQP(u.QPN) && !t.breaks(rule.UnboundWindowIsOfTheQP):
		return OtherQP
	}
	return OK
}

// umrEnabled says whether work requests may change the key.
func (k *Key) umrEnabled() bool { return prm.MKC(k.Context[:]).UMREn() }

// loadable are further fields that Change takes with new translations, or that make a key free.
const loadable = prm.MKeyMaskFree | prm.MKeyMaskLen | prm.MKeyMaskStartAddr | prm.MKeyMaskPageSize

// changeable are the fields of a context that Change takes.
const changeable = prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA | prm.MKeyMaskPD |
	prm.MKeyMaskRelaxedOrderingWrite | prm.MKeyMaskRelaxedOrderingRead

// Change changes a key as a driver asks, which may do so with the keys of every PD: rights and PD,
// whether it is free, and, with the flag of translations, its range and its entries, for which the
// key must have room.
func (t *Table) Change(mkey uint32, umr prm.UMRCtrlSegment, c prm.MKC, entries prm.MTT) Result {
	k := t.At(mkey >> 8)
	switch {
	case !k.named(mkey):
		return NoKey
	case umr.MKeyMask()&^(changeable|loadable) != 0:
		return NotModelled
	case umr.Flags()&prm.UMRTranslationOffset == 0 && umr.MKeyMask()&loadable&^prm.MKeyMaskFree != 0, k.mode != prm.MKeyModeMTT && umr.MKeyMask()&loadable != 0:
		return NotModelled
	case !k.umrEnabled():
		return NoRight
	case umr.Flags()&prm.UMRCheckNotFree != 0 && !k.inUse():
		return Free
	case umr.MKeyMask()&prm.MKeyMaskFree != 0 && c.Free() && k.boundWindows > 0:
		return NotFree
	case uint32(entries.Count()+1)/2 > prm.MKC(k.Context[:]).TranslationsOctwordSize():
		return OutOfRange
	}
	if umr.Flags()&prm.UMRTranslationOffset != 0 {
		k.load(c, entries)
	}
	k.apply(umr.MKeyMask(), c)
	return OK
}

// load gives a key other translations.
func (k *Key) load(c prm.MKC, entries prm.MTT) {
	prm.MKC(k.Context[:]).SetLogPageSize(c.LogPageSize())
	k.logPage = uint8(c.LogPageSize())
	k.pageMask = 1<<k.logPage - 1
	k.setEntries(entries)
}

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
	case k.mode != prm.MKeyModeMTT && k.mode != prm.MKeyModePA && !t.breaks(rule.BoundRegionIsOfAKnownKind):
		return NotModelled
	case !k.covers(va, n) && !t.breaks(rule.WindowLiesInItsRegion):
		return OutOfRange
	case c.Len() > n && !t.breaks(rule.WindowIsNotLongerThanItsEntry):
		return OutOfRange
	case (c.RW() || c.A()) && !k.permits(LocalWrite) && !t.breaks(rule.WritableWindowNeedsAWritableRegion):
		return NoRight
	}
	return OK
}

// Invalidate makes a key unusable on a SEND with invalidate from the peer of user
// u. It reports whether the key allows that.
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
	k.free = true
	prm.MKC(k.Context[:]).SetFree(true)
	k.bind(window{})
	return OK
}

// apply takes the fields of c that mask names.
func (k *Key) apply(mask uint64, c prm.MKC) {
	own := prm.MKC(k.Context[:])
	for _, f := range [...]struct {
		bit  uint64
		take func()
	}{
		{prm.MKeyMaskFree, func() { own.SetFree(c.Free()) }},
		{prm.MKeyMaskKey, func() { own.SetMKey70(c.MKey70()) }},
		{prm.MKeyMaskQPN, func() { own.SetQPN(c.QPN()) }},
		{prm.MKeyMaskLen, func() { own.SetLen(c.Len()) }},
		{prm.MKeyMaskStartAddr, func() { own.SetStartAddr(c.StartAddr()) }},
		{prm.MKeyMaskLR, func() { own.SetLR(c.LR()) }},
		{prm.MKeyMaskLW, func() { own.SetLW(c.LW()) }},
		{prm.MKeyMaskRR, func() { own.SetRR(c.RR()) }},
		{prm.MKeyMaskRW, func() { own.SetRW(c.RW()) }},
		{prm.MKeyMaskA, func() { own.SetA(c.A()) }},
		{prm.MKeyMaskPD, func() { own.SetPD(c.PD()) }},
		{prm.MKeyMaskRelaxedOrderingWrite, func() { own.SetRelaxedOrderingWrite(c.RelaxedOrderingWrite()) }},
		{prm.MKeyMaskRelaxedOrderingRead, func() { own.SetRelaxedOrderingRead(c.RelaxedOrderingRead()) }},
	} {
		if mask&f.bit != 0 {
			f.take()
		}
	}
	k.free, k.variant, k.qpn = own.Free(), uint8(own.MKey70()), own.QPN()
	k.PD, k.start, k.len, k.rights = own.PD(), own.StartAddr(), own.Len(), rightsOf(own)
	k.pageOff = k.start & k.pageMask
}
