package cm

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// listen is rdma_listen.
func (x *rdmaID) listen(mayBindLow bool) error {
	if x.state == idIdle {
		if err := x.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0), mayBindLow); err != nil {
			return err
		}
	}
	if x.state != addrBound {
		return x.wrongState("listen")
	}
	if x.reuse && !x.ids.m.breaks(rule.ListenChecksReusedPorts) {
		if err := x.checkPort(false); err != nil {
			return err
		}
		x.reuse = false
	}
	x.state = idListen
	for _, p := range x.ids.m.ports {
		x.listenOn(p)
	}
	return nil
}

// listenOn has the id listen on a device, if it is to (cma_listen_on_dev).
func (x *rdmaID) listenOn(p *port) {
	if x.port != nil && x.port != p {
		return
	}
	cs := &x.ids.m.conns
	x.listeners = append(x.listeners, cs.listen(p, service(x.ps, x.src.Port()), x.ids.onRequest))
}

// asked is what the header of a request says.
type asked struct {
	src, dst netip.Addr
	srcPort  uint16
}

// header is cma_save_ip_info: false for a header that is none.
func header(private []byte) (asked, bool) {
	h := mad.IPHeader(private[:mad.IPHeaderSize])
	v := h.IPVersion()
	if h.Version() != 0 || v != 4 && v != 6 {
		return asked{}, false
	}
	return asked{addrOf(h.Src(), v), addrOf(h.Dst(), v), h.SrcPort()}, true
}

// onRequest is cma_ib_req_handler, of all listeners.
func (i *ids) onRequest(c *conn, e *connEvent) verdict {
	if e.kind != evREQ && e.kind != evSIDRReq {
		return keepConn
	}
	q, ok := header(e.private)
	if !ok {
		return destroyConn
	}
	l := i.listenerOf(e, &q)
	if l == nil || l.typ != e.typ {
		return destroyConn
	}
	x := i.newID(l.ps, e.typ, l.handler)
	n := uint16(e.listener.service & 0xffff)
	x.src, x.dst = netip.AddrPortFrom(q.dst, n), netip.AddrPortFrom(q.src, q.srcPort)
	x.port, x.sgid, x.path, x.conn, x.tos = e.a.p, e.path.sgid, e.path, c, l.tos
	x.pkey, x.gids = e.a.p.interfacePKey(), [2]verbs.GID{e.path.SGID, e.path.DGID}
	x.state = idConnect
	out := idEvent{typ: verbs.CMConnectRequest, fresh: x, ece: e.ece}
	user := e.private[mad.IPHeaderSize:]
	if i.m.breaks(rule.RequestDataArrives) {
		user = make([]byte, len(user))
	}
	if x.typ == verbs.QPTUD {
		c.handler = x.onSIDR
		out.ud.PrivateData = user[:sidrUserRoom]
		x.path = nil
	} else {
		c.handler = x.onConn
		out.conn = e.conn
		out.conn.PrivateData = user
		if i.m.breaks(rule.DepthsAreExchanged) {
			out.conn.ResponderResources, out.conn.InitiatorDepth = e.conn.InitiatorDepth, e.conn.ResponderResources
		}
	}
	if !l.report(&out) {
		x.conn = nil
		x.destroy()
		return forgetConn
	}
	if x.state == idConnect && x.typ != verbs.QPTUD {
		c.prepareMRA(mraTimeout)
	}
	return keepConn
}

// sidrUserRoom is the room for a user's data in a SIDR_REQ.
const sidrUserRoom = sidrReqRoom - mad.IPHeaderSize

// listenerOf is cma_ib_id_from_event: the interface must be that of a route back, and the
// listener's address that of the request.
func (i *ids) listenerOf(e *connEvent, q *asked) *rdmaID {
	p := e.a.p
	own, ok := i.m.sourceOf(q.dst)
	if !ok || own.port != p || !own.onLink(q.src) && !i.isOwn(q.src) {
		return nil
	}
	ps, n := verbs.PortSpace(e.listener.service>>16&0xffff), uint16(e.listener.service&0xffff)
	for _, l := range i.bound[i.key(ps, n)] {
		if l.state != idListen || l.ps != ps {
			continue
		}
		a := l.src.Addr()
		sameFamily := a.Is4() == q.dst.Is4() || !l.afOnly
		if isAny(a) && sameFamily && i.servedByWildcards(own) || (l.port == p && a.WithZone("") == q.dst || i.m.breaks(rule.ListenersHaveTheirAddress)) {
			return l
		}
	}
	return nil
}

// servedByWildcards is true for all addresses: a broken listener takes requests to the first one of
// a device only.
func (i *ids) servedByWildcards(own source) bool {
	first := own
	if i.m.breaks(rule.WildcardsListenEverywhere) {
		i.m.addresses(func(s source) bool {
			first = s
			return s.port != own.port || s.addr.Is4() != own.addr.Is4()
		})
	}
	return first == own
}

func (i *ids) isOwn(a netip.Addr) bool {
	_, own := i.m.sourceOf(a)
	return own
}
