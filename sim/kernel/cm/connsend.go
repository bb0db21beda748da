package cm

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/verbs"
)

// Room of private data in messages.
const (
	reqRoom     = 92
	repRoom     = 196
	rejRoom     = 148
	sidrReqRoom = 216
	sidrRepRoom = 136
)

func (c *conn) wrongState(what string) error {
	return fmt.Errorf("%s in state %d of the connection: %w", what, c.state, errInvalid)
}

// request is ib_cm_req_param.
type request struct {
	path       *path
	service    uint64
	private    []byte
	typ        verbs.QPType
	conn       *verbs.ConnParam // with the number of the QP
	psn        uint32
	timeout    uint8 // codes of CM response times, of both sides
	maxRetries uint8
	ece        ECE
}

// permissiveLID stands for the LID of another subnet.
const permissiveLID = 0xffff

// sendREQ is ib_send_cm_req.
func (c *conn) sendREQ(q *request) error {
	switch {
	case len(q.private) > reqRoom:
		return fmt.Errorf("%d B of data in a REQ, %d at most: %w", len(q.private), reqRoom, errInvalid)
	case c.state != connIdle:
		return c.wrongState("REQ")
	}
	if err := c.setPath(q.path); err != nil {
		return err
	}
	p := q.path
	c.peer = &peer{local: c.local}
	c.service, c.typ = q.service, q.typ
	c.timeout, c.maxRetries = 2*millis(p.Lifetime)+millis(q.timeout), q.maxRetries
	c.initDepth, c.respRes, c.retryCount = q.conn.InitiatorDepth, q.conn.ResponderResources, q.conn.RetryCount
	c.mtu, c.pkey = p.MTU, p.PKey
	c.tid = c.av.port.tid(c.local)
	m := newMAD(mad.AttrREQ, c.tid)
	m.SetModifier(q.ece.Options)
	c.fillREQ(mad.REQ(m.Body()), q)
	c.localQPN, c.rqPSN = q.conn.QPN, q.psn
	return c.ask(m, reqSent)
}

// fillREQ is cm_format_req.
func (c *conn) fillREQ(r mad.REQ, q *request) {
	p := q.path
	r.SetLocal(c.local)
	r.SetVendor(q.ece.Vendor)
	r.SetServiceID(q.service)
	r.SetCAGUID(c.port.d.NodeGUID())
	r.SetQPN(q.conn.QPN)
	r.SetInitiatorDepth(q.conn.InitiatorDepth)
	r.SetRemoteTimeout(q.timeout)
	r.SetTransport(transportOf(q.typ))
	if q.typ == verbs.QPTXRCSend {
		r.SetExtended(mad.ExtendedXRC)
	}
	r.SetFlowControl(q.conn.FlowControl)
	r.SetPSN(q.psn)
	r.SetLocalTimeout(q.timeout)
	r.SetPKey(p.PKey)
	r.SetMTU(uint8(p.MTU))
	r.SetMaxCMRetries(q.maxRetries)
	if q.typ != verbs.QPTXRCSend {
		r.SetResponderResources(q.conn.ResponderResources)
		r.SetRetryCount(q.conn.RetryCount)
		r.SetRNRRetryCount(q.conn.RNRRetryCount)
		r.SetSRQ(q.conn.SRQ)
	}
	fillPath(r.Primary(), p, ackTimeout(c.port.d.ACKDelay(), p.Lifetime))
	copy(r.PrivateData(), q.private)
}

func fillPath(w mad.CMPath, p *path, timeout uint8) {
	w.SetLocalGID(roce.GID(p.SGID))
	w.SetRemoteGID(roce.GID(p.DGID))
	local := p.HopLimit <= 1
	if local {
		w.SetLocalLID(p.SLID)
		w.SetRemoteLID(p.DLID)
	} else {
		w.SetLocalLID(permissiveLID)
		w.SetRemoteLID(permissiveLID)
	}
	w.SetFlowLabel(p.FlowLabel)
	w.SetRate(p.Rate)
	w.SetTrafficClass(p.TrafficClass)
	w.SetHopLimit(p.HopLimit)
	w.SetSL(p.SL)
	w.SetSubnetLocal(local)
	w.SetACKTimeout(timeout)
}

// transportOf is cm_req_set_qp_type.
func transportOf(t verbs.QPType) uint8 {
	switch t {
	case verbs.QPTUC:
		return mad.TransportUC
	case verbs.QPTXRCSend:
		return mad.TransportExtended
	}
	return mad.TransportRC
}

// typeOf is cm_req_get_qp_type: the type of the side that is asked.
func typeOf(r mad.REQ) verbs.QPType {
	switch r.Transport() {
	case mad.TransportRC:
		return verbs.QPTRC
	case mad.TransportUC:
		return verbs.QPTUC
	case mad.TransportExtended:
		if r.Extended() == mad.ExtendedXRC {
			return verbs.QPTXRCRecv
		}
	}
	return 0
}

// message makes one with both communication IDs.
func (c *conn) message(attribute uint16, tid uint64) mad.MAD {
	m := newMAD(attribute, tid)
	b := mad.CM(m.Body())
	b.SetLocal(c.local)
	b.SetRemote(c.remote)
	return m
}

// reply is ib_cm_rep_param.
type reply struct {
	conn    *verbs.ConnParam
	psn     uint32
	private []byte
	ece     ECE
}

// sendREP is ib_send_cm_rep.
func (c *conn) sendREP(q *reply) error {
	switch {
	case len(q.private) > repRoom:
		return fmt.Errorf("%d B of data in a REP, %d at most: %w", len(q.private), repRoom, errInvalid)
	case c.state != reqRcvd && c.state != mraReqSent:
		return c.wrongState("REP")
	}
	m := c.message(mad.AttrREP, c.tid)
	m.SetModifier(q.ece.Options)
	r := mad.REP(m.Body())
	r.SetPSN(q.psn)
	r.SetResponderResources(q.conn.ResponderResources)
	r.SetACKDelay(c.port.d.ACKDelay())
	r.SetRNRRetryCount(q.conn.RNRRetryCount)
	r.SetCAGUID(c.port.d.NodeGUID())
	r.SetVendor(q.ece.Vendor)
	if c.typ == verbs.QPTXRCRecv {
		r.SetSRQ(true)
		r.SetEECN(q.conn.QPN)
	} else {
		r.SetInitiatorDepth(q.conn.InitiatorDepth)
		r.SetFlowControl(q.conn.FlowControl)
		r.SetSRQ(q.conn.SRQ)
		r.SetQPN(q.conn.QPN)
	}
	copy(r.PrivateData(), q.private)
	if err := c.ask(m, repSent); err != nil {
		return err
	}
	c.initDepth, c.respRes = q.conn.InitiatorDepth, q.conn.ResponderResources
	c.rqPSN, c.localQPN = q.psn, q.conn.QPN
	return nil
}

// sendRTU is ib_send_cm_rtu.
func (c *conn) sendRTU() error {
	if c.state != repRcvd && c.state != mraRepSent {
		return c.wrongState("RTU")
	}
	if err := c.post(c.message(mad.AttrRTU, c.tid)); err != nil {
		return err
	}
	c.state, c.private = established, nil
	return nil
}

// sendDREQ is ib_send_cm_dreq.
func (c *conn) sendDREQ() error {
	if c.state != established {
		return c.wrongState("DREQ")
	}
	m := c.message(mad.AttrDREQ, c.av.port.tid(c.local))
	mad.DREQ(m.Body()).SetQPN(c.remoteQPN)
	if err := c.ask(m, dreqSent); err != nil {
		c.enterTimewait()
		return err
	}
	return nil
}

// sendDREP is ib_send_cm_drep.
func (c *conn) sendDREP() error {
	if c.state != dreqRcvd {
		return c.wrongState("DREP")
	}
	c.private = nil
	c.enterTimewait()
	return c.post(c.message(mad.AttrDREP, c.tid))
}

// sendREJ is ib_send_cm_rej; guid: with the CA GUID as additional information.
func (c *conn) sendREJ(reason uint16, guid bool, private []byte) error {
	if len(private) > rejRoom {
		return fmt.Errorf("%d B of data in a REJ, %d at most: %w", len(private), rejRoom, errInvalid)
	}
	m := c.rej(reason)
	r := mad.REJ(m.Body())
	if guid {
		r.SetInfoLength(8)
		r.SetInfoGUID(c.port.d.NodeGUID())
	}
	copy(r.PrivateData(), private)
	switch c.state {
	case reqSent, mraReqRcvd, reqRcvd, mraReqSent, repRcvd, mraRepSent:
		c.resetToIdle()
	case repSent, mraRepRcvd:
		c.msg.stop()
		c.enterTimewait()
	default:
		return c.wrongState("REJ")
	}
	return c.post(m)
}

// rej is cm_format_rej.
func (c *conn) rej(reason uint16) mad.MAD {
	m := c.message(mad.AttrREJ, c.tid)
	r := mad.REJ(m.Body())
	r.SetReason(reason)
	switch c.state {
	case reqRcvd:
		mad.CM(m.Body()).SetLocal(0)
		r.SetAbout(mad.AboutREQ)
	case mraReqSent:
		r.SetAbout(mad.AboutREQ)
	case repRcvd, mraRepSent:
		r.SetAbout(mad.AboutREP)
	default:
		r.SetAbout(mad.AboutOther)
	}
	return m
}

// prepareMRA is ib_prepare_cm_mra: a MRA goes out only when the peer's message comes again.
func (c *conn) prepareMRA(serviceTimeout uint8) {
	switch c.state {
	case reqRcvd:
		c.state = mraReqSent
	case repRcvd:
		c.state = mraRepSent
	default:
		return
	}
	c.service24, c.private = serviceTimeout, nil
}

// mra is cm_format_mra.
func (c *conn) mra(about uint8) mad.MAD {
	m := c.message(mad.AttrMRA, c.tid)
	r := mad.MRA(m.Body())
	r.SetAbout(about)
	r.SetServiceTimeout(c.service24)
	copy(r.PrivateData(), c.private)
	return m
}

// sendSIDRReq is ib_send_cm_sidr_req.
func (c *conn) sendSIDRReq(q *request) error {
	switch {
	case len(q.private) > sidrReqRoom:
		return fmt.Errorf("%d B of data in a SIDR_REQ, %d at most: %w", len(q.private), sidrReqRoom, errInvalid)
	case c.state != connIdle:
		return c.wrongState("SIDR_REQ")
	}
	if err := c.setPath(q.path); err != nil {
		return err
	}
	c.service, c.timeout, c.maxRetries = q.service, millis(q.timeout), q.maxRetries
	m := newMAD(mad.AttrSIDRReq, c.av.port.tid(c.local))
	r := mad.SIDRReq(m.Body())
	r.SetRequestID(c.local)
	r.SetPKey(q.path.PKey)
	r.SetServiceID(q.service)
	copy(r.PrivateData(), q.private)
	return c.ask(m, sidrReqSent)
}

// sidrReply is ib_cm_sidr_rep_param.
type sidrReply struct {
	status  uint8
	qpn     uint32
	qkey    uint32
	private []byte
	ece     ECE
}

// sendSIDRRep is ib_send_cm_sidr_rep.
func (c *conn) sendSIDRRep(q *sidrReply) error {
	switch {
	case len(q.private) > sidrRepRoom:
		return fmt.Errorf("%d B of data in a SIDR_REP, %d at most: %w", len(q.private), sidrRepRoom, errInvalid)
	case c.state != sidrReqRcvd:
		return c.wrongState("SIDR_REP")
	}
	m := newMAD(mad.AttrSIDRRep, c.tid)
	m.SetModifier(q.ece.Options)
	r := mad.SIDRRep(m.Body())
	r.SetRequestID(c.remote)
	r.SetStatus(q.status)
	r.SetQPN(q.qpn)
	r.SetVendor(q.ece.Vendor)
	r.SetServiceID(c.service)
	r.SetQKey(q.qkey)
	copy(r.PrivateData(), q.private)
	if err := c.post(m); err != nil {
		return err
	}
	c.state = connIdle
	if c.sidr != nil {
		delete(c.cs.bySIDR, *c.sidr)
		c.sidr = nil
	}
	return nil
}
