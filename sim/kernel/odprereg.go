package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// pages says whether a request makes a region of on-demand paging of any. Without a new translation
// memory that is pinned stays so.
func (r *ReregReq) pages() bool {
	const both = verbs.ReregTranslation | verbs.ReregAccess
	return r.Flags&both == both && r.Access&verbs.AccessOnDemand != 0
}

// reregPaged is REREG_MR of a region of on-demand paging, or of one that becomes it. Rights and PD
// change in place where the device can; a new translation, and anything new of an implicit region,
// makes another region, with other keys, in the place of the old one. EOPNOTSUPP: rights that do
// not change in place, such as on-demand paging itself. EACCES: rights to write to memory that was
// registered for reading.
func (m *mr) reregPaged(k *call, h Handle, r *ReregReq) (*mr, error) {
	n := *m
	if err := n.take(k, r); err != nil {
		return nil, err
	}
	if r.Flags&verbs.ReregTranslation == 0 {
		switch {
		case n.access&writable != 0 && !m.odp.writable:
			return nil, fmt.Errorf("access %#x on memory that was registered for reading: %w", uint32(n.access), syscall.EACCES)
		case m.odp.implicit && n.access&verbs.AccessOnDemand != 0:
			return m.recreate(k, h, &mr{u: m.u, pd: n.pd, access: n.access}, 0, wholeSpace)
		case m.odp.implicit || !k.d.caps.canReconfigure(m.access, n.access):
			return nil, fmt.Errorf("access %#x in the place of %#x: %w", uint32(n.access), uint32(m.access), syscall.EOPNOTSUPP)
		}
		k.work += k.d.p.RegMRBase
		return m, m.reconfigure(k, &n)
	}
	return m.recreate(k, h, &mr{u: m.u, pd: n.pd, access: n.access, iova: r.Iova}, r.Addr, r.Length)
}

// recreate registers n, which takes the place of the region under its handle. On an error all is as
// before.
func (m *mr) recreate(k *call, h Handle, n *mr, addr, length uint64) (*mr, error) {
	register := n.registerPinned
	if n.access&verbs.AccessOnDemand != 0 {
		register = n.registerPaged
	}
	if err := register(k, addr, length); err != nil {
		return nil, err
	}
	if err := m.destroyMKey(k); err != nil {
		if err := n.destroyMKey(k); err != nil {
			panic(fmt.Sprintf("kernel: %v: %s: a key that was just made cannot go: %v", k.d.eng.Now(), k.d.name, err))
		}
		k.unpin(n.mem)
		n.unpage(k)
		return nil, err
	}
	k.unpin(m.mem)
	m.unpage(k)
	m.pd.refs--
	n.pd.refs++
	m.u.objs.tab[h] = n
	return n, nil
}
