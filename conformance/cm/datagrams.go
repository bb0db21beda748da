package cm

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// grh is what a receive has before a datagram.
const grh = 40

func datagrams(c *spec.C) {
	e := open(c)
	f := serve(c, verbs.PortSpaceUDP, 0)
	id := e.resolved(c, verbs.PortSpaceUDP, f.at)
	q := newQueue(c, id)
	c.Equal("QP when it is made", state(c, q), "RTS")
	sent := data(c, 180)
	kit.Must(c, "connect", id.Connect(c.T, &verbs.ConnParam{PrivateData: sent}))
	r, there := f.request(c)
	sameData(c, "request data", r.Data, sent, 180)
	buf := f.Buffer(c, 128, kit.AllAccess, there.Values["pd"])
	there.Recv(c, buf, 1)
	answer := data(c, 20)
	f.Do(c, player.CMAccept, kit.Args{"id": r.Values["id"]}, answer)
	ev := e.event(c, verbs.CMEstablished, 0)
	sameData(c, "reply data", ev.UD.PrivateData, answer, 136)
	c.Equal("QPN", ev.UD.QPN == there.QPN, true)
	c.Equal("Q_Key", ev.UD.QKey, uint32(verbs.DefaultUDQKey))
	f.quiet(c, "events of the server")
	ah, err := q.pd.CreateAH(c.T, ev.UD.AH)
	c.NoErr("create_ah of the event's address", err)
	kit.DestroyOnce(c, "destroy_ah", ah.Destroy)
	b := e.env.BufferOn(c, q.pd, 64, kit.AllAccess)
	bytes := b.FillRandom(c)
	w := kit.Send(1, b.SGE(0, 64))
	w.AH, w.RemoteQPN, w.RemoteQKey = ah, ev.UD.QPN, ev.UD.QKey
	_, err = q.PostSend(c.T, []verbs.SendWR{w})
	kit.Must(c, "post_send", err)
	c.Status("send", kit.PollOne(c, q.cq), verbs.WCSuccess)
	c.Equal("datagrams there", len(f.AwaitStatuses(c, 1, kit.CompletionTimeout)), 1)
	c.Equal("bytes there", buf.Get(c, grh, 64), bytes)
}

func datagramsRefused(c *spec.C) {
	e := open(c)
	nobody := bound(c, verbs.PortSpaceUDP, netip.Addr{})
	id := e.resolved(c, verbs.PortSpaceUDP, nobody.at)
	newQueue(c, id)
	kit.Must(c, "connect", id.Connect(c.T, &verbs.ConnParam{}))
	e.event(c, verbs.CMUnreachable, mad.SIDRUnsupported)
	nobody.listen(c, 0)
	id = e.resolved(c, verbs.PortSpaceUDP, nobody.at)
	newQueue(c, id)
	kit.Must(c, "connect", id.Connect(c.T, &verbs.ConnParam{}))
	r := nobody.event(c, verbs.CMConnectRequest, 0)
	sent := data(c, 7)
	nobody.Do(c, player.CMReject, kit.Args{"id": r.Values["id"]}, sent)
	ev := e.event(c, verbs.CMUnreachable, mad.SIDRReject)
	sameData(c, "reject data", ev.UD.PrivateData, sent, 136)
}

// group is an IPv4 group of a scope that stays within an organisation (RFC 2365).
var group = netip.MustParseAddr("239.77.1.9")

// groupOf is the group of IP whose GID it is: mapped on RoCE; on InfiniBand by IPoIB's map, with
// the signature of the connection manager and the interface's partition. The zero address: it is
// none of these.
func (e *end) groupOf(g verbs.GID) netip.Addr {
	if !e.env.IB {
		return addrOf(g)
	}
	if g[0] != 0xff || g[1]&0xf0 != 0x10 || g[2] != 0x40 || g[3] != 0x01 || g[4]&0x80 == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{g[12] | 0xe0, g[13], g[14], g[15]})
}

// multicast has two members there, one of which only sends, and a sender here.
func multicast(c *spec.C) {
	e := open(c)
	id := e.id(c, verbs.PortSpaceUDP)
	kit.Must(c, "bind_addr", id.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	q := newQueue(c, id)
	c.NoErr("join_multicast", id.JoinMulticast(c.T, group, verbs.MulticastSendOnly, "mine"))
	ev := e.event(c, verbs.CMMulticastJoin, 0)
	c.Equal("context of the group", ev.Multicast, any("mine"))
	c.Equal("QPN", ev.UD.QPN, uint32(0xffffff))
	c.Equal("Q_Key", ev.UD.QKey, uint32(verbs.DefaultUDQKey))
	c.Equal("GID", e.groupOf(ev.UD.AH.GRH.DGID) == group, true)
	ah, err := q.pd.CreateAH(c.T, ev.UD.AH)
	c.NoErr("create_ah of the group's address", err)
	kit.DestroyOnce(c, "destroy_ah", ah.Destroy)
	b := e.env.BufferOn(c, q.pd, 64, kit.AllAccess)
	b.FillRandom(c)
	send := func() {
		w := kit.Send(1, b.SGE(0, 64))
		w.AH, w.RemoteQPN, w.RemoteQKey = ah, ev.UD.QPN, ev.UD.QKey
		_, err := q.PostSend(c.T, []verbs.SendWR{w})
		kit.Must(c, "post_send", err)
		c.Status("send", kit.PollOne(c, q.cq), verbs.WCSuccess)
	}
	f := otherSide(c, kit.RemoteHost(c))
	member := func(flags verbs.MulticastFlags) uint64 {
		f.bind(c, verbs.PortSpaceUDP, f.addr)
		v := f.Do(c, player.CMQP, kit.Args{"id": f.id}, nil).Values
		there := &kit.OtherQP{Process: f.OtherProcess, ID: v["qp"], Values: v}
		there.Recv(c, f.Buffer(c, 128, kit.AllAccess, v["pd"]), 4)
		f.Do(c, player.CMJoin, kit.Args{"id": f.id, "flags": uint64(flags)}, group.AsSlice())
		f.event(c, verbs.CMMulticastJoin, 0)
		return f.id
	}
	member(verbs.MulticastSendOnly)
	send()
	c.Equal("datagrams to a member that only sends", len(f.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	full := member(verbs.MulticastFullMember)
	send()
	c.Equal("datagrams to a member", len(f.AwaitStatuses(c, 1, kit.CompletionTimeout)), 1)
	f.Do(c, player.CMLeave, kit.Args{"id": full}, group.AsSlice())
	send()
	c.Equal("datagrams when it has left", len(f.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	c.NoErr("leave_multicast", id.LeaveMulticast(c.T, group))
}
