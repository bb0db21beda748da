package cm

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

func unknownSpace(c *spec.C) {
	ch := channel(c)
	for _, ps := range []verbs.PortSpace{0, 0x0999} {
		_, err := ch.CreateID(c.T, ps, 0, nil)
		c.Errno("create_id", err, syscall.EINVAL)
	}
}

func readiness(c *spec.C) {
	e := open(c)
	c.Equal("readable when new", e.ch.Readable(c.T), false)
	_, err := e.ch.GetEvent(c.T, 0)
	c.Errno("get_cm_event of a new channel", err, syscall.EAGAIN)
	f := otherSide(c, kit.RemoteHost(c))
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(f.addr, 7174), timeout))
	c.Eventually("readable with an event", func() bool { return e.ch.Readable(c.T) }).Within(timeout).ProbeEvery(time.Millisecond).Should(match.BeTrue())
	e.event(c, verbs.CMAddrResolved, 0)
	c.Equal("readable when it was taken", e.ch.Readable(c.T), false)
	e.quiet(c, "get_cm_event of an empty channel")
}

func bindToDevice(c *spec.C) {
	e := open(c)
	id := e.id(c, verbs.PortSpaceTCP)
	c.NoErr("bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.Equal("it has a device", id.Verbs() != nil, true)
	c.Equal("device", id.Verbs().Device().GUID() == e.env.Ctx.Device().GUID(), true)
	c.Equal("port of the device", id.Port(), int(e.env.Port))
	c.Equal("address", id.LocalAddr().Addr() == e.own(), true)
	p := id.LocalAddr().Port()
	c.True("port", p >= 1024, "%d", p)
	if c.Has(kit.ExactTime) { // the range of a real system is its administrator's
		c.True("port of the local range", p >= 32768 && p <= 60999, "%d", p)
	}
	other := e.id(c, verbs.PortSpaceTCP)
	c.NoErr("bind_addr of another", other.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.Equal("another port", other.LocalAddr().Port() != p, true)
}

func bindToNothing(c *spec.C) {
	e := open(c)
	c.Errno("bind_addr", e.id(c, verbs.PortSpaceTCP).BindAddr(c.T, netip.AddrPortFrom(kit.SpareAddress, 0)), syscall.EADDRNOTAVAIL)
}

// bindToOther uses an interface without RDMA.
func bindToOther(c *spec.C) {
	e := open(c)
	all, err := c.Process().(verbs.InterfaceLister).Interfaces(c.T)
	kit.Must(c, "list of the interfaces", err)
	var other netip.Addr
	for _, i := range all {
		for _, a := range i.Addrs {
			if i.Device == "" && a.IsGlobalUnicast() && !other.IsValid() {
				other = a
			}
		}
	}
	c.True("there is one", other.IsValid(), "%v", all)
	c.Errno("bind_addr", e.id(c, verbs.PortSpaceTCP).BindAddr(c.T, netip.AddrPortFrom(other, 0)), syscall.ENODEV)
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "resolve_addr", id.ResolveAddr(c.T, netip.AddrPort{}, netip.AddrPortFrom(other, 7174), timeout))
	e.event(c, verbs.CMAddrError, -int(syscall.ENODEV))
	e.quiet(c, "events after it")
}

func bindTwice(c *spec.C) {
	e := open(c)
	id := e.id(c, verbs.PortSpaceTCP)
	c.NoErr("bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	was := id.LocalAddr()
	c.Errno("bind_addr again", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)), syscall.EINVAL)
	c.Equal("the same address", id.LocalAddr() == was, true)
}

func portInUse(c *spec.C) {
	e := open(c)
	id := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.Errno("the same address", e.id(c, verbs.PortSpaceTCP).BindAddr(c.T, id.LocalAddr()), syscall.EADDRINUSE)
	wild := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", wild.BindAddr(c.T, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	at := netip.AddrPortFrom(e.own(), wild.LocalAddr().Port())
	c.Errno("the port of a wildcard", e.id(c, verbs.PortSpaceTCP).BindAddr(c.T, at), syscall.EADDRNOTAVAIL)
}

// on and off are values of an option of type int.
var on = []byte{1, 0, 0, 0}

func reusedPort(c *spec.C) {
	e := open(c)
	a, b := e.id(c, verbs.PortSpaceTCP), e.id(c, verbs.PortSpaceTCP)
	for _, id := range []verbs.CMID{a, b} {
		c.NoErr("set_option", id.SetOption(c.T, verbs.CMOptionID, verbs.CMOptionReuseAddr, on))
	}
	c.NoErr("bind_addr", a.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.NoErr("bind_addr to the same", b.BindAddr(c.T, a.LocalAddr()))
	c.ErrnoIn("listen", a.Listen(c.T, 0), syscall.EADDRINUSE, syscall.EADDRNOTAVAIL)
}

func spacesApart(c *spec.C) {
	e := open(c)
	a, b := e.id(c, verbs.PortSpaceTCP), e.id(c, verbs.PortSpaceUDP)
	kit.Must(c, "bind_addr", a.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	c.NoErr("the same port of another space", b.BindAddr(c.T, a.LocalAddr()))
	c.NoErr("listen", a.Listen(c.T, 0))
	c.NoErr("listen in the other space", b.Listen(c.T, 0))
}

func lowPort(c *spec.C) {
	f := &far{OtherProcess: kit.OpenUnprivileged(c, 1<<20)}
	f.ch = f.Do(c, player.CMChannel, nil, nil).Values["channel"]
	id := f.newID(c, verbs.PortSpaceTCP)
	_, err := f.DoErr(c, player.CMBind, kit.Args{"id": id, "port": 1023}, nil)
	c.Errno("bind_addr to port 1023", err, syscall.EACCES)
	_, err = f.DoErr(c, player.CMBind, kit.Args{"id": id, "port": 0}, nil)
	c.NoErr("bind_addr to any port", err)
}

// wildcard has a listener here, and connects to both addresses of this side from there.
func wildcard(c *spec.C) {
	ctl := c.TB.(verbs.AddressControl)
	e := open(c)
	spare := neighbour(e.own(), 201)
	e.addAddress(c, ctl, spare)
	l := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", l.BindAddr(c.T, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	kit.Must(c, "listen", l.Listen(c.T, 0))
	f := otherSide(c, kit.RemoteHost(c))
	for _, to := range []netip.Addr{e.own(), spare} {
		id := f.newID(c, verbs.PortSpaceTCP)
		f.Do(c, player.CMResolve, kit.Args{"id": id, "port": uint64(l.LocalAddr().Port()), "timeout": uint64(timeout)}, to.AsSlice())
		f.do(c, player.CMQP, id)
		f.Do(c, player.CMConnect, kit.Args{"id": id, "resp": 1, "init": 1, "retry": 7, "rnr": 7}, nil)
		ev := e.event(c, verbs.CMConnectRequest, 0)
		destroyAtEnd(c, ev.ID)
		c.Equal("listener", ev.ListenID == l, true)
		c.Equal("address of the request", ev.ID.LocalAddr().Addr() == to, true)
		newQueue(c, ev.ID)
		c.NoErr("accept", ev.ID.Accept(c.T, param(nil)))
		f.event(c, verbs.CMEstablished, 0)
		e.event(c, verbs.CMEstablished, 0)
	}
}
