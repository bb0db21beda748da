package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
)

// loadable are further fields that a UMR of the host's kernel takes: the size of pages, the
// ordering of the bus, and whether peers may invalidate the key.
const loadable = prm.MKeyMaskPageSize | prm.MKeyMaskPageSize5 | prm.MKeyMaskEnRInval | prm.MKeyMaskSmallFence |
	prm.MKeyMaskRelaxedOrderingWrite | prm.MKeyMaskRelaxedOrderingRead

// xltUnit is the unit in which a UMR counts entries, and xltAlign of how many units lists are
// (MLX5_UMR_FLEX_ALIGNMENT): a key has room for them, whatever its size says.
const (
	xltUnit  = 16
	xltAlign = 4
)

// checkLoad looks at what a UMR says of the entries, the page size and the state of a key that has
// translations.
func (k *Key) checkLoad(u Queue, umr prm.UMRCtrlSegment, c prm.MKC, list []byte) Result {
	mask := umr.MKeyMask()
	if k.mode == prm.MKeyModeKLM { // its entries have sizes of their own
		mask &^= prm.MKeyMaskPageSize | prm.MKeyMaskPageSize5
	}
	if size := k.newPageSize(mask, c); mask&(prm.MKeyMaskPageSize|prm.MKeyMaskPageSize5) != 0 && (size < prm.PageShift || size > 52) {
		return NotModelled
	}
	if u.Driver && mask&prm.MKeyMaskFree != 0 && c.Free() && k.boundWindows > 0 {
		return NotFree
	}
	if len(list) == 0 {
		return OK
	}
	units := uint64(len(list) / xltUnit)
	room := (uint64(prm.MKC(k.Context[:]).TranslationsOctwordSize()) + xltAlign - 1) &^ (xltAlign - 1)
	switch {
	case !u.FastRegister || !k.hasEntries() || units%xltAlign != 0:
		return NotModelled
	case xltOffset(umr) > room || units > room-xltOffset(umr):
		return OutOfRange
	}
	return OK
}

// hasEntries says whether the key is of a mode whose entries a UMR writes.
func (k *Key) hasEntries() bool {
	return k.mode == prm.MKeyModeMTT || k.mode == prm.MKeyModeKSM || k.mode == prm.MKeyModeKLM
}

// xltOffset is the first unit that a UMR writes.
func xltOffset(umr prm.UMRCtrlSegment) uint64 {
	if umr.Flags()&prm.UMRTranslationOffset == 0 {
		return 0
	}
	return umr.XLTOffset()
}

// newPageSize is the logarithm of the size of pages after a UMR, whose mask has a bit of its own
// for the field's sixth bit.
func (k *Key) newPageSize(mask uint64, c prm.MKC) uint32 {
	const sixth = 1 << 5
	size := uint32(k.logPage)
	if mask&prm.MKeyMaskPageSize != 0 {
		size = size&sixth | c.LogPageSize()&(sixth-1)
	}
	if mask&prm.MKeyMaskPageSize5 != 0 {
		size = size&(sixth-1) | c.LogPageSize()&sixth
	}
	return size
}

// load writes entries and the size of pages.
func (k *Key) load(umr prm.UMRCtrlSegment, c prm.MKC, list []byte) {
	at := int(xltOffset(umr))
	if k.mode == prm.MKeyModeKLM {
		k.bind(window{})
		k.rounds, k.program = nil, false
	} else {
		k.setPageSize(k.newPageSize(umr.MKeyMask(), c))
	}
	if k.mode != prm.MKeyModeMTT {
		k.children = lengthened(k.children, at+len(list)/xltUnit)
		for i := range len(list) / xltUnit {
			e := prm.KLM(list[i*xltUnit : (i+1)*xltUnit])
			k.children[at+i] = child{e.MKey(), e.VA(), e.ByteCount()}
		}
		return
	}
	entries := prm.MTT(list)
	if k.far != nil {
		for i := range entries.Count() {
			k.far.set(uint64(2*at+i), entries.Addr(i)|entries.Rights(i))
		}
		return
	}
	k.entries = lengthened(k.entries, 2*at+entries.Count())
	for i := range entries.Count() {
		k.entries[2*at+i] = entries.Addr(i) | entries.Rights(i)
	}
}

// lengthened has n elements at least.
func lengthened[E any](s []E, n int) []E {
	if n <= len(s) {
		return s
	}
	return append(s, make([]E, n-len(s))...)
}

// setPageSize takes the logarithm of a size.
func (k *Key) setPageSize(log uint32) {
	k.logPage, k.pageMask = uint8(log), 1<<log-1
	prm.MKC(k.Context[:]).SetLogPageSize(log)
}

// apply takes the fields of c that mask names.
func (t *Table) apply(k *Key, mask uint64, c prm.MKC) {
	own := prm.MKC(k.Context[:])
	for _, f := range [...]struct {
		bit  uint64
		take func()
	}{
		{prm.MKeyMaskFree, func() { own.SetFree(c.Free()) }},
		{prm.MKeyMaskKey, func() { own.SetMKey70(c.MKey70()) }},
		{prm.MKeyMaskQPN, func() { own.SetQPN(c.QPN()) }},
		{prm.MKeyMaskLen, func() { own.SetLen(c.Len()); own.SetLength64(c.Length64()) }},
		{prm.MKeyMaskStartAddr, func() { own.SetStartAddr(c.StartAddr()) }},
		{prm.MKeyMaskLR, func() { own.SetLR(c.LR()) }},
		{prm.MKeyMaskLW, func() { own.SetLW(c.LW()) }},
		{prm.MKeyMaskRR, func() { own.SetRR(c.RR()) }},
		{prm.MKeyMaskRW, func() { own.SetRW(c.RW()) }},
		{prm.MKeyMaskA, func() { own.SetA(c.A()) }},
		{prm.MKeyMaskPD, func() { own.SetPD(c.PD()) }},
		{prm.MKeyMaskEnRInval, func() { own.SetEnRInval(c.EnRInval()) }},
		{prm.MKeyMaskSmallFence, func() { own.SetSmallFenceOnRdmaReadResponse(c.SmallFenceOnRdmaReadResponse()) }},
		{prm.MKeyMaskRelaxedOrderingWrite, func() { own.SetRelaxedOrderingWrite(c.RelaxedOrderingWrite()) }},
		{prm.MKeyMaskRelaxedOrderingRead, func() { own.SetRelaxedOrderingRead(c.RelaxedOrderingRead()) }},
	} {
		if mask&f.bit != 0 {
			f.take()
		}
	}
	t.count(k.PD, -1)
	k.free, k.variant, k.qpn, k.length64 = own.Free(), uint8(own.MKey70()), own.QPN(), own.Length64()
	k.PD, k.start, k.len, k.rights = own.PD(), own.StartAddr(), own.Len(), rightsOf(own)
	k.remoteInvalidate = own.EnRInval()
	k.pageOff = k.start & k.pageMask
	t.count(k.PD, 1)
}
