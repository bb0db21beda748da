package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// AttachMcast is ATTACH_MCAST: nothing happens when the QP is in the group already.
// EINVAL: the QP is not UD, or the address is no group's. The LID does not count on RoCE.
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
		if err := q.checkMcast(gid); err != nil {
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

func (q *qp) checkMcast(gid verbs.GID) error {
	if !isMulticast(gid) {
		return fmt.Errorf("%v is no multicast group: %w", gid, syscall.EINVAL)
	}
	if q.typ != verbs.QPTUD {
		return fmt.Errorf("multicast on a QP that is not UD: %w", syscall.EINVAL)
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
