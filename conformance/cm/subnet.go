package cm

import (
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// permissiveLID stands for that of another subnet.
const permissiveLID = 0xffff

// queries are the requests to the subnet administrator in a recording.
func queries(packets []kit.Packet, attribute uint16, method uint8) (l []mad.MAD) {
	for _, p := range packets {
		if p.BTH().DestQP() != roce.GSIQPN {
			continue
		}
		m, err := mad.Parse(p.Payload())
		if err == nil && m.Class() == mad.ClassSubnAdm && m.Attribute() == attribute && m.Method() == method {
			l = append(l, m)
		}
	}
	return l
}

// subnetPath compares the path of an id with the ports, and the request that it makes with the
// path.
func subnetPath(c *spec.C) {
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0))) // the two ports may be of one machine
	e.resolve(c, id, f.at)
	paths, err := id.QueryPath(c.T)
	c.NoErr("query of the paths", err)
	c.Equal("number of paths", len(paths), 1)
	r := paths[0]
	c.Equal("LIDs", []uint16{r.SLID, r.DLID}, []uint16{e.env.LocalAddr.LID, f.Addr.LID})
	c.Equal("GIDs", []verbs.GID{r.SGID, r.DGID}, []verbs.GID{e.env.LocalAddr.GID, f.Addr.GID})
	k, err := e.env.Ctx.QueryPKey(c.T, int(e.env.Port), 0)
	kit.Must(c, "query_pkey", err)
	c.Equal("P_Key is the interface's", r.PKey, k|0x8000)
	a, err := e.env.Ctx.QueryPort(c.T, int(e.env.Port))
	kit.Must(c, "query_port", err)
	c.True("MTU", r.MTU >= verbs.MTU256 && r.MTU <= a.ActiveMTU, "%d, the port has %d", r.MTU, a.ActiveMTU)
	c.True("hop limit within the subnet", r.HopLimit <= 1, "%d", r.HopLimit)
	p := &pair{end: e, far: f, id: id, q: newQueue(c, id)}
	packets := kit.TapAll(c, func() {
		kit.Must(c, "connect", id.Connect(c.T, param(nil)))
		p.establish(c)
		e.exchange(c, p)
	})
	req := one(c, "REQs", messages(packets), mad.AttrREQ)
	w := mad.REQ(req.Body()).Primary()
	c.Equal("LIDs of the REQ", []uint16{w.LocalLID(), w.RemoteLID()}, []uint16{r.SLID, r.DLID})
	c.Equal("GIDs of the REQ", []verbs.GID{verbs.GID(w.LocalGID()), verbs.GID(w.RemoteGID())}, []verbs.GID{r.SGID, r.DGID})
	c.Equal("MTU, rate and service level of the REQ", []uint8{mad.REQ(req.Body()).MTU(), w.Rate(), w.SL()}, []uint8{uint8(r.MTU), r.Rate, r.SL})
	c.Equal("P_Key of the REQ", mad.REQ(req.Body()).PKey(), r.PKey)
	c.Equal("within the subnet", w.SubnetLocal(), true)
	for _, x := range packets {
		c.Equal("packets with a global route", x.HasGRH(), r.HopLimit > 0)
	}
}

// lostQueries has queries for a path be lost: those of the side at which the subnet manager is not,
// whose queries pass the wire.
func lostQueries(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	a, err := e.env.Ctx.QueryPort(c.T, int(e.env.Port))
	kit.Must(c, "query_port", err)
	c.True("the subnet manager is not at the other side", a.SMLID != f.Addr.LID, "LID %#x", a.SMLID)
	const wait = 2 * time.Second
	id := f.newID(c, verbs.PortSpaceTCP)
	f.Do(c, player.CMAddress, kit.Args{"id": id, "port": 7174, "timeout": uint64(wait)}, e.own().AsSlice())
	f.event(c, verbs.CMAddrResolved, 0)
	route := func() { f.Do(c, player.CMRoute, kit.Args{"id": id, "timeout": uint64(wait)}, nil) }
	kit.Inject(c, dropMADs(0, 0))
	start := c.T.Now()
	packets := kit.TapAll(c, func() {
		route()
		f.event(c, verbs.CMRouteError, -int(syscall.ETIMEDOUT))
	})
	took := c.T.Now() - start
	c.True("time until the event", took >= wait-kit.TimerSlack(c), "%v, the timeout is %v", took, wait)
	c.True("queries", len(queries(packets, mad.AttrPathRecord, mad.Get)) > 1, "%d", len(queries(packets, mad.AttrPathRecord, mad.Get)))
	kit.ClearRules(c)
	kit.Inject(c, dropMADs(0, 1))
	packets = kit.TapAll(c, func() {
		route()
		f.event(c, verbs.CMRouteResolved, 0)
	})
	l := queries(packets, mad.AttrPathRecord, mad.Get)
	c.Equal("queries when the first is lost", len(l), 2)
	c.Equal("it is the same query", slices.Equal(l[0], l[1]), true)
	kit.ClearRules(c)
}

// lastMember has two ids of one port in a group, which the port leaves with the second.
func lastMember(c *spec.C) {
	e := open(c)
	var l []verbs.CMID
	sets := kit.TapAll(c, func() {
		for range 2 {
			id := e.id(c, verbs.PortSpaceUDP)
			kit.Must(c, "bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
			c.NoErr("join_multicast", id.JoinMulticast(c.T, group, verbs.MulticastFullMember, nil))
			e.event(c, verbs.CMMulticastJoin, 0)
			l = append(l, id)
		}
	})
	c.Equal("requests to join", len(queries(sets, mad.AttrMCMemberRecord, mad.Set)), 1)
	for i, want := range []int{0, 1} {
		packets := kit.TapAll(c, func() {
			c.NoErr("leave_multicast", l[i].LeaveMulticast(c.T, group))
			c.T.Sleep(kit.QuietPeriod)
		})
		c.Equal("requests to leave", len(queries(packets, mad.AttrMCMemberRecord, mad.Delete)), want)
	}
	c.Errno("leave_multicast again", l[0].LeaveMulticast(c.T, group), syscall.EADDRNOTAVAIL)
}

// serviceClass looks where the type of service goes.
func serviceClass(c *spec.C) {
	const tos = 0x68
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	for _, want := range []uint8{0, tos} {
		id := e.id(c, verbs.PortSpaceTCP)
		if want != 0 {
			c.NoErr("set_option", id.SetOption(c.T, verbs.CMOptionID, verbs.CMOptionTOS, []byte{want}))
		}
		packets := kit.TapAll(c, func() { e.resolve(c, id, netip.AddrPortFrom(f.addr, 7174)) })
		l := queries(packets, mad.AttrPathRecord, mad.Get)
		c.Equal("queries", len(l), 1)
		c.Equal("class of service is a component", l[0].Components()&mad.PathQoSClass != 0, true)
		r := mad.PathRecord(l[0].Data())
		c.Equal("class of service", r.QoSClass(), uint16(want))
		c.Equal("service", r.ServiceID(), uint64(verbs.PortSpaceTCP)<<16|7174)
	}
}

// globalPath connects by a path that the program gives, with a hop limit.
func globalPath(c *spec.C) {
	const hops, flags = 64, 0x2b
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	id := e.id(c, verbs.PortSpaceTCP)
	e.address(c, id, f.at)
	known := e.resolved(c, verbs.PortSpaceTCP, f.at)
	paths, err := known.QueryPath(c.T)
	kit.Must(c, "query of the paths", err)
	value := make([]byte, 8+mad.PathRecordSize)
	value[0] = flags
	packPath(value[8:], &paths[0], hops)
	c.Errno("path that is cut", id.SetOption(c.T, verbs.CMOptionIB, verbs.CMOptionIBPath, value[:70]), syscall.EINVAL)
	c.NoErr("set_option", id.SetOption(c.T, verbs.CMOptionIB, verbs.CMOptionIBPath, value))
	e.event(c, verbs.CMRouteResolved, 0)
	p := &pair{end: e, far: f, id: id, q: newQueue(c, id)}
	packets := kit.TapAll(c, func() {
		kit.Must(c, "connect", id.Connect(c.T, param(nil)))
		p.establish(c)
		e.exchange(c, p)
	})
	w := mad.REQ(one(c, "REQs", messages(packets), mad.AttrREQ).Body()).Primary()
	c.Equal("LIDs of the REQ", []uint16{w.LocalLID(), w.RemoteLID()}, []uint16{permissiveLID, permissiveLID})
	c.Equal("hop limit of the REQ", w.HopLimit(), uint8(hops))
	c.Equal("within the subnet", w.SubnetLocal(), false)
	for _, x := range packets {
		c.Equal("packets with a global route", x.HasGRH(), true)
	}
}

// packPath writes a path as programs give it.
func packPath(b []byte, p *verbs.PathRecord, hops uint8) {
	r := mad.PathRecord(b)
	r.SetDGID(roce.GID(p.DGID))
	r.SetSGID(roce.GID(p.SGID))
	r.SetDLID(p.DLID)
	r.SetSLID(p.SLID)
	r.SetHopLimit(hops)
	r.SetReversible(true)
	r.SetNumber(1)
	r.SetPKey(p.PKey)
	r.SetSL(p.SL)
	r.SetMTU(mad.Exactly, uint8(p.MTU))
	r.SetRate(mad.Exactly, p.Rate)
	r.SetLifetime(mad.Exactly, p.Lifetime)
}
