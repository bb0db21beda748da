package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// membership is a multicast group that an id has joined (struct cma_multicast).
type membership struct {
	addr  netip.Addr
	flags verbs.MulticastFlags

	member *portMember // on InfiniBand
}

// multicastQPN is the destination of a datagram to a group.
const multicastQPN = 0xffffff

// errKernelNotSupported is ENOTSUPP, a number of the kernel's own that reaches programs.
const errKernelNotSupported = syscall.Errno(524)

// join is rdma_join_multicast; on RoCE nothing is seen on the wire of the report of the membership
// (IGMP).
func (x *rdmaID) join(a netip.Addr, flags verbs.MulticastFlags) (*membership, error) {
	switch {
	case x.typ != verbs.QPTUD || x.port == nil || x.state != addrBound && x.state != addrResolved:
		return nil, x.wrongState("join a group")
	case flags > verbs.MulticastSendOnly:
		return nil, fmt.Errorf("flags %#x of a membership: %w", flags, errInvalid)
	case !a.IsValid() || a.IsUnspecified():
		return nil, fmt.Errorf("%v is no group: %w", a, errInvalid)
	case x.port.ib():
		g := &membership{addr: a.Unmap(), flags: flags}
		if err := x.joinIB(g); err != nil {
			return nil, err
		}
		x.groups = append(x.groups, g)
		return g, nil
	case !a.Unmap().Is4():
		return nil, fmt.Errorf("%v: groups of IPv6 on RoCE v2: %w", a, errKernelNotSupported)
	}
	if err := x.setQKey(0); err != nil {
		return nil, err
	}
	g := &membership{addr: a.Unmap(), flags: flags}
	x.groups = append(x.groups, g)
	x.ids.m.work.add(func() {
		if slices.Contains(x.groups, g) {
			x.report(&idEvent{typ: verbs.CMMulticastJoin, group: g, ud: x.groupParam(g)})
		}
	})
	return g, nil
}

// groupParam is cma_make_mc_event.
func (x *rdmaID) groupParam(g *membership) verbs.UDParam {
	return verbs.UDParam{QPN: multicastQPN, QKey: x.qkey, AH: verbs.AHAttr{IsGlobal: true, Port: 1,
		GRH: verbs.GRH{DGID: gidOf(g.addr), SGIDIndex: uint8(x.sgid), HopLimit: routeHops, TrafficClass: x.tos}}}
}

// leave is rdma_leave_multicast.
func (x *rdmaID) leave(g *membership) {
	x.groups = slices.DeleteFunc(x.groups, func(y *membership) bool { return y == g })
	g.member.leave()
}
