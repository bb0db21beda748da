package cm

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

func eventsOfAConnection(c *spec.C) {
	p := connected(c)
	c.Equal("QP here", state(c, p.q), "RTS")
	p.quiet(c, "events after ESTABLISHED")
	p.far.quiet(c, "events there after ESTABLISHED")
}

func requestData(c *spec.C) {
	e, f, id, _ := client(c)
	c.Errno("connect with 57 bytes", id.Connect(c.T, param(data(c, 57))), syscall.EINVAL)
	for _, n := range []int{56, 5} {
		id := e.resolved(c, verbs.PortSpaceTCP, f.at)
		newQueue(c, id)
		sent := data(c, n)
		c.NoErr("connect", id.Connect(c.T, param(sent)))
		r := f.event(c, verbs.CMConnectRequest, 0)
		sameData(c, "request data", r.Data, sent, 56)
		f.do(c, player.CMReject, r.Values["id"])
		e.event(c, verbs.CMRejected, mad.RejConsumerDefined)
		f.do(c, player.CMDestroy, r.Values["id"])
	}
}

func replyData(c *spec.C) {
	e, f, id, _ := client(c)
	kit.Must(c, "connect", id.Connect(c.T, param(nil)))
	r, _ := f.request(c)
	sent := data(c, 100)
	f.accept(c, r.Values["id"], sent)
	ev := e.event(c, verbs.CMEstablished, 0)
	sameData(c, "reply data", ev.Conn.PrivateData, sent, 196)
	f.event(c, verbs.CMEstablished, 0)
	other := e.resolved(c, verbs.PortSpaceTCP, f.at)
	newQueue(c, other)
	kit.Must(c, "connect", other.Connect(c.T, param(nil)))
	r, _ = f.request(c)
	_, err := f.DoErr(c, player.CMAccept, kit.Args{"id": r.Values["id"], "resp": 1, "init": 1}, data(c, 197))
	c.Errno("accept with 197 bytes", err, syscall.EINVAL)
	ev = e.event(c, verbs.CMRejected, mad.RejConsumerDefined)
	c.Equal("reject data: length", len(ev.Conn.PrivateData), 148)
}

func depthsExchanged(c *spec.C) {
	e, f, id, _ := client(c)
	p := param(nil)
	p.ResponderResources, p.InitiatorDepth = 3, 2
	kit.Must(c, "connect", id.Connect(c.T, p))
	r, _ := f.request(c)
	c.Equal("responder resources there", r.Values["resp"], uint64(2))
	c.Equal("initiator depth there", r.Values["init"], uint64(3))
	c.Equal("retry count there", r.Values["retry"], uint64(7))
	f.Do(c, player.CMAccept, kit.Args{"id": r.Values["id"], "resp": 2, "init": 1, "rnr": 7}, nil)
	ev := e.event(c, verbs.CMEstablished, 0)
	c.Equal("responder resources here", ev.Conn.ResponderResources, uint8(1))
	c.Equal("initiator depth here", ev.Conn.InitiatorDepth, uint8(2))
}

func attributes(c *spec.C) {
	e, f, id, q := client(c)
	p := param(nil)
	p.RetryCount, p.RNRRetryCount = 5, 3
	kit.Must(c, "connect", id.Connect(c.T, p))
	r, there := f.request(c)
	f.Do(c, player.CMAccept, kit.Args{"id": r.Values["id"], "resp": 1, "init": 1, "rnr": 4}, nil)
	e.event(c, verbs.CMEstablished, 0)
	f.event(c, verbs.CMEstablished, 0)
	a, _, err := q.Query(c.T, verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|verbs.QPMaskSQPSN|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|verbs.QPMaskPathMTU)
	kit.Must(c, "query_qp", err)
	c.Equal("destination here", a.DestQPN == there.QPN, true)
	c.Equal("retry count here", a.RetryCnt, uint8(5))
	c.Equal("RNR retry count here is the peer's", a.RNRRetry, uint8(4))
	rtr := f.Do(c, player.CMAttr, kit.Args{"id": r.Values["id"], "state": uint64(verbs.QPSRTR)}, nil).Values
	rts := f.Do(c, player.CMAttr, kit.Args{"id": r.Values["id"], "state": uint64(verbs.QPSRTS)}, nil).Values
	c.Equal("destination there", uint32(rtr["dest_qpn"]) == q.QPN(), true)
	c.Equal("it expects there what is sent here", uint32(rtr["rq_psn"]) == a.SQPSN, true)
	c.Equal("it expects here what is sent there", a.RQPSN == uint32(rts["sq_psn"]), true)
	c.Equal("MTU there is that of the request", verbs.MTU(rtr["mtu"]) == a.PathMTU, true)
	c.Equal("retry count there is the request's", rts["retry"], uint64(5))
	c.Equal("RNR retry count there is the peer's", rts["rnr_retry"], uint64(3))
	const rtrMask, rtsMask = 0x129181, 0x12e01
	c.Equal("attributes of RTR", rtr["mask"]&0x1fffff, uint64(rtrMask))
	c.Equal("attributes of RTS", rts["mask"]&0x1fffff, uint64(rtsMask))
}

// messages are those of the connection manager in a recording.
func messages(packets []kit.Packet) (all []message) {
	for _, p := range packets {
		if p.BTH().DestQP() != roce.GSIQPN {
			continue
		}
		if m, err := mad.Parse(p.Payload()); err == nil && m.Class() == mad.ClassCM {
			all = append(all, message{m, p})
		}
	}
	return all
}

type message struct {
	mad.MAD
	p kit.Packet
}

// of are the messages of a kind.
func of(all []message, attribute uint16) []message {
	return slices.DeleteFunc(slices.Clone(all), func(m message) bool { return m.Attribute() != attribute })
}

// one is the only message of a kind.
func one(c *spec.C, step string, all []message, attribute uint16) message {
	l := of(all, attribute)
	c.Equal("number of "+step, len(l), 1)
	return l[0]
}

func firstPSNs(c *spec.C) {
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	var p *pair
	packets := kit.TapAll(c, func() {
		p = e.connect(c, f)
		e.exchange(c, p)
	})
	msgs := messages(packets)
	req, rep := mad.REQ(one(c, "REQs", msgs, mad.AttrREQ).Body()), mad.REP(one(c, "REPs", msgs, mad.AttrREP).Body())
	one(c, "RTUs", msgs, mad.AttrRTU)
	c.Equal("QPN of the REQ", req.QPN() == p.q.QPN(), true)
	c.Equal("QPN of the REP", rep.QPN() == p.farQP.QPN, true)
	port := roce.UDPSourcePort(req.Primary().FlowLabel())
	first := func(step string, from kit.Addr, to, want uint32) {
		for _, k := range packets {
			if k.DestQPN() == to && k.IsFrom(from) && k.Info().Kind == roce.KindRequest {
				c.Equal(step, k.PSN() == want, true)
				if !e.env.IB {
					c.Equal(step+": source port is that of the flow label", k.UDP().SrcPort() == port, true)
				}
				return
			}
		}
		c.True(step, false, "there is none")
	}
	first("first packet from here", e.env.LocalAddr, p.farQP.QPN, rep.PSN())
	first("first packet from there", f.Addr, p.q.QPN(), req.PSN())
}

// exchange sends a message in each direction.
func (e *end) exchange(c *spec.C, p *pair) {
	b := e.env.BufferOn(c, p.q.pd, 64, kit.AllAccess)
	there := p.far.Buffer(c, 64, kit.AllAccess, p.farQP.Values["pd"])
	sent := b.FillRandom(c)
	_, err := p.q.PostRecv(c.T, []verbs.RecvWR{{ID: 1, SGEs: []verbs.SGE{b.SGE(32, 32)}}})
	kit.Must(c, "post_recv", err)
	p.farQP.Recv(c, there, 1)
	_, err = p.q.PostSend(c.T, []verbs.SendWR{kit.Send(2, b.SGE(0, 32))})
	kit.Must(c, "post_send", err)
	c.Status("send", kit.PollOne(c, p.q.cq), verbs.WCSuccess)
	c.Equal("status there", p.far.AwaitStatuses(c, 1, kit.CompletionTimeout)[0], verbs.WCSuccess)
	c.Equal("bytes there", there.Get(c, 0, 32), sent[:32])
	p.far.Do(c, player.PostSend, kit.Args{"qp": p.farQP.ID, "opcode": uint64(verbs.WRSend), "flags": uint64(verbs.SendSignaled), "buf": there.ID, "len": 32, "count": 1}, nil)
	c.Status("receive", kit.PollOne(c, p.q.cq), verbs.WCSuccess)
	b.ExpectContents(c, "bytes here", append(append([]byte(nil), sent[:32]...), sent[:32]...))
	p.far.AwaitStatuses(c, 1, kit.CompletionTimeout)
}

func nobodyListens(c *spec.C) {
	e := open(c)
	f := bound(c, verbs.PortSpaceTCP, netip.Addr{})
	id := e.resolved(c, verbs.PortSpaceTCP, f.at)
	q := newQueue(c, id)
	kit.Must(c, "connect", id.Connect(c.T, param(nil)))
	e.event(c, verbs.CMRejected, mad.RejInvalidServiceID)
	c.Equal("QP here", state(c, q), "ERR")
	c.Errno("connect again", id.Connect(c.T, param(nil)), syscall.EINVAL)
}

// otherAddress has a listener here, on one of two addresses.
func otherAddress(c *spec.C) {
	ctl := c.TB.(verbs.AddressControl)
	e := open(c)
	spare := neighbour(e.own(), 202)
	e.addAddress(c, ctl, spare)
	l := e.id(c, verbs.PortSpaceTCP)
	kit.Must(c, "bind_addr", l.BindAddr(c.T, netip.AddrPortFrom(e.own(), 0)))
	kit.Must(c, "listen", l.Listen(c.T, 0))
	f := otherSide(c, kit.RemoteHost(c))
	id := f.newID(c, verbs.PortSpaceTCP)
	f.Do(c, player.CMResolve, kit.Args{"id": id, "port": uint64(l.LocalAddr().Port()), "timeout": uint64(timeout)}, spare.AsSlice())
	f.do(c, player.CMQP, id)
	f.Do(c, player.CMConnect, kit.Args{"id": id, "resp": 1, "init": 1, "retry": 7, "rnr": 7}, nil)
	f.event(c, verbs.CMRejected, mad.RejConsumerDefined)
	e.quiet(c, "events of the listener")
}

func rejected(c *spec.C) {
	e, f, id, q := client(c)
	kit.Must(c, "connect", id.Connect(c.T, param(nil)))
	r := f.event(c, verbs.CMConnectRequest, 0)
	sent := data(c, 148)
	f.Do(c, player.CMReject, kit.Args{"id": r.Values["id"]}, sent)
	ev := e.event(c, verbs.CMRejected, mad.RejConsumerDefined)
	sameData(c, "reject data", ev.Conn.PrivateData, sent, 148)
	c.Equal("QP here", state(c, q), "ERR")
	_, err := f.DoErr(c, player.CMAccept, kit.Args{"id": r.Values["id"]}, nil)
	c.Errno("accept of what was rejected", err, syscall.EINVAL)
}
