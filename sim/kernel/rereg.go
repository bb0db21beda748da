package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// ReregReq holds the arguments of REREG_MR; fields that Flags does not name are ignored.
type ReregReq struct {
	Flags              verbs.ReregFlags
	PD                 Handle
	Addr, Length, Iova uint64
	Access             verbs.AccessFlags
}

// ReregMR is REREG_MR. PD and rights change in place where the device can do it; otherwise
// a new mkey takes the place of the old one. EINVAL: no flag, address and iova that differ
// within a page, impossible access, windows on a region that gets a new key; EOPNOTSUPP: a
// flag that does not exist; EACCES: access that writes to memory which was pinned for
// reading. On an error the region is as before.
func (u *Ucontext) ReregMR(c Caller, h Handle, r ReregReq) (lkey, rkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		if err := r.check(); err != nil {
			return fmt.Errorf("register memory again: %w", err)
		}
		m, err := lookup[*mr](&u.objs, h, "MR")
		if err != nil {
			return err
		}
		if m.dm != nil {
			return fmt.Errorf("register memory again: a region of device memory: %w", syscall.EINVAL)
		}
		if m.odp != nil || r.pages() {
			m, err = m.reregPaged(k, h, &r)
		} else {
			err = m.rereg(k, &r)
		}
		if err != nil {
			return fmt.Errorf("register memory again: %w", err)
		}
		lkey, rkey = m.mkey, m.mkey
		return nil
	})
	return lkey, rkey, err
}

// check is what ib_uverbs_rereg_mr looks at before the region.
func (r *ReregReq) check() error {
	const all = verbs.ReregTranslation | verbs.ReregPD | verbs.ReregAccess
	switch {
	case r.Flags == 0:
		return fmt.Errorf("nothing to change: %w", syscall.EINVAL)
	case r.Flags&^all != 0:
		return fmt.Errorf("flags %#x: %w", uint32(r.Flags), syscall.EOPNOTSUPP)
	case r.Flags&verbs.ReregTranslation != 0 && r.Addr&pageMask != r.Iova&pageMask:
		return fmt.Errorf("address %#x and iova %#x differ within a page: %w", r.Addr, r.Iova, syscall.EINVAL)
	}
	return nil
}

func (m *mr) rereg(k *call, r *ReregReq) error {
	n := *m
	if err := n.take(k, r); err != nil {
		return err
	}
	k.work += m.u.dev.p.RegMRBase
	if r.Flags&verbs.ReregTranslation != 0 {
		mem, err := k.pin(m.u.proc, r.Addr, r.Length, n.access)
		if err != nil {
			return err
		}
		n.mem, n.iova = mem, r.Iova
	} else if n.access&writable != 0 && !m.mem.writable {
		return fmt.Errorf("access %#x on memory that was pinned for reading: %w", uint32(n.access), syscall.EACCES)
	}
	if r.Flags&verbs.ReregTranslation == 0 && k.d.caps.canReconfigure(m.access, n.access) {
		return m.reconfigure(k, &n)
	}
	if r.Flags&verbs.ReregTranslation != 0 {
		if done, err := m.reload(k, &n); done {
			if err != nil {
				k.unpin(n.mem)
			}
			return err
		}
	}
	return m.replace(k, &n)
}

// take gives a region the rights and the PD of a request.
func (m *mr) take(k *call, r *ReregReq) error {
	if r.Flags&verbs.ReregAccess != 0 {
		if err := checkMRAccess(r.Access); err != nil {
			return err
		}
		if r.Access&verbs.AccessOnDemand != 0 && !k.d.caps.odp.support {
			return fmt.Errorf("the device has no on-demand paging: %w", k.d.p.Paging.refusal())
		}
		m.access = r.Access
	}
	if r.Flags&verbs.ReregPD != 0 {
		p, err := lookup[*pd](&m.u.objs, r.PD, "PD")
		if err != nil {
			return err
		}
		m.pd = p
	}
	return nil
}

// rightsMask are the rights and the PD of a key, as far as a UMR changes them.
func (d *Device) rightsMask() uint64 {
	mask := uint64(prm.MKeyMaskLR | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskPD)
	for _, f := range [...]struct {
		on  bool
		bit uint64
	}{{d.caps.hasAtomics && d.caps.umrAtomic, prm.MKeyMaskA}, {d.caps.umrROWrite, prm.MKeyMaskRelaxedOrderingWrite}, {d.caps.umrRORead, prm.MKeyMaskRelaxedOrderingRead}} {
		if f.on {
			mask |= f.bit
		}
	}
	return mask
}

// reload is umr_rereg_pas: the key stays, and gets other pages, where it has room for them.
func (m *mr) reload(k *call, n *mr) (bool, error) {
	size := n.mem.bestPageSize(mkeyPageSizes, n.iova)
	if m.entry == nil || size == 0 || n.mem.length >= maxUMRLength || !k.d.caps.canReconfigure(m.access, n.access) ||
		n.mem.numBlocks(size) > m.entry.shape.entries {
		return false, nil
	}
	if err := m.revokeKey(k); err != nil {
		return true, err
	}
	if err := n.loadKey(k, size); err != nil {
		return true, err
	}
	k.unpin(m.mem)
	m.pd.refs--
	n.pd.refs++
	*m = *n
	return true, nil
}

// reconfigure is mlx5r_umr_rereg_pd_access.
func (m *mr) reconfigure(k *call, n *mr) error {
	if !k.d.breaks(rule.ReregistrationChangesRights) {
		err := k.post(&umrRequest{key: m.mkey, flags: prm.UMRCheckNotFree | prm.UMRInline, mask: k.d.rightsMask(), mkc: func(c prm.MKC) {
			n.fillRights(c, k.d, n.access)
			c.SetMKey70(m.mkey)
		}})
		if err != nil {
			return err
		}
	}
	m.pd.refs--
	n.pd.refs++
	*m = *n
	return nil
}

// replace makes the key of n and then gives the old one back.
func (m *mr) replace(k *call, n *mr) error {
	undo := func() {
		if n.mem != m.mem {
			k.unpin(n.mem)
		}
	}
	if err := n.makeMKey(k, n.iova, n.access); err != nil {
		undo()
		return err
	}
	if err := m.destroyMKey(k); err != nil {
		if err := n.destroyMKey(k); err != nil {
			panic(fmt.Sprintf("kernel: %v: %s: a key that was just made cannot go: %v", k.d.eng.Now(), k.d.name, err))
		}
		undo()
		return err
	}
	if n.mem != m.mem {
		k.unpin(m.mem)
	}
	m.pd.refs--
	n.pd.refs++
	*m = *n
	return nil
}
