package cm

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// idState is a state of an rdma_cm id (enum rdma_cm_state).
type idState uint8

const (
	idIdle idState = iota
	addrQuery
	addrResolved
	routeQuery
	routeResolved
	idConnect
	idDisconnect
	addrBound
	idListen
	deviceRemoval
	destroying
)

// rdmaID is rdma_cm_id with its private part.
type rdmaID struct {
	ids     *ids
	handler func(*rdmaID, *idEvent) bool // false: an id of a request is to be forgotten
	ps      verbs.PortSpace
	typ     verbs.QPType
	state   idState

	src, dst  netip.AddrPort
	bound     *portKey
	port      *port // of its device; nil: none yet
	sgid      int
	vlan      uint16
	pkey      uint16
	gids      [2]verbs.GID // on InfiniBand, of this side and the other
	resolving *resolving
	path      *path
	query     *saQuery // for the path
	conn      *conn
	listeners []*conn // of each device

	psn               uint32
	qpn               uint32
	srq               bool
	qkey              uint32
	tos               uint8
	reuse             bool
	afOnly, afOnlySet bool
	ackTimeout        uint8
	ackTimeoutSet     bool
	groups            []*membership
}

// idEvent is rdma_cm_event.
type idEvent struct {
	typ    verbs.CMEventType
	status int32
	fresh  *rdmaID // of a connection request: the new id
	conn   verbs.ConnParam
	ud     verbs.UDParam
	ece    ECE
	group  *membership
}

// ids is rdma_cm of a machine.
type ids struct {
	m        *Manager
	bound    map[portKey][]*rdmaID
	lastPort uint16
	live     map[*rdmaID]uint64 // with their place in the order of their making
	made     uint64
}

func (i *ids) init(m *Manager) {
	*i = ids{m: m, bound: map[portKey][]*rdmaID{}, live: map[*rdmaID]uint64{}}
}

// newID is rdma_create_id.
func (i *ids) newID(ps verbs.PortSpace, typ verbs.QPType, handler func(*rdmaID, *idEvent) bool) *rdmaID {
	x := &rdmaID{ids: i, handler: handler, ps: ps, typ: typ, psn: uint32(i.m.rand.Intn(1 << 24))}
	i.made++
	i.live[x] = i.made
	return x
}

func (x *rdmaID) wrongState(what string) error {
	return fmt.Errorf("%s in state %d of the id: %w", what, x.state, errInvalid)
}

// bind is rdma_bind_addr.
func (x *rdmaID) bind(a netip.AddrPort, mayBindLow bool) error {
	if x.state != idIdle {
		return x.wrongState("bind")
	}
	if !a.Addr().IsValid() {
		return fmt.Errorf("bind to no address: %w", syscall.EAFNOSUPPORT)
	}
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	x.src = a
	if err := x.bindTo(a.Addr(), mayBindLow); err != nil {
		x.src, x.port = netip.AddrPort{}, nil
		return err
	}
	x.state = addrBound
	return nil
}

func (x *rdmaID) bindTo(a netip.Addr, mayBindLow bool) error {
	if !isAny(a) {
		s, ok := x.ids.m.sourceOf(a)
		switch {
		case ok || x.ids.m.breaks(rule.BindNeedsAnOwnAddress):
		case x.ids.m.isOther(a):
			return fmt.Errorf("the interface of %v has no device of RDMA: %w", a, errNoDev)
		default:
			return fmt.Errorf("no interface has %v: %w", a, syscall.EADDRNOTAVAIL)
		}
		x.take(s)
	}
	if !x.afOnlySet {
		x.afOnly = a.Is4()
	}
	return x.getPort(mayBindLow)
}

// take gives the id its device.
func (x *rdmaID) take(s source) {
	x.port, x.sgid, x.vlan = s.port, s.sgid, s.vlan
	if s.port != nil {
		x.pkey = s.port.interfacePKey()
		x.gids[0], _ = s.port.d.FirstGID()
	}
}

// sourceGID and destinationGID are rdma_read_gids: on RoCE those of the addresses.
func (x *rdmaID) sourceGID() verbs.GID      { return x.gidOfEnd(0, x.src.Addr()) }
func (x *rdmaID) destinationGID() verbs.GID { return x.gidOfEnd(1, x.dst.Addr()) }

func (x *rdmaID) gidOfEnd(end int, a netip.Addr) verbs.GID {
	if x.port != nil && x.port.ib() {
		return x.gids[end]
	}
	if !a.IsValid() {
		return verbs.GID{}
	}
	return gidOf(a)
}

// resolveAddr is rdma_resolve_addr.
func (x *rdmaID) resolveAddr(src, dst netip.AddrPort, timeout sim.Time) error {
	if !dst.Addr().IsValid() {
		return fmt.Errorf("no destination: %w", errInvalid)
	}
	dst = netip.AddrPortFrom(dst.Addr().Unmap(), dst.Port())
	if x.state == idIdle {
		if !src.Addr().IsValid() {
			src = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
			if dst.Addr().Is4() {
				src = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
			}
		}
		if err := x.bind(src, true); err != nil {
			return err
		}
	}
	switch {
	case x.src.Addr().Is4() != dst.Addr().Is4():
		return fmt.Errorf("%v from %v: another family: %w", dst, x.src, errInvalid)
	case x.state != addrBound:
		return x.wrongState("resolve an address")
	}
	s, err := x.routeFor(dst.Addr())
	if err != nil {
		return err
	}
	x.dst, x.state = dst, addrQuery
	x.resolveIP(s, timeout)
	return nil
}

// routeFor is the route to a destination, from the device that the id is bound to, if it is.
func (x *rdmaID) routeFor(dst netip.Addr) (source, error) {
	m := x.ids.m
	switch {
	case x.port != nil:
		return source{x.port, x.sgid, x.src.Addr(), x.vlan}, x.reaches(dst)
	case !isAny(dst):
		return m.routeTo(dst)
	case len(m.ports) == 0:
		return source{}, fmt.Errorf("%v on a machine without a device: %w", dst, errNoDev)
	}
	return source{port: m.ports[0], addr: dst}, nil // cma_resolve_loopback
}

// reaches is the route lookup from the address that the id is bound to.
func (x *rdmaID) reaches(dst netip.Addr) error {
	s := source{x.port, x.sgid, x.src.Addr(), x.vlan}
	if _, own := x.ids.m.sourceOf(dst); own || isAny(dst) || x.ids.m.reaches(&s, dst) || dst.IsMulticast() {
		return nil
	}
	return fmt.Errorf("no route from %v to %v: %w", s.addr, dst, syscall.ENETUNREACH)
}

// addressKnown is addr_handler.
func (x *rdmaID) addressKnown(s source, status int32) {
	if x.state != addrQuery {
		return
	}
	if status != 0 {
		x.state = addrBound
		x.report(&idEvent{typ: verbs.CMAddrError, status: status})
		return
	}
	if x.port == nil && s.port == nil {
		x.state = addrBound
		x.report(&idEvent{typ: verbs.CMAddrError, status: -int32(errNoDev)})
		return
	}
	if x.port == nil {
		x.take(s)
		if x.ids.m.breaks(rule.ResolutionFillsTheSource) {
			s.addr = netip.IPv4Unspecified()
		}
		if !isAny(x.dst.Addr()) {
			x.src = netip.AddrPortFrom(s.addr, x.src.Port())
		} else {
			x.src = netip.AddrPortFrom(x.dst.Addr(), x.src.Port())
		}
	}
	if x.port.ib() {
		x.gids[1], _ = x.neighbour(s)
	}
	x.state = addrResolved
	x.report(&idEvent{typ: verbs.CMAddrResolved})
}

// report gives an event to the id's user.
func (x *rdmaID) report(e *idEvent) bool {
	if x.handler == nil {
		return true
	}
	return x.handler(x, e)
}

// lifetime is that of a packet on Ethernet (CMA_IBOE_PACKET_LIFETIME), a code.
const lifetime = 16

// resolveRoute is rdma_resolve_route.
func (x *rdmaID) resolveRoute(timeout sim.Time) error {
	switch {
	case timeout <= 0:
		return fmt.Errorf("a route with timeout 0: %w", errInvalid)
	case x.state != addrResolved:
		return x.wrongState("resolve a route")
	}
	x.state = routeQuery
	if x.port != nil && x.port.ib() {
		if err := x.ibRoute(timeout); err != nil {
			x.state = addrResolved
			return err
		}
		return nil
	}
	if err := x.ethernetRoute(); err != nil {
		x.state = addrResolved
		return err
	}
	p := x.path
	x.ids.m.work.add(func() {
		if x.state == routeQuery && x.path == p {
			x.state = routeResolved
			x.report(&idEvent{typ: verbs.CMRouteResolved})
		}
	})
	return nil
}

// ethernetRoute is cma_resolve_iboe_route: the path record is made up.
func (x *rdmaID) ethernetRoute() error {
	if x.port == nil || x.port.removed || isAny(x.dst.Addr()) {
		return fmt.Errorf("a route without an interface: %w", errNoDev)
	}
	p := &path{port: x.port, sgid: x.sgid}
	p.SGID, p.DGID = gidOf(x.src.Addr()), gidOf(x.dst.Addr())
	p.PKey, p.NumPath, p.Reversible = defaultPKey, 1, true
	p.HopLimit, p.MTU, p.Lifetime = routeHops, x.port.d.ActiveMTU(), lifetime
	p.TrafficClass = x.tos
	if !x.ids.m.breaks(rule.FlowLabelIsOfThePorts) {
		p.FlowLabel = flowLabel(x.src.Port(), x.dst.Port())
	}
	if x.ackTimeoutSet && x.ackTimeout > 0 {
		p.Lifetime = x.ackTimeout - 1
	}
	x.path = p
	return nil
}

// defaultPKey is the only one of an Ethernet port.
const defaultPKey = 0xffff

// flowLabel is cma_get_roce_udp_flow_label's hash (rdma_calc_flow_label).
func flowLabel(src, dst uint16) uint32 { return (uint32(src)*31 + uint32(dst)) & 0xfffff }

// destroy is rdma_destroy_id.
func (x *rdmaID) destroy() {
	x.state, x.handler = destroying, nil
	x.resolving.stop()
	x.query.stop()
	x.resolving, x.query = nil, nil
	if x.conn != nil {
		x.conn.destroy()
		x.conn = nil
	}
	for _, l := range x.listeners {
		l.destroy()
	}
	x.listeners = nil
	for _, g := range x.groups {
		g.member.leave()
	}
	x.groups = nil
	x.leavePort()
	delete(x.ids.live, x)
}

// removePort is cma_remove_one: ids of the device get an event, listeners lose it.
func (i *ids) removePort(p *port) {
	all := slices.SortedFunc(maps.Keys(i.live), func(a, b *rdmaID) int { return cmp.Compare(i.live[a], i.live[b]) })
	for _, x := range all {
		x.listeners = slices.DeleteFunc(x.listeners, func(l *conn) bool {
			if l.port == p {
				l.destroy()
			}
			return l.port == p
		})
		if x.port != p || x.state == destroying {
			continue
		}
		x.resolving.stop()
		x.query.stop()
		x.resolving, x.query = nil, nil
		x.state = deviceRemoval
		x.report(&idEvent{typ: verbs.CMDeviceRemoval})
	}
}

// setTOS and the others below are the options of an id (rdma_set_service_type and so on).
func (x *rdmaID) setTOS(v uint8) {
	x.tos = v
	if x.path != nil && x.ids.m.breaks(rule.TOSCountsBeforeTheRoute) {
		x.path.TrafficClass = v
	}
}

func (x *rdmaID) setReuse(on bool) error {
	if on && x.state != idListen || x.state == idIdle {
		x.reuse = on
		return nil
	}
	return x.wrongState("reuseaddr")
}

func (x *rdmaID) setAFOnly(on bool) error {
	if x.state != idIdle && x.state != addrBound {
		return x.wrongState("afonly")
	}
	x.afOnly, x.afOnlySet = on, true
	return nil
}

func (x *rdmaID) setACKTimeout(v uint8) error {
	if x.typ != verbs.QPTRC && x.typ != verbs.QPTXRCSend {
		return fmt.Errorf("an ACK timeout of a QP of type %d: %w", x.typ, errInvalid)
	}
	x.ackTimeout, x.ackTimeoutSet = v, true
	return nil
}
