package cm

import (
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
)

// destroyWaits has one thread take an event, and another destroy its id.
func destroyWaits(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	id, err := e.ch.CreateID(c.T, verbs.PortSpaceTCP, 0, nil)
	kit.Must(c, "create_id", err)
	kit.Must(c, "resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(f.addr, 7174), timeout))
	ev := take(c, e.ch, patience, verbs.CMAddrResolved, 0)
	var ended time.Duration
	other := c.Go("destroys", -1, func(c *spec.C) {
		kit.Must(c, "destroy_id", id.Destroy(c.T))
		ended = c.T.Now()
	})
	c.T.Sleep(kit.QuietPeriod)
	acked := c.T.Now()
	kit.Must(c, "ack_cm_event", e.ch.AckEvent(c.T, ev))
	c.T.Join(other)
	c.True("end of destroy_id", ended >= acked, "%v before the event was acknowledged", acked-ended)
}

func migrate(c *spec.C) {
	e := open(c)
	f := otherSide(c, kit.RemoteHost(c))
	to := &end{env: e.env, ch: channel(c)}
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(f.addr, 7174), timeout))
	c.Eventually("event", func() bool { return e.ch.Readable(c.T) }).Within(timeout).ProbeEvery(time.Millisecond).Should(match.BeTrue())
	c.NoErr("migrate_id", id.Migrate(c.T, to.ch))
	c.Equal("channel of the id", id.Channel() == to.ch, true)
	e.quiet(c, "events of the old channel")
	c.Equal("the new channel is readable", to.ch.Readable(c.T), true)
	ev := to.event(c, verbs.CMAddrResolved, 0)
	c.Equal("id of the event", ev.ID == id, true)
	c.NoErr("resolve_route", id.ResolveRoute(c.T, timeout))
	to.event(c, verbs.CMRouteResolved, 0)
	e.quiet(c, "events of the old channel later")
}

func typeOfService(c *spec.C) {
	const tos = 0x68
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	for _, early := range []bool{true, false} {
		id := e.id(c, verbs.PortSpaceTCP)
		set := func() { c.NoErr("set_option", id.SetOption(c.T, verbs.CMOptionID, verbs.CMOptionTOS, []byte{tos})) }
		want := uint8(0)
		if early {
			set()
			want = tos
		}
		e.resolve(c, id, f.at)
		if !early {
			set()
		}
		p := &pair{end: e, far: f, id: id, q: newQueue(c, id)}
		packets := kit.TapAll(c, func() {
			kit.Must(c, "connect", id.Connect(c.T, param(nil)))
			p.establish(c)
			e.exchange(c, p)
		})
		step := "traffic class when it is set after the route"
		if early {
			step = "traffic class when it is set before the route"
		}
		req := one(c, "REQs", messages(packets), mad.AttrREQ)
		c.Equal(step+": of the REQ", mad.REQ(req.Body()).Primary().TrafficClass(), want)
		for _, k := range packets {
			if k.DestQPN() == p.farQP.QPN || k.DestQPN() == p.q.QPN() {
				c.Equal(step+": of data", trafficClass(&k)&^3, want)
			}
		}
	}
}

// trafficClass is that of a packet; its low two bits are those of ECN.
func trafficClass(k *kit.Packet) uint8 {
	if k.Framing == roce.RoCEv2IPv4 {
		return k.IPv4().TOS()
	}
	return k.IPv6().TrafficClass()
}
