package cm

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func resolveAddress(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	to := netip.AddrPortFrom(f.addr, 7174)
	id := e.id(c, verbs.PortSpaceTCP)
	c.NoErr("resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, to, timeout))
	if c.Has(kit.ExactTime) {
		c.Equal("event when the call has returned", e.ch.Readable(c.T), false)
	}
	ev := e.event(c, verbs.CMAddrResolved, 0)
	c.Equal("id of the event", ev.ID == id, true)
	c.Equal("source address", id.LocalAddr().Addr() == e.own() || id.LocalAddr().Addr() == f.addr, true)
	c.True("source port", id.LocalAddr().Port() != 0, "0")
	c.Equal("destination", id.PeerAddr() == to, true)
	c.Equal("it has a device", id.Verbs() != nil, true)
	e.quiet(c, "events after it")
}

func noNeighbour(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	const wait = 1500 * time.Millisecond
	id := e.id(c, verbs.PortSpaceTCP)
	start := c.T.Now()
	c.NoErr("resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(neighbour(e.own(), 203), 7174), wait))
	e.event(c, verbs.CMAddrError, -int(syscall.ETIMEDOUT))
	took := c.T.Now() - start
	c.True("time until the event", took >= wait-kit.TimerSlack(c), "%v, the timeout is %v", took, wait)
	e.address(c, id, netip.AddrPortFrom(f.addr, 7174))
	c.Equal("destination of another attempt", id.PeerAddr().Addr() == f.addr, true)
}

// unrouted is an address of a network for documentation (RFC 5737), to which nobody has a route.
var unrouted = netip.MustParseAddr("203.0.113.9")

func noRoute(c *spec.C) {
	e := open(c)
	id := e.id(c, verbs.PortSpaceTCP)
	err := id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(unrouted, 7174), timeout)
	if c.ErrnoIn("resolve_addr", err, 0, syscall.ENETUNREACH, syscall.EHOSTUNREACH) == 0 {
		ev, err := e.ch.GetEvent(c.T, patience)
		c.NoErr("get_cm_event", err)
		kit.Must(c, "ack_cm_event", e.ch.AckEvent(c.T, ev))
		c.Equal("event", ev.Type.String(), verbs.CMAddrError.String())
	}
	e.quiet(c, "events after it")
}

func routeTooEarly(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.Errno("resolve_route of an id that is only bound", id.ResolveRoute(c.T, timeout), syscall.EINVAL)
	e.address(c, id, netip.AddrPortFrom(f.addr, 7174))
	c.Errno("resolve_route with timeout 0", id.ResolveRoute(c.T, 0), syscall.EINVAL)
	c.NoErr("resolve_route", id.ResolveRoute(c.T, timeout))
	e.event(c, verbs.CMRouteResolved, 0)
	c.Errno("resolve_route again", id.ResolveRoute(c.T, timeout), syscall.EINVAL)
}

func pathRecord(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	id := e.resolved(c, verbs.PortSpaceTCP, netip.AddrPortFrom(f.addr, 7174))
	paths, err := id.QueryPath(c.T)
	c.NoErr("query of the paths", err)
	c.Equal("number of paths", len(paths), 1)
	p := paths[0]
	c.Equal("source GID", addrOf(p.SGID) == id.LocalAddr().Addr(), true)
	c.Equal("destination GID", addrOf(p.DGID) == f.addr, true)
	c.Equal("P_Key", p.PKey, uint16(0xffff))
	c.Equal("lifetime", p.Lifetime, uint8(16))
	c.Equal("reversible", p.Reversible, true)
	a, err := id.Verbs().QueryPort(c.T, id.Port())
	kit.Must(c, "query_port", err)
	c.Equal("MTU is that of the port", p.MTU == a.ActiveMTU, true)
	const hash = 31
	want := (uint32(id.LocalAddr().Port())*hash + uint32(id.PeerAddr().Port())) & 0xfffff
	c.Equal("flow label is the hash of the ports", p.FlowLabel == want, true)
}
