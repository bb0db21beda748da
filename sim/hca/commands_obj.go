package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/sim/uar"
)

func cmdAllocUAR(d *Device, _, out []byte) prm.Status {
	n, ok := d.uarNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.uars[n] = uar.NewPage(n, d.p.BFRegSize, &d.p.UAR)
	d.uarUsers[n] = 0
	prm.AllocUAROut(out).SetUAR(n)
	return prm.StatusOK
}

func cmdDeallocUAR(d *Device, in, _ []byte) prm.Status {
	n := prm.DeallocUARIn(in).UAR()
	if !d.hasUAR(n) || d.uarUsers[n] > 0 {
		return prm.StatusBadResState
	}
	d.uars[n].Settle(d.e)
	d.c.UARPast.Add(&d.uars[n].Counters)
	d.returnAhead(n)
	d.uars[n] = nil
	d.uarNums.release(n)
	return prm.StatusOK
}

func (d *tables) hasUAR(n uint32) bool { return uint64(n) < uint64(len(d.uars)) && d.uars[n] != nil }

func cmdAllocPD(d *Device, _, out []byte) prm.Status {
	n, st := allocCounted(&d.pdNums, &d.pds)
	prm.AllocPDOut(out).SetPD(n)
	return st
}

func cmdDeallocPD(d *Device, in, _ []byte) prm.Status {
	n := prm.DeallocPDIn(in).PD()
	if d.keys.UsersOf(n) > 0 && !d.breaks(rule.DestroyedKeyIsGone) {
		return prm.StatusBadResState
	}
	return deallocCounted(&d.pdNums, d.pds, n)
}

func (d *tables) hasPD(n uint32) bool { return counted(d.pds, n) }

// counted, allocCounted and deallocCounted serve objects that are a number and the count of their
// users, which is -1 for a number that is not allocated.
func counted(t []int32, n uint32) bool { return uint64(n) < uint64(len(t)) && t[n] >= 0 }

func allocCounted(nums *numbers, t *[]int32) (uint32, prm.Status) {
	n, ok := nums.alloc()
	if !ok {
		return 0, prm.StatusLimErr
	}
	for uint64(len(*t)) <= uint64(n) {
		*t = append(*t, -1)
	}
	(*t)[n] = 0
	return n, prm.StatusOK
}

func deallocCounted(nums *numbers, t []int32, n uint32) prm.Status {
	if !counted(t, n) || t[n] > 0 {
		return prm.StatusBadResState
	}
	t[n] = -1
	nums.release(n)
	return prm.StatusOK
}

// destroyed is the end of numbered object n, which has users.
func destroyed[T any](t []*T, n uint32, users int, nums *numbers) prm.Status {
	if users > 0 {
		return prm.StatusBadResState
	}
	t[n] = nil
	nums.release(n)
	return prm.StatusOK
}

func cmdAllocXRCD(d *Device, _, out []byte) prm.Status {
	n, st := allocCounted(&d.xrcdNums, &d.xrcds)
	prm.AllocXRCDOut(out).SetXRCD(n)
	return st
}

func cmdDeallocXRCD(d *Device, in, _ []byte) prm.Status {
	return deallocCounted(&d.xrcdNums, d.xrcds, prm.DeallocXRCDIn(in).XRCD())
}

func cmdAllocTD(d *Device, _, out []byte) prm.Status {
	n, st := allocCounted(&d.tdNums, &d.tds)
	prm.AllocTransportDomainOut(out).SetTransportDomain(n)
	return st
}

func cmdDeallocTD(d *Device, in, _ []byte) prm.Status {
	return deallocCounted(&d.tdNums, d.tds, prm.DeallocTransportDomainIn(in).TransportDomain())
}

// maxTranslations is for how many units of 16 bytes a key has room at most: 512 GiB in pages of 4
// KiB.
const maxTranslations = 1 << 26

// cmdCreateMKey makes keys of modes PA and MTT, free ones of mode KLM, which a UMR binds as memory
// windows, and of mode KSM, which a UMR gives entries, and keys of memory on the device. Others are
// not modelled and refused.
func cmdCreateMKey(d *Device, in, out []byte) prm.Status {
	m := prm.CreateMKeyIn(in)
	c := m.MKC()
	units := int(m.TranslationsOctwordActualSize())
	mode := c.AccessMode()
	switch {
	case !d.hasPD(c.PD()), mode > prm.MKeyModeKSM && mode != prm.MKeyModeMemic && mode != prm.MKeyModeSWICM, m.MKeyUmemValid(), c.TranslationsOctwordSize() > maxTranslations:
		return prm.StatusBadParam
	case mode == prm.MKeyModeMemic && (c.Length64() || !d.memory.holds(c.StartAddr(), c.Len())):
		return prm.StatusBadParam
	case mode == prm.MKeyModeSWICM && (c.Length64() || c.Len() == 0 || !d.memory.icm.holds(c.StartAddr(), c.Len())):
		return prm.StatusBadParam
	case mode == prm.MKeyModeKLM && (!c.Free() || !c.UMREn() || c.Length64() || units != 0):
		return prm.StatusBadParam
	case mode == prm.MKeyModeKSM && (!c.Free() || !c.UMREn() || units != 0 || c.LogPageSize() > 52):
		return prm.StatusBadParam
	case mode == prm.MKeyModeMTT && (c.LogPageSize() > 52 && !isNullKey(m) || c.LogPageSize() < 8):
		return prm.StatusBadParam
	case units < 0 || units > len(m.Entries())/16:
		return prm.StatusBadParam
	case !c.Length64() && c.StartAddr()+c.Len() < c.StartAddr() && c.StartAddr()+c.Len() != 0:
		return prm.StatusBadParam
	}
	if !d.keys.Room(2 * units) {
		return prm.StatusNoRes
	}
	n, ok := d.keyNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.gone.remove(n)
	d.keys.Insert(n, c, prm.MTT(m.Entries()[:units*16]), m.PGAccess())
	d.caches.fillKey(n, c.StartAddr(), c.Len())
	prm.CreateMKeyOut(out).SetMKeyIndex(n)
	return prm.StatusOK
}

// isNullKey says whether a key to be made is one of all addresses in pages of 2^61 bytes, which a
// driver makes for faults in them.
func isNullKey(m prm.CreateMKeyIn) bool {
	const logPageSize = 61
	return m.PGAccess() && m.MKC().Length64() && m.MKC().LogPageSize() == logPageSize
}

func cmdQueryMKey(d *Device, in, out []byte) prm.Status {
	k := d.keys.At(prm.QueryMKeyIn(in).MKeyIndex())
	if k == nil {
		return prm.StatusBadResState
	}
	o := prm.QueryMKeyOut(out)
	copy(o.MKC(), k.Context[:])
	for i := range 4 {
		t := o.Entries01()
		if i >= 2 {
			t = o.Entries23()
		}
		if e, ok := k.Entry(i); ok {
			prm.PAS(t).Set(i%2, e)
		}
	}
	for i := range (len(out)-prm.QueryMKeyOutSize)/prm.KLMSize + 2 {
		if key, va, n, ok := k.LeadsTo(i); ok {
			o.KLM(i).SetMKey(key)
			o.KLM(i).SetVA(va)
			o.KLM(i).SetByteCount(n)
		}
	}
	return prm.StatusOK
}

func cmdDestroyMKey(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyMKeyIn(in).MKeyIndex()
	k := d.keys.At(n)
	if k == nil || k.BoundWindows() > 0 {
		return prm.StatusBadResState
	}
	if d.breaks(rule.DestroyedKeyIsGone) {
		return prm.StatusOK
	}
	d.keys.Remove(n)
	d.keyNums.release(n)
	d.gone.add(n, d.e.Now(), d.p.DeregSilence)
	if d.p.FlushOnDestroy {
		d.caches.flushKeys()
	}
	return prm.StatusOK
}

func cmdSpecialContexts(_ *Device, _, out []byte) prm.Status {
	o := prm.QuerySpecialContextsOut(out)
	o.SetDumpFillMKey(dumpFillKey)
	o.SetResdLKey(reservedKey)
	o.SetNullMKey(nullKey)
	o.SetTerminateScatterListMKey(prm.InvalidLKey)
	return prm.StatusOK
}
