//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// AttachMcast is ibv_attach_mcast, and the request to join that its man page asks for besides: on
// Ethernet that of IGMP or MLD, which the kernel sends for the GID's network device. Without it
// neither switches nor the machine's own IP layer pass the group's packets on.
func (q *qp) AttachMcast(t verbs.Thread, group verbs.GID, lid uint16) error {
	defer enterCall(t, "ibv_attach_mcast").leaveCall()
	g := C.union_ibv_gid(group)
	if ret, err := C.ibv_attach_mcast(q.q, &g, C.uint16_t(lid)); ret != 0 {
		return failed("ibv_attach_mcast", ret, err)
	}
	if _, member := q.groups[group]; member {
		return nil
	}
	fd, err := join(group, q.ctx.netDevice())
	if err != nil {
		_, _ = C.ibv_detach_mcast(q.q, &g, C.uint16_t(lid))
		return err
	}
	if q.groups == nil {
		q.groups = map[verbs.GID]int{}
	}
	q.groups[group] = fd
	return nil
}

// DetachMcast is ibv_detach_mcast, and the end of the membership.
func (q *qp) DetachMcast(t verbs.Thread, group verbs.GID, lid uint16) error {
	defer enterCall(t, "ibv_detach_mcast").leaveCall()
	g := C.union_ibv_gid(group)
	if ret, err := C.ibv_detach_mcast(q.q, &g, C.uint16_t(lid)); ret != 0 {
		return failed("ibv_detach_mcast", ret, err)
	}
	q.leaveGroup(group)
	return nil
}

// leaveGroup ends the membership in a group.
func (q *qp) leaveGroup(group verbs.GID) {
	if fd, member := q.groups[group]; member && fd >= 0 {
		_ = unix.Close(fd)
	}
	delete(q.groups, group)
}

// netDevice is the index of the network device behind the GID that the node uses; 0: none.
func (c *context) netDevice() int {
	n := c.dev.p.bed.setup.nodes[c.dev.p.host.index]
	var e C.struct_ibv_gid_entry
	if ret, _ := C.hw_query_gid_ex(c.c, C.uint32_t(n.Port), C.uint32_t(n.GIDIndex), &e, 0); ret != 0 {
		return 0
	}
	return int(e.ndev_ifindex)
}

// join makes the machine a member of a group on a network device for as long as the socket that
// it returns is open; -1 where there is none to be a member of.
func join(group verbs.GID, device int) (int, error) {
	if device == 0 {
		return -1, nil
	}
	// In a network namespace of its own a program may lack the interface of a device that all
	// namespaces share.
	if _, err := net.InterfaceByIndex(device); err != nil {
		return -1, nil
	}
	family := unix.AF_INET6
	if isIPv4(group) {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("join %v: %w", group, err)
	}
	if family == unix.AF_INET {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: [4]byte(group[12:]), Ifindex: int32(device)})
	} else {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
			&unix.IPv6Mreq{Multiaddr: group, Interface: uint32(device)})
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("join %v: %w", group, err), unix.Close(fd))
	}
	return fd, nil
}
