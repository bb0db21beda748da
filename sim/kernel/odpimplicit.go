package kernel

import (
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// An implicit region is a key of mode KSM whose places of 1 GiB lead to children, each a region of
// its own, or to the null key. A user address has 47 bits.
const (
	slotShift     = 30
	slotSize      = 1 << slotShift
	implicitSlots = 1 << (47 - slotShift)
	implicitSize  = implicitSlots * slotSize
)

// registerImplicit is mlx5_ib_alloc_implicit_mr. EINVAL: iova is not 0, the device cannot, or huge
// pages.
func (m *mr) registerImplicit(k *call) error {
	d := k.d
	switch {
	case m.iova != 0:
		return fmt.Errorf("the whole address space at %#x: %w", m.iova, syscall.EINVAL)
	case !d.caps.odp.implicit:
		return fmt.Errorf("the device has no regions of the whole address space: %w", syscall.EINVAL)
	case m.access&hugeAccess != 0:
		return fmt.Errorf("the whole address space in huge pages: %w", syscall.EINVAL)
	}
	o := &odpMem{proc: m.u.proc, length: wholeSpace, shift: mem.PageShift, writable: m.access&writable != 0, implicit: true}
	if err := o.proc.RAM.roomForRegions(o.keeps()); err != nil {
		return err
	}
	m.odp = o
	if err := m.enableImplicit(k); err != nil {
		m.odp = nil
		return err
	}
	o.note(o.keeps())
	d.count.Paging.Regions++
	return nil
}

// enableImplicit makes the key, and where faults name memory a null key of its own.
func (m *mr) enableImplicit(k *call) (err error) {
	d, r := k.d, &m.paging
	if m.mkey, m.entry, err = k.takeKSM(m.access); err != nil {
		return err
	}
	m.shape = d.ksmShape(m.access)
	r.nullKey, m.pageSize, r.children = d.caps.nullKey, slotSize, map[uint64]*mr{}
	if d.caps.odp.memory {
		if r.nullKey, err = m.makeNullKey(k); err != nil {
			m.giveBack(k)
			return err
		}
		d.odp.keys[r.nullKey>>8] = &odpKey{kind: keyOfNull, key: r.nullKey, mr: m}
	}
	for at := uint64(0); at < implicitSlots && err == nil; at += ksmsOfList {
		n, mask := min(implicitSlots-at, ksmsOfList), uint64(0)
		if at+n == implicitSlots {
			mask = d.enableMask()
		}
		err = k.postList(m, prm.UMRCheckFree, mask, prm.KLMSize*at, m.slots(at, n))
	}
	if err != nil {
		m.freeNullKey(k)
		m.giveBack(k)
		return err
	}
	m.cached, m.odp.mr = true, m
	d.odp.keys[m.mkey>>8] = &odpKey{kind: keyOfRegion, key: m.mkey, mr: m}
	return nil
}

// slots are places [i, i+n) as the device takes them (populate_klm).
func (m *mr) slots(i, n uint64) prm.MTT {
	l := make(prm.MTT, listSize(prm.KLMSize*n))
	for j := range n {
		e := prm.KLM(l[prm.KLMSize*j : prm.KLMSize*(j+1)])
		e.SetByteCount(slotSize)
		child := m.paging.children[i+j]
		switch {
		case child != nil:
			e.SetMKey(child.mkey)
			e.SetVA((i + j) << slotShift)
		default:
			e.SetMKey(m.paging.nullKey)
			if m.u.dev.caps.odp.memory {
				e.SetVA((i + j) << slotShift)
			}
		}
	}
	return l
}

// writeSlots has the device take places [i, i+n) as they are.
func (k *call) writeSlots(m *mr, i, n uint64) error {
	n += i % ksmAlign
	i -= i % ksmAlign
	n = (n + ksmAlign - 1) &^ (ksmAlign - 1)
	for at := uint64(0); at < n; at += ksmsOfList {
		if err := k.postList(m, prm.UMRCheckNotFree, 0, prm.KLMSize*(i+at), m.slots(i+at, min(n-at, ksmsOfList))); err != nil {
			return err
		}
	}
	return nil
}

// makeNullKey makes a key of which every page is absent, with all rights
// (alloc_implicit_mr_null_mkey).
func (m *mr) makeNullKey(k *call) (uint32, error) {
	d := k.d
	in, out := prm.NewIn(prm.OpCreateMKey, 64), prm.NewOut(prm.OpCreateMKey, 0)
	req := prm.CreateMKeyIn(in)
	req.SetPGAccess(true)
	req.SetTranslationsOctwordActualSize(4)
	d.mkeys++
	c := req.MKC()
	c.SetA(true)
	c.SetRW(true)
	c.SetRR(true)
	c.SetLW(true)
	c.SetLR(true)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetTranslationsOctwordSize(4)
	c.SetLogPageSize(61)
	c.SetLength64(true)
	c.SetPD(m.pd.pdn)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(uint32(d.mkeys))
	if err := k.exec(in, out); err != nil {
		return 0, err
	}
	return prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys)), nil
}

func (m *mr) freeNullKey(k *call) {
	if x := k.d.odp.keys[m.paging.nullKey>>8]; k.d.caps.odp.memory && x != nil && x.mr == m {
		delete(k.d.odp.keys, m.paging.nullKey>>8)
		in := prm.NewIn(prm.OpDestroyMKey, 0)
		prm.DestroyMKeyIn(in).SetMKeyIndex(m.paging.nullKey >> 8)
		k.mustDestroy(in)
	}
}

// freeImplicit destroys the children of a region whose key is gone (mlx5_ib_free_odp_mr).
func (m *mr) freeImplicit(k *call) {
	if !m.odp.implicit {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(m.paging.children)) {
		k.freeChild(m.paging.children[i])
	}
	for _, child := range m.paging.dying {
		k.freeChild(child)
	}
	m.paging.children, m.paging.dying = nil, nil
	m.freeNullKey(k)
}

// freeChild gives a child's key and memory back. Nobody but its parent's places and handlers of
// faults know the key.
func (k *call) freeChild(m *mr) {
	if err := m.destroyMKey(k); err != nil {
		panic(fmt.Sprintf("kernel: %v: %s: the key of a child: %v", k.d.eng.Now(), k.d.name, err))
	}
	m.unpage(k)
}

// faultImplicit makes [va, va+n) present in the children, of which it makes those that are missing
// (pagefault_implicit_mr).
func (k *call) faultImplicit(m *mr, va, n uint64, how pageFlags) (pages uint64, err error) {
	if va >= implicitSize || implicitSize-va < n {
		return 0, fmt.Errorf("[%#x, +%#x) outside a user's addresses: %w", va, n, syscall.EFAULT)
	}
	// Places that have got a child, also when not all of the range could be made present.
	first, count := uint64(implicitSlots), uint64(0)
	for n > 0 {
		i := va >> slotShift
		child := m.paging.children[i]
		if child == nil {
			if child, err = k.newChild(m, i); err != nil {
				break
			}
			first = min(first, i)
			if count = i - first + 1; k.d.breaks(rule.EveryPlaceLeadsToItsChild) {
				count = 0 // none
			}
		}
		l := min(n, (i+1)<<slotShift-va)
		var got uint64
		if got, err = k.faultChild(child, va, l, how); err != nil {
			break
		}
		va, n, pages = va+l, n-l, pages+got
	}
	if count > 0 && m.odp.mr != nil && !k.d.removed {
		if e := k.writeSlots(m, first, count); e != nil {
			return 0, e
		}
		k.settle(k.d.updateTime(0))
	}
	return pages, err
}

// faultChild makes a part of a child present, which stays for so long, also where the thread ends
// meanwhile.
func (k *call) faultChild(m *mr, va, n uint64, how pageFlags) (uint64, error) {
	defer m.paging.holds.take(k.d)()
	return k.faultPages(m, va, n, how)
}

// newChild makes the child of a place, of which the device has no page yet (implicit_get_child_mr).
func (k *call) newChild(parent *mr, i uint64) (*mr, error) {
	if parent.odp.mr == nil || k.d.removed {
		return nil, errAgain
	}
	if parent.odp.proc.Gone {
		return nil, fmt.Errorf("the process that registered the memory has ended: %w", syscall.EFAULT)
	}
	at := i << slotShift
	o, err := newODPMem(parent.odp.proc, at, slotSize, parent.access&^hugeAccess)
	if err != nil {
		return nil, err
	}
	m := &mr{u: parent.u, pd: parent.pd, iova: at, access: parent.access, odp: o, pageSize: mem.PageSize}
	m.paging.parent, m.paging.slot = parent, i
	if err := m.takePagedKey(k, slotSize/mem.PageSize); err != nil {
		o.release()
		return nil, err
	}
	if err := k.enable(m, m.paging.fresh(k)); err != nil {
		o.release()
		m.giveBack(k)
		return nil, err
	}
	m.cached, o.mr = true, m
	o.unwatch = o.proc.Space.Notify(mem.VA(o.start), o.end-o.start, m.invalidate)
	parent.paging.children[i] = m
	if k.d.caps.odp.memory {
		k.d.odp.keys[m.mkey>>8] = &odpKey{kind: keyOfChild, key: m.mkey, mr: m}
	}
	return m, nil
}

// reap takes a child without pages from its place, where from now on a fault makes a new one; a
// work item destroys it (destroy_unused_implicit_child_mr).
func (m *mr) reap(k *call) {
	parent := m.paging.parent
	if parent.odp.mr == nil || parent.paging.children[m.paging.slot] != m {
		return
	}
	delete(parent.paging.children, m.paging.slot)
	if x := k.d.odp.keys[m.mkey>>8]; x != nil && x.mr == m {
		delete(k.d.odp.keys, m.mkey>>8)
	}
	parent.paging.dying = append(parent.paging.dying, m)
	done := parent.paging.holds.take(k.d)
	k.d.odp.later.add(func(k *call) {
		defer done()
		k.awaitHolders(&m.paging.holds)
		i := slices.Index(parent.paging.dying, m)
		if k.d.removed || i < 0 { // or the end of the region was earlier
			return
		}
		parent.paging.dying = slices.Delete(parent.paging.dying, i, i+1)
		if parent.odp.mr != nil && !k.d.breaks(rule.EmptyChildLeavesItsPlace) {
			_ = k.writeSlots(parent, m.paging.slot, 1)
		}
		k.freeChild(m)
		k.leave()
	})
}

// hugeAccess asks for pages of 1<<hugeShift bytes.
const hugeAccess = verbs.AccessHugetlb
