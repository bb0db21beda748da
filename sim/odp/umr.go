package odp

import "github.com/rdmasim/rdmasim/prm"

// maskKnown are the fields of a context that Update takes. Sizes of pages, whole
// regions and signatures are not among them: no driver here asks for them.
const maskKnown = prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN | prm.MKeyMaskLen | prm.MKeyMaskStartAddr |
	prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA

// window is what a key of mode KLM leads to: a memory window has one entry.
type window struct {
	key *Key
	va  uint64
}

// Update changes a key as a UMR work request of user u asks: binding and unbinding of
// memory windows, and local invalidation. All is checked before anything is changed.
func (t *Table) Update(u User, key uint32, umr prm.UMRCtrlSegment, c prm.MKC, entries []byte) Result {
	r := t.update(u, key, umr, c, entries)
	if r != OK {
		t.Faults[r]++
	}
	return r
}

func (t *Table) update(u User, key uint32, umr prm.UMRCtrlSegment, c prm.MKC, entries []byte) Result {
	k := t.At(key >> 8)
	mask, flags := umr.MKeyMask(), umr.Flags()
	switch {
	case k == nil:
		return NoKey
	case mask&^maskKnown != 0 || flags&prm.UMRTranslationOffset != 0 && umr.XLTOffset() != 0:
		return NotWanted
	case mask&prm.MKeyMaskKey == 0 && k.variant != uint8(key):
		return NoKey
	case !prm.MKC(k.Context[:]).UMREn():
		return Rights
	case k.PD != u.PD:
		return OtherPD
	case flags&prm.UMRCheckFree != 0 && !k.free:
		return NotFree
	case flags&prm.UMRCheckNotFree != 0 && k.free:
		return Free
	case k.qpn != prm.MKeyQPNAny && k.qpn != u.QPN && (flags&prm.UMRCheckQPN != 0 || mask&prm.MKeyMaskFree != 0):
		return OtherQP
	}
	to := window{}
	if len(entries) > 0 {
		var r Result
		if to, r = t.target(k, c, entries); r != OK {
			return r
		}
	}
	k.apply(mask, c)
	if k.mode == prm.MKeyModeKLM && (k.free || to.key != nil) {
		k.lead(to)
	}
	return OK
}

// changeable are the fields of a context that Change takes.
const changeable = prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA | prm.MKeyMaskPD |
	prm.MKeyMaskRelaxedOrderingWrite | prm.MKeyMaskRelaxedOrderingRead

// Change changes the rights and the PD of a key in use as a driver asks, who may do so with
// the keys of every PD.
func (t *Table) Change(key uint32, umr prm.UMRCtrlSegment, c prm.MKC) Result {
	k := t.At(key >> 8)
	switch {
	case k == nil || k.variant != uint8(key):
		return NoKey
	case umr.MKeyMask()&^changeable != 0:
		return NotWanted
	case !prm.MKC(k.Context[:]).UMREn():
		return Rights
	case umr.Flags()&prm.UMRCheckNotFree != 0 && k.free:
		return Free
	}
	k.apply(umr.MKeyMask(), c)
	return OK
}

// target checks the one entry of a window that is to be bound, with the range and the
// rights of its new context.
func (t *Table) target(k *Key, c prm.MKC, entries []byte) (window, Result) {
	e := prm.KLM(entries[:prm.KLMSize])
	if k.mode != prm.MKeyModeKLM || uint32(len(entries)/prm.KLMSize) > prm.MKC(k.Context[:]).TranslationsOctwordSize() {
		return window{}, NotWanted
	}
	for _, b := range entries[prm.KLMSize:] {
		if b != 0 {
			return window{}, NotWanted
		}
	}
	n := uint64(e.ByteCount())
	if n == 0 {
		n = 1 << 31
	}
	m := t.At(e.MKey() >> 8)
	switch {
	case m == nil || m.variant != uint8(e.MKey()):
		return window{}, NoKey
	case m.free:
		return window{}, Free
	case m.PD != k.PD:
		return window{}, OtherPD
	case m.mode != prm.MKeyModeMTT && m.mode != prm.MKeyModePA:
		return window{}, NotWanted
	case !m.inRange(e.VA(), n) || c.Len() > n:
		return window{}, Range
	case (c.RW() || c.A()) && m.rights&LocalWrite == 0:
		return window{}, Rights
	}
	return window{m, e.VA()}, OK
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

// lead makes the window lead to another key, or to none.
func (k *Key) lead(to window) {
	if k.to.key != nil {
		k.to.key.windows--
	}
	if k.to = to; to.key != nil {
		to.key.windows++
	}
}

// Windows is how many memory windows are bound to the key.
func (k *Key) Windows() int { return k.windows }
