package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// AttachMcast is ATTACH_MCAST; attaching a QP twice changes nothing. EINVAL: the QP is not UD, or
// GID or LID are not those of a group. The LID is ignored on RoCE.
func (u *Ucontext) AttachMcast(c Caller, h Handle, gid verbs.GID, lid uint16) error {
	return u.do(c, func(k *call) error {
		q, err := lookup[*qp](&u.objs, h, "QP")
		if err != nil {
			return err
		}
		g := group{gid, lid}
		if slices.Contains(q.groups, g) {
			return nil
		}
		if err := q.checkMcast(k.d, g); err != nil {
			return err
		}
		in := prm.NewIn(prm.OpAttachToMCG, 0)
		m := prm.AttachToMCGIn(in)
		m.SetQPN(q.qpn)
		copy(m.MulticastGID(), gid[:])
		if err := k.exec(in, prm.NewOut(prm.OpAttachToMCG, 0)); err != nil {
			return err
		}
		q.groups = append(q.groups, g)
		return nil
	})
}

// LIDs of groups are those from firstMulticastLID, without the permissive one.
const (
	firstMulticastLID = 0xc000
	permissiveLID     = 0xffff
)

// checkMcast is ib_attach_mcast, with is_valid_mcast_lid.
func (q *qp) checkMcast(d *Device, g group) error {
	switch {
	case !isMulticast(g.gid):
		return fmt.Errorf("%v is no multicast group: %w", g.gid, syscall.EINVAL)
	case q.typ != verbs.QPTUD:
		return fmt.Errorf("multicast on a QP that is not UD: %w", syscall.EINVAL)
	case d.caps.ib && (g.lid < firstMulticastLID || g.lid == permissiveLID):
		return fmt.Errorf("LID %#x is not that of a multicast group: %w", g.lid, syscall.EINVAL)
	}
	return nil
}

// DetachMcast is DETACH_MCAST. EINVAL when the QP is not in the group.
func (u *Ucontext) DetachMcast(c Caller, h Handle, gid verbs.GID, lid uint16) error {
	return u.do(c, func(k *call) error {
		q, err := lookup[*qp](&u.objs, h, "QP")
		if err != nil {
			return err
		}
		i := slices.Index(q.groups, group{gid, lid})
		if i < 0 {
			return fmt.Errorf("QP %#x is not in %v: %w", q.qpn, gid, syscall.EINVAL)
		}
		return q.groups.leave(k, q.qpn, i)
	})
}
