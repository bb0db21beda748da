package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// routeHops is the TTL of a route (net.ipv4.ip_default_ttl).
const routeHops = 64

// Networks of the addresses of the simulated interfaces: what shares so many bits is reached
// without a gateway, all else not at all.
const (
	networkBits4 = 24
	networkBits6 = 64
)

// source is an address of this machine: an entry of a port's table of GIDs, of the interface that
// it is of; of InfiniBand an address of the port's interface, whose GID is the first.
type source struct {
	port *port
	sgid int
	addr netip.Addr
	vlan uint16
}

// addresses calls f with the addresses of the machine's devices by which rdma_cm finds them, until
// f returns false.
func (m *Manager) addresses(f func(s source) bool) {
	for _, p := range m.ports {
		on := true
		if p.ib() {
			for _, a := range p.d.IPs() {
				if !f(source{port: p, addr: a}) {
					return
				}
			}
			continue
		}
		p.d.GIDs(func(e verbs.GIDEntry, vlan uint16) bool {
			if e.Type == p.gidType() {
				on = f(source{p, int(e.Index), netip.AddrFrom16(e.GID).Unmap(), vlan})
			}
			return on
		})
		if !on {
			return
		}
	}
}

// sourceOf is cma_acquire_dev_by_src_ip: the device that has an address.
func (m *Manager) sourceOf(a netip.Addr) (found source, ok bool) {
	want := a.Unmap().WithZone("")
	m.addresses(func(s source) bool {
		if s.addr == want {
			found, ok = s, true
		}
		return !ok
	})
	return found, ok
}

// onLink says whether an address is on the network of a source.
func (s *source) onLink(a netip.Addr) bool {
	if a.Is4() != s.addr.Is4() {
		return false
	}
	n := networkBits6
	if a.Is4() {
		n = networkBits4
	}
	p, err := s.addr.Prefix(n)
	return err == nil && p.Contains(a.WithZone(""))
}

// reaches says whether packets of a source get to an address.
func (m *Manager) reaches(s *source, a netip.Addr) bool {
	return s.onLink(a) || m.reach != nil && a.Is4() == s.addr.Is4() && m.reach(a.WithZone(""))
}

// isOther says whether an address is of an interface without RDMA, and byOther whether one is
// reached by such an interface.
func (m *Manager) isOther(a netip.Addr) bool {
	return slices.Contains(m.other, a.Unmap().WithZone("")) && !m.breaks(rule.OtherInterfacesHaveNoDevice)
}

func (m *Manager) byOther(a netip.Addr) bool {
	return slices.ContainsFunc(m.other, func(own netip.Addr) bool { return (&source{addr: own}).onLink(a) })
}

// routeTo is the route lookup: the source for a destination, without a port if the interface has no
// RDMA. ENETUNREACH: there is none.
func (m *Manager) routeTo(dst netip.Addr) (source, error) {
	dst = dst.Unmap()
	if s, ok := m.sourceOf(dst); ok {
		return s, nil
	}
	var best source
	m.addresses(func(s source) bool {
		if m.reaches(&s, dst) || dst.IsMulticast() && dst.Is4() == s.addr.Is4() {
			best = s
		}
		return best.port == nil
	})
	if best.port == nil && m.byOther(dst) {
		return best, nil
	}
	if best.port == nil {
		return best, fmt.Errorf("no route to %v: %w", dst, syscall.ENETUNREACH)
	}
	return best, nil
}

// gidOf is the GID of an address.
func gidOf(a netip.Addr) verbs.GID { return verbs.GID(a.WithZone("").As16()) }

// arpRetry is how long a kernel waits before it asks for a neighbour again
// (net.ipv4.neigh.default.retrans_time_ms).
const arpRetry = sim.Second

// resolving is a destination that is being resolved (struct addr_req).
type resolving struct {
	x      *rdmaID
	s      source
	cancel func()
}

// resolveIP is rdma_resolve_ip: done is called later, even where the answer is known.
func (x *rdmaID) resolveIP(s source, timeout sim.Time) {
	m := x.ids.m
	r := &resolving{x: x, s: s}
	x.resolving = r
	if r.known() {
		m.work.add(func() { r.end(0) })
		return
	}
	r.again(timeout)
}

func (r *resolving) known() bool {
	if isAny(r.x.dst.Addr()) || r.s.port == nil {
		return true
	}
	if r.s.port.ib() {
		_, ok := r.x.neighbour(r.s)
		return ok
	}
	return r.s.port.d.Neighbour(r.s.sgid, gidOf(r.x.dst.Addr()))
}

// neighbour is the GID in the hardware address of an id's destination, as IPoIB's interface of a
// source has it.
func (x *rdmaID) neighbour(s source) (verbs.GID, bool) {
	dst := x.dst.Addr()
	switch {
	case isAny(dst):
		return s.port.d.FirstGID()
	case dst.IsMulticast():
		return verbs.GID(mappedGroup(dst, s.port.interfacePKey())), true
	}
	return s.port.d.IPoIBNeighbour(dst.WithZone(""))
}

// again looks for the neighbour after a while, the last time when the timeout is over.
func (r *resolving) again(left sim.Time) {
	d := min(left, arpRetry)
	r.cancel = r.x.ids.m.timers.After(d, func() {
		switch {
		case r.known():
			r.end(0)
		case left <= d || r.x.ids.m.breaks(rule.AddressErrorsWaitForTheTimeout):
			r.end(-int32(syscall.ETIMEDOUT))
		default:
			r.again(left - d)
		}
	})
}

func (r *resolving) end(status int32) {
	if r.x.resolving != r {
		return // it was given up
	}
	r.x.resolving = nil
	r.x.addressKnown(r.s, status)
}

func (r *resolving) stop() {
	if r != nil && r.cancel != nil {
		r.cancel()
	}
}
