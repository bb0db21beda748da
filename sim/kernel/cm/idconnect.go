package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var errIsConnected = fmt.Errorf("the connection is established: %w", syscall.EISCONN)

// What rdma_cm asks of the other side (CMA_CM_RESPONSE_TIMEOUT, CMA_MAX_CM_RETRIES,
// CMA_CM_MRA_SETTING).
const (
	responseTimeout = 20 // code
	maxCMRetries    = 15
	mraTimeout      = 24 // code
	maxRetryCount   = 7
)

// withHeader puts the header of IP before a user's data (cma_format_hdr).
func (x *rdmaID) withHeader(user []byte) []byte {
	b := make([]byte, mad.IPHeaderSize, mad.IPHeaderSize+len(user))
	h := mad.IPHeader(b)
	h.SetSrcPort(x.src.Port())
	h.SetSrc(headerAddr(x.src.Addr()))
	h.SetDst(headerAddr(x.dst.Addr()))
	h.SetIPVersion(6)
	if x.src.Addr().Is4() {
		h.SetIPVersion(4)
	}
	return append(b, user...)
}

// headerAddr is an address as the header has it: IPv4 behind zeros.
func headerAddr(a netip.Addr) (g roce.GID) {
	b := a.WithZone("").AsSlice()
	copy(g[len(g)-len(b):], b)
	return g
}

// addrOf is headerAddr the other way.
func addrOf(g roce.GID, version uint8) netip.Addr {
	if version == 4 {
		return netip.AddrFrom4([4]byte(g[12:]))
	}
	return netip.AddrFrom16(g)
}

// connect is rdma_connect.
func (x *rdmaID) connect(p *verbs.ConnParam, ece ECE) error {
	if x.state != routeResolved {
		return x.wrongState("connect")
	}
	x.state = idConnect
	x.qpn, x.srq = p.QPN, p.SRQ
	var err error
	if x.typ == verbs.QPTUD {
		err = x.askForService(p, ece)
	} else {
		err = x.askForConnection(p, ece)
	}
	if err != nil {
		x.state = routeResolved
	}
	return err
}

func (x *rdmaID) newConn() *conn {
	c := x.ids.m.conns.newConn(x.port)
	c.handler = x.onConn
	if x.typ == verbs.QPTUD {
		c.handler = x.onSIDR
	}
	c.publish()
	return c
}

// askForConnection is cma_connect_ib.
func (x *rdmaID) askForConnection(p *verbs.ConnParam, ece ECE) error {
	c := x.newConn()
	q := *p
	q.RetryCount, q.RNRRetryCount = min(p.RetryCount, maxRetryCount), min(p.RNRRetryCount, maxRetryCount)
	err := c.sendREQ(&request{path: x.path, service: service(x.ps, x.dst.Port()), private: x.withHeader(p.PrivateData), typ: x.typ, conn: &q,
		psn: x.psn, timeout: responseTimeout, maxRetries: x.retries(), ece: ece})
	if err != nil {
		c.release()
		return err
	}
	x.conn = c
	return nil
}

func (x *rdmaID) retries() uint8 {
	if x.ids.m.breaks(rule.RequestsAreSentAgain) {
		return 0
	}
	return maxCMRetries
}

// askForService is cma_resolve_ib_udp.
func (x *rdmaID) askForService(p *verbs.ConnParam, ece ECE) error {
	c := x.newConn()
	err := c.sendSIDRReq(&request{path: x.path, service: service(x.ps, x.dst.Port()), private: x.withHeader(p.PrivateData),
		timeout: responseTimeout, maxRetries: x.retries(), ece: ece})
	if err != nil {
		c.release()
		return err
	}
	x.conn = c
	return nil
}

// onConn is cma_ib_handler.
func (x *rdmaID) onConn(c *conn, e *connEvent) verdict {
	if e.kind != evTimewaitExit && x.state != idConnect || e.kind == evTimewaitExit && x.state != idDisconnect {
		return keepConn
	}
	out := idEvent{ece: e.ece}
	switch e.kind {
	case evREQError, evREPError:
		out.typ, out.status = verbs.CMUnreachable, -int32(syscall.ETIMEDOUT)
	case evREP:
		c.prepareMRA(mraTimeout)
		out.typ, out.conn = verbs.CMConnectResponse, e.conn
		out.conn.PrivateData = e.private
	case evRTU, evEstablished:
		out.typ = verbs.CMEstablished
	case evDREQError, evDREQ, evDREP:
		x.state = idDisconnect
		out.typ = verbs.CMDisconnected
		if e.kind == evDREQError {
			out.status = -int32(syscall.ETIMEDOUT)
		}
	case evTimewaitExit:
		out.typ = verbs.CMTimewaitExit
	case evREJ:
		out.typ, out.status = verbs.CMRejected, int32(e.reason)
		out.conn.PrivateData = e.private
	default:
		return keepConn
	}
	x.report(&out)
	return keepConn
}

// onSIDR is cma_sidr_rep_handler.
func (x *rdmaID) onSIDR(_ *conn, e *connEvent) verdict {
	if x.state != idConnect {
		return keepConn
	}
	out := idEvent{ece: e.ece}
	switch e.kind {
	case evSIDRReqError:
		out.typ, out.status = verbs.CMUnreachable, -int32(syscall.ETIMEDOUT)
	case evSIDRRep:
		out.ud.PrivateData = e.private
		switch {
		case e.reason != mad.SIDRSuccess:
			out.typ, out.status = verbs.CMUnreachable, int32(e.reason)
		case x.setQKey(e.qkey) != nil:
			out.typ, out.status = verbs.CMAddrError, -int32(syscall.EINVAL)
		default:
			out.typ = verbs.CMEstablished
			out.ud.QPN, out.ud.QKey, out.ud.AH = e.qpn, e.qkey, x.pathAH()
		}
	default:
		return keepConn
	}
	x.report(&out)
	return keepConn
}

// pathAH is ib_init_ah_attr_from_path.
func (x *rdmaID) pathAH() verbs.AHAttr {
	c := conn{cs: &x.ids.m.conns}
	if x.path == nil || c.setPath(x.path) != nil {
		return verbs.AHAttr{}
	}
	return c.av.ah
}

// setQKey is cma_set_qkey: an id has one only.
func (x *rdmaID) setQKey(k uint32) error {
	switch {
	case x.qkey == 0 && k == 0:
		x.qkey = verbs.DefaultUDQKey
	case x.qkey == 0:
		x.qkey = k
	case k != 0 && x.qkey != k:
		return fmt.Errorf("Q_Key %#x, and the id has %#x: %w", k, x.qkey, errInvalid)
	}
	return nil
}

// accept is rdma_accept; nil: the end of an active connection.
func (x *rdmaID) accept(p *verbs.ConnParam, ece ECE) error {
	if x.state != idConnect || x.conn == nil {
		return x.wrongState("accept")
	}
	var err error
	switch {
	case x.typ == verbs.QPTUD && p != nil:
		err = x.offerService(p, ece)
	case x.typ == verbs.QPTUD:
		err = x.conn.sendSIDRRep(&sidrReply{status: mad.SIDRReject})
	case p != nil:
		x.qpn, x.srq = p.QPN, p.SRQ
		err = x.conn.sendREP(&reply{conn: p, psn: x.psn, private: p.PrivateData, ece: ece})
	default:
		if err = x.conn.sendRTU(); err == nil {
			return nil
		}
	}
	if err != nil {
		_ = x.reject(mad.RejConsumerDefined, nil)
	}
	return err
}

// offerService is cma_send_sidr_rep with success.
func (x *rdmaID) offerService(p *verbs.ConnParam, ece ECE) error {
	if err := x.setQKey(p.QKey); err != nil {
		return err
	}
	k := x.qkey
	if x.ids.m.breaks(rule.DatagramServicesHaveAKey) {
		k++
	}
	return x.conn.sendSIDRRep(&sidrReply{status: mad.SIDRSuccess, qpn: p.QPN, qkey: k, private: p.PrivateData, ece: ece})
}

// reject is rdma_reject.
func (x *rdmaID) reject(reason uint16, private []byte) error {
	switch {
	case x.conn == nil:
		return x.wrongState("reject")
	case x.typ == verbs.QPTUD:
		return x.conn.sendSIDRRep(&sidrReply{status: mad.SIDRReject, private: private})
	}
	return x.conn.sendREJ(reason, false, private)
}

// disconnect is rdma_disconnect, of which the QP is the library's part.
func (x *rdmaID) disconnect() error {
	if x.conn == nil {
		return x.wrongState("disconnect")
	}
	if x.conn.sendDREQ() == nil {
		return nil
	}
	if err := x.conn.sendDREP(); err != nil && x.ids.m.breaks(rule.SecondDisconnectSucceeds) {
		return err
	}
	return nil
}

// notify is rdma_notify.
func (x *rdmaID) notify(ev verbs.EventType) error {
	switch {
	case x.conn == nil:
		return x.wrongState("notify")
	case ev == verbs.EventCommEst:
		return x.conn.userEstablished()
	case ev == verbs.EventPathMig && x.conn.state == established:
		return nil
	}
	return fmt.Errorf("notify of event %d: %w", ev, errInvalid)
}

// qpAttr is rdma_init_qp_attr.
func (x *rdmaID) qpAttr(to verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	if x.port == nil {
		return verbs.QPAttr{}, 0, fmt.Errorf("attributes of a QP of no device: %w", errInvalid)
	}
	if x.conn == nil || x.typ == verbs.QPTUD {
		i, ok := x.port.findPKey(x.pkey)
		if !ok {
			return verbs.QPAttr{}, 0, fmt.Errorf("attributes of a QP in partition %#x, in which %s is not: %w", x.pkey, x.port.d.Name(), errNoPartition)
		}
		a := verbs.QPAttr{State: to, Port: 1, PKeyIndex: uint16(i)}
		mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort
		if x.typ != verbs.QPTUD {
			return a, mask | verbs.QPMaskAccessFlags, nil
		}
		if err := x.setQKey(0); err != nil {
			return a, 0, err
		}
		a.QKey = x.qkey
		return a, mask | verbs.QPMaskQKey, nil
	}
	a, mask, err := x.conn.qpAttr(to)
	if err != nil {
		return a, mask, err
	}
	if to == verbs.QPSRTR {
		a.RQPSN = x.psn
	}
	if x.ids.m.breaks(rule.StartingPSNIsThePeers) {
		a.RQPSN++
	}
	if mask&verbs.QPMaskTimeout != 0 && x.ackTimeoutSet {
		a.Timeout = x.ackTimeout
	}
	return a, mask, nil
}
