package cm

import (
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// handle is cm_work_handler of a message.
func (cs *conns) handle(a *arrival) {
	switch a.mad().Attribute() {
	case mad.AttrREQ:
		cs.handleREQ(a)
	case mad.AttrMRA:
		cs.handleMRA(a)
	case mad.AttrREJ:
		cs.handleREJ(a)
	case mad.AttrREP:
		cs.handleREP(a)
	case mad.AttrRTU:
		cs.handleRTU(a)
	case mad.AttrDREQ:
		cs.handleDREQ(a)
	case mad.AttrDREP:
		cs.handleDREP(a)
	case mad.AttrSIDRReq:
		cs.handleSIDRReq(a)
	case mad.AttrSIDRRep:
		cs.handleSIDRRep(a)
	case mad.AttrLAP:
		cs.handleLAP(a)
	}
}

// refuse is cm_issue_rej: a REJ of a message that belongs to no id.
func (a *arrival) refuse(reason uint16, about uint8) {
	was := mad.CM(a.mad().Body())
	m := newMAD(mad.AttrREJ, a.mad().TID())
	b := mad.CM(m.Body())
	b.SetRemote(was.Local())
	if about != mad.AboutREQ {
		b.SetLocal(was.Remote())
	}
	r := mad.REJ(m.Body())
	r.SetAbout(about)
	r.SetReason(reason)
	a.p.answer(a, m)
}

// handleREP is cm_rep_handler.
func (cs *conns) handleREP(a *arrival) {
	b := mad.CM(a.mad().Body())
	r := mad.REP(a.mad().Body())
	c := cs.acquire(b.Remote(), 0)
	if c == nil {
		cs.repeatedREP(a)
		return
	}
	if c.state != reqSent && c.state != mraReqRcvd || c.peer == nil {
		return
	}
	qpn := r.QPN()
	if c.typ == verbs.QPTXRCSend {
		qpn = r.EECN()
	}
	c.peer.remote, c.peer.guid, c.peer.qpn = b.Local(), r.CAGUID(), qpn
	if cs.enterID(c.peer) != nil {
		return
	}
	if was := cs.enterQP(c.peer); was != nil {
		cs.forget(c.peer)
		a.refuse(mad.RejStale, mad.AboutREP)
		if cur := cs.acquire(was.local, was.remote); cur != nil {
			_ = cur.sendDREQ()
		}
		return
	}
	c.state, c.remote, c.remoteQPN = repRcvd, b.Local(), qpn
	c.initDepth, c.respRes = r.ResponderResources(), r.InitiatorDepth()
	c.sqPSN, c.rnrRetry, c.ackDelay = r.PSN(), r.RNRRetryCount(), r.ACKDelay()
	c.av.timeout = ackTimeout(c.ackDelay, c.av.timeout-1)
	c.msg.stop()
	c.report(&connEvent{
		kind: evREP, a: a, private: r.PrivateData(), ece: ECE{r.Vendor(), a.mad().Modifier()},
		conn: verbs.ConnParam{QPN: qpn, ResponderResources: r.InitiatorDepth(), InitiatorDepth: r.ResponderResources(),
			FlowControl: r.FlowControl(), RNRRetryCount: r.RNRRetryCount(), SRQ: r.SRQ()},
	})
}

// repeatedREP is cm_dup_rep_handler.
func (cs *conns) repeatedREP(a *arrival) {
	b := mad.CM(a.mad().Body())
	c := cs.acquire(b.Remote(), b.Local())
	if c == nil {
		return
	}
	a.p.count(countDuplicate, mad.AttrREP)
	switch c.state {
	case established:
		if !cs.m.breaks(rule.RepeatedRepliesAreAnsweredByRTU) {
			a.p.answer(a, c.message(mad.AttrRTU, c.tid))
		}
	case mraRepSent:
		a.p.answer(a, c.mra(mad.AboutREP))
	}
}

// handleRTU is cm_rtu_handler.
func (cs *conns) handleRTU(a *arrival) {
	b := mad.CM(a.mad().Body())
	c := cs.acquire(b.Remote(), b.Local())
	if c == nil {
		return
	}
	if c.state != repSent && c.state != mraRepRcvd {
		a.p.count(countDuplicate, mad.AttrRTU)
		return
	}
	c.state = established
	c.msg.stop()
	if cs.m.breaks(rule.EstablishmentIsReported) {
		return
	}
	c.report(&connEvent{kind: evRTU, a: a, private: mad.RTU(b).PrivateData()})
}

// handleDREQ is cm_dreq_handler.
func (cs *conns) handleDREQ(a *arrival) {
	b := mad.CM(a.mad().Body())
	c := cs.acquire(b.Remote(), b.Local())
	if c == nil {
		a.p.count(countDuplicate, mad.AttrDREQ)
		m := newMAD(mad.AttrDREP, a.mad().TID())
		mad.CM(m.Body()).SetLocal(b.Remote())
		mad.CM(m.Body()).SetRemote(b.Local())
		a.p.answer(a, m)
		return
	}
	if c.localQPN != mad.DREQ(b).QPN() {
		return
	}
	switch c.state {
	case repSent, dreqSent:
		c.msg.stop()
	case established, mraRepRcvd:
	case timewait:
		a.p.count(countDuplicate, mad.AttrDREQ)
		a.p.answer(a, c.message(mad.AttrDREP, c.tid))
		return
	case dreqRcvd:
		a.p.count(countDuplicate, mad.AttrDREQ)
		return
	default:
		return
	}
	c.state, c.tid = dreqRcvd, a.mad().TID()
	if cs.m.breaks(rule.DREPWaitsForTheProgram) {
		_ = c.sendDREP()
	}
	c.report(&connEvent{kind: evDREQ, a: a, private: mad.DREQ(b).PrivateData()})
}

// handleDREP is cm_drep_handler.
func (cs *conns) handleDREP(a *arrival) {
	b := mad.CM(a.mad().Body())
	c := cs.acquire(b.Remote(), b.Local())
	if c == nil || c.state != dreqSent && c.state != dreqRcvd {
		return
	}
	c.msg.stop()
	c.enterTimewait()
	c.report(&connEvent{kind: evDREP, a: a, private: mad.RTU(b).PrivateData()})
}

// rejected is cm_acquire_rejected_id.
func (cs *conns) rejected(m mad.MAD) *conn {
	b, r := mad.CM(m.Body()), mad.REJ(m.Body())
	switch {
	case r.Reason() == mad.RejTimeout:
		if p := cs.byID[idKey{b.Local(), r.InfoGUID()}]; p != nil {
			return cs.acquire(p.local, b.Local())
		}
		return nil
	case r.About() == mad.AboutREQ:
		return cs.acquire(b.Remote(), 0)
	}
	return cs.acquire(b.Remote(), b.Local())
}

// handleREJ is cm_rej_handler.
func (cs *conns) handleREJ(a *arrival) {
	c := cs.rejected(a.mad())
	if c == nil {
		return
	}
	r := mad.REJ(a.mad().Body())
	switch c.state {
	case reqSent, mraReqRcvd, repSent, mraRepRcvd, reqRcvd, mraReqSent:
		c.msg.stop()
		if r.Reason() == mad.RejStale {
			c.enterTimewait()
		} else {
			c.resetToIdle()
		}
	case dreqSent, repRcvd, mraRepSent:
		c.msg.stop()
		c.enterTimewait()
	case established:
		if c.lapUsed {
			return
		}
		c.enterTimewait()
	default:
		return
	}
	c.report(&connEvent{kind: evREJ, a: a, private: r.PrivateData(), reason: r.Reason()})
}

// handleMRA is cm_mra_handler.
func (cs *conns) handleMRA(a *arrival) {
	b, r := mad.CM(a.mad().Body()), mad.MRA(a.mad().Body())
	var c *conn
	switch r.About() {
	case mad.AboutREQ:
		c = cs.acquire(b.Remote(), 0)
	case mad.AboutREP, mad.AboutOther:
		c = cs.acquire(b.Remote(), b.Local())
	}
	if c == nil {
		return
	}
	switch {
	case c.state == reqSent && r.About() == mad.AboutREQ:
		c.state = mraReqRcvd
	case c.state == repSent && r.About() == mad.AboutREP:
		c.state = mraRepRcvd
	case c.state == mraReqRcvd || c.state == mraRepRcvd:
		a.p.count(countDuplicate, mad.AttrMRA)
		return
	default:
		return
	}
	c.msg.state = c.state
	if !cs.m.breaks(rule.MRAExtendsTheTimeout) {
		c.msg.extend(millis(r.ServiceTimeout()) + millis(c.av.timeout))
	}
	c.report(&connEvent{kind: evMRA, a: a, private: r.PrivateData()})
}

// handleSIDRReq is cm_sidr_req_handler.
func (cs *conns) handleSIDRReq(a *arrival) {
	r := mad.SIDRReq(a.mad().Body())
	k := sidrKey{a.p, r.RequestID(), a.back.DLID}
	if cs.bySIDR[k] != nil {
		a.p.count(countDuplicate, mad.AttrSIDRReq)
		return
	}
	c := cs.newConn(a.p)
	c.remote, c.service, c.tid, c.typ = r.RequestID(), r.ServiceID(), a.mad().TID(), verbs.QPTUD
	c.av = vector{port: a.p, ah: a.back}
	c.pkey = r.PKey()
	cs.bySIDR[k], c.sidr = c, &k
	c.state = sidrReqRcvd
	l := cs.listeners[serviceKey{a.p, c.service}]
	if l == nil {
		if !cs.m.breaks(rule.DatagramServicesAreRefused) {
			_ = c.sendSIDRRep(&sidrReply{status: mad.SIDRUnsupported})
		}
		c.release()
		return
	}
	c.handler = l.handler
	p := &path{port: a.p, sgid: int(a.back.GRH.SGIDIndex)}
	p.PKey = r.PKey()
	c.report(&connEvent{kind: evSIDRReq, listener: l, a: a, private: r.PrivateData(), path: p, typ: verbs.QPTUD, ece: ECE{Options: a.mad().Modifier()}})
}

// handleSIDRRep is cm_sidr_rep_handler.
func (cs *conns) handleSIDRRep(a *arrival) {
	r := mad.SIDRRep(a.mad().Body())
	c := cs.acquire(r.RequestID(), 0)
	if c == nil || c.state != sidrReqSent {
		return
	}
	c.state = connIdle
	c.msg.stop()
	c.report(&connEvent{kind: evSIDRRep, a: a, private: r.PrivateData(), reason: uint16(r.Status()), qkey: r.QKey(), qpn: r.QPN(),
		ece: ECE{r.Vendor(), a.mad().Modifier()}})
}

// handleLAP is cm_lap_handler: on RoCE it is dropped. On InfiniBand it is handed to rdma_cm, which
// does not answer (cma_ib_handler).
func (cs *conns) handleLAP(a *arrival) {
	if a.p.ib() {
		b := mad.CM(a.mad().Body())
		c := cs.acquire(b.Remote(), b.Local())
		switch {
		case c == nil:
			a.p.count(countDuplicate, mad.AttrLAP)
		case c.state != established:
		case c.lapUsed:
			a.p.count(countDuplicate, mad.AttrLAP)
		default:
			c.lapUsed = true
		}
	}
}

// userEstablished is cm_establish, by which a QP's event stands for the RTU.
func (c *conn) userEstablished() error {
	switch c.state {
	case repSent, mraRepRcvd:
		c.state = established
	case established:
		return errIsConnected
	default:
		return c.wrongState("communication established")
	}
	local, remote := c.local, c.remote
	c.cs.m.work.add(func() {
		x := c.cs.acquire(local, remote)
		if x != c || c.state != established {
			return
		}
		c.msg.stop()
		c.report(&connEvent{kind: evEstablished})
	})
	return nil
}
