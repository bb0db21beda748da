package cm

import (
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// handleREQ is cm_req_handler.
func (cs *conns) handleREQ(a *arrival) {
	r := mad.REQ(a.mad().Body())
	c := cs.newConn(a.p)
	c.remote, c.service, c.tid = r.Local(), r.ServiceID(), a.mad().TID()
	c.timeout, c.maxRetries = millis(r.LocalTimeout()), r.MaxCMRetries()
	c.remoteQPN, c.sqPSN, c.typ = r.QPN(), r.PSN(), typeOf(r)
	c.initDepth, c.respRes = r.ResponderResources(), r.InitiatorDepth()
	c.mtu, c.pkey = verbs.MTU(r.MTU()), r.PKey()
	c.retryCount, c.rnrRetry = r.RetryCount(), r.RNRRetryCount()
	c.av = vector{port: a.p, ah: a.back}
	c.peer = &peer{local: c.local, remote: c.remote, guid: r.CAGUID(), qpn: c.remoteQPN}
	c.state = reqRcvd
	listener := cs.matchREQ(a, c)
	if listener == nil {
		c.state = connIdle
		c.release()
		return
	}
	p := &path{port: a.p, sgid: int(a.back.GRH.SGIDIndex), PathRecord: pathOf(r)}
	if p.HopLimit = a.back.GRH.HopLimit; !a.p.ib() && p.HopLimit == 0xff {
		p.HopLimit = routeHops
	}
	if a.p.ib() {
		c.setLIDs(a, p)
	}
	if err := c.setPath(p); err != nil {
		_ = c.sendREJ(mad.RejInvalidGID, false, nil)
		c.release()
		return
	}
	c.handler = listener.handler
	c.publish()
	c.report(&connEvent{
		kind: evREQ, listener: listener, a: a, private: r.PrivateData(), path: p, typ: c.typ, ece: ECE{r.Vendor(), a.mad().Modifier()},
		conn: verbs.ConnParam{QPN: r.QPN(), ResponderResources: r.InitiatorDepth(), InitiatorDepth: r.ResponderResources(),
			FlowControl: r.FlowControl(), RetryCount: r.RetryCount(), RNRRetryCount: r.RNRRetryCount(), SRQ: r.SRQ()},
	})
}

// pathOf is cm_format_paths_from_req: the way back.
func pathOf(r mad.REQ) verbs.PathRecord {
	p := r.Primary()
	life := p.ACKTimeout()
	if life > 0 {
		life--
	}
	return verbs.PathRecord{
		DGID: verbs.GID(p.LocalGID()), SGID: verbs.GID(p.RemoteGID()), DLID: p.LocalLID(), SLID: p.RemoteLID(), FlowLabel: p.FlowLabel(),
		HopLimit: p.HopLimit(), TrafficClass: p.TrafficClass(), Reversible: true, NumPath: 1, PKey: r.PKey(), SL: p.SL(), MTU: verbs.MTU(r.MTU()),
		Rate: p.Rate(), Lifetime: life,
	}
}

// setLIDs is cm_process_routed_req: LIDs of another subnet are those by which the message came.
func (c *conn) setLIDs(a *arrival, p *path) {
	p.HopLimit = 0
	if a.back.IsGlobal {
		p.HopLimit = a.back.GRH.HopLimit
	}
	if p.DLID == permissiveLID {
		p.DLID, p.SL = a.back.DLID, a.back.SL
	}
}

// matchREQ is cm_match_req: duplicates, stale connections, then the listener.
func (cs *conns) matchREQ(a *arrival, c *conn) *conn {
	if was := cs.enterID(c.peer); was != nil {
		if cur := cs.acquire(was.local, was.remote); cur != nil {
			cs.repeatedREQ(a, cur)
		}
		return nil
	}
	if was := cs.enterQP(c.peer); was != nil && !cs.m.breaks(rule.StaleConnectionsAreRefused) {
		cs.forget(c.peer)
		cur := cs.acquire(was.local, was.remote)
		a.refuse(mad.RejStale, mad.AboutREQ)
		if cur != nil {
			_ = cur.sendDREQ()
		}
		return nil
	}
	l := cs.listeners[serviceKey{a.p, c.service}]
	if l == nil && !cs.m.breaks(rule.RequestsWithoutListenerAreRejected) {
		cs.forget(c.peer)
		a.refuse(mad.RejInvalidServiceID, mad.AboutREQ)
	}
	return l
}

// repeatedREQ is cm_dup_req_handler.
func (cs *conns) repeatedREQ(a *arrival, c *conn) {
	a.p.count(countDuplicate, mad.AttrREQ)
	switch c.state {
	case mraReqSent:
		if !cs.m.breaks(rule.RepeatedRequestsAreAnsweredByMRA) {
			a.p.answer(a, c.mra(mad.AboutREQ))
		}
	case timewait:
		a.p.answer(a, c.rej(mad.RejStale))
	}
}
