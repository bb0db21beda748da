package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
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

// groups are the multicast groups that a QP is in.
type groups []group

// leave takes QP qpn out of the group at i.
func (l *groups) leave(k *call, qpn uint32, i int) error {
	in := prm.NewIn(prm.OpDetachFromMCG, 0)
	m := prm.DetachFromMCGIn(in)
	m.SetQPN(qpn)
	copy(m.MulticastGID(), (*l)[i].gid[:])
	if err := k.exec(in, prm.NewOut(prm.OpDetachFromMCG, 0)); err != nil {
		return err
	}
	*l = slices.Delete(*l, i, i+1)
	return nil
}

// leaveAll is the part of uverbs_free_qp that is about groups: a program must detach
// before it destroys (busy); the end of the context does it by itself.
func (l *groups) leaveAll(k *call, qpn uint32, busy bool) error {
	if len(*l) > 0 && !k.d.breaks(rule.QPInAGroupIsBusy) && busy {
		return fmt.Errorf("QP %#x is in %d multicast groups: %w", qpn, len(*l), syscall.EBUSY)
	}
	for len(*l) > 0 {
		if err := l.leave(k, qpn, 0); err != nil {
			return err
		}
	}
	return nil
}
