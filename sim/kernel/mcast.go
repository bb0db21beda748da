package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// group is a multicast group as a QP's list has it.
type group struct {
	gid verbs.GID
	lid uint16
}

// isMulticast is rdma_is_multicast_addr: ff00::/8, or a mapped IPv4 group.
func isMulticast(g verbs.GID) bool {
	ip := netip.AddrFrom16(g)
	return g[0] == 0xff || ip.Is4In6() && ip.Unmap().IsMulticast()
}

// AttachMcast is ATTACH_MCAST: nothing happens when the QP is in the group already.
// EINVAL: the QP is not UD, or the address is no group's. The LID does not count on RoCE.
func (u *Ucontext) AttachMcast(c Caller, h Handle, gid verbs.GID, lid uint16) error {
	return u.do(c, func(k *call) error {
		q, err := lookup[*qp](u, h, "QP")
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
		q, err := lookup[*qp](u, h, "QP")
		if err != nil {
			return err
		}
		i := slices.Index(q.groups, group{gid, lid})
		if i < 0 {
			return fmt.Errorf("QP %#x is not in %v: %w", q.qpn, gid, syscall.EINVAL)
		}
		return q.leave(k, i)
	})
}

// leave takes the QP out of the group at i of its list.
func (q *qp) leave(k *call, i int) error {
	in := prm.NewIn(prm.OpDetachFromMCG, 0)
	m := prm.DetachFromMCGIn(in)
	m.SetQPN(q.qpn)
	copy(m.MulticastGID(), q.groups[i].gid[:])
	if err := k.exec(in, prm.NewOut(prm.OpDetachFromMCG, 0)); err != nil {
		return err
	}
	q.groups = slices.Delete(q.groups, i, i+1)
	return nil
}

// leaveAll is the part of uverbs_free_qp that is about groups: a program must detach
// before it destroys; the end of the context does it by itself.
func (q *qp) leaveAll(k *call) error {
	if len(q.groups) > 0 && !q.u.closed && !q.u.removed {
		return fmt.Errorf("QP %#x is in %d multicast groups: %w", q.qpn, len(q.groups), syscall.EBUSY)
	}
	for len(q.groups) > 0 {
		if err := q.leave(k, 0); err != nil {
			return err
		}
	}
	return nil
}
