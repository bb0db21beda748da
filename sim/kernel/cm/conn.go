package cm

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// connState is a state of ib_cm (enum ib_cm_state).
type connState uint8

const (
	connIdle connState = iota
	connListen
	reqSent
	reqRcvd
	mraReqSent
	mraReqRcvd
	repSent
	repRcvd
	mraRepSent
	mraRepRcvd
	established
	dreqSent
	dreqRcvd
	timewait
	sidrReqSent
	sidrReqRcvd
)

// path is a path record, and what of this machine it begins at.
type path struct {
	verbs.PathRecord
	port *port
	sgid int // index
}

// vector is cm_av: where an id's messages and its QP's packets go.
type vector struct {
	port    *port
	ah      verbs.AHAttr
	timeout uint8 // code, of an ACK
	pkey    int   // index
}

// conn is ib_cm_id: one end of a connection, of the making of one, or a listener.
type conn struct {
	cs      *conns
	port    *port
	handler func(*conn, *connEvent) verdict

	state         connState
	local, remote uint32
	service       uint64
	tid           uint64
	av            vector
	msg           *exchange
	peer          *peer
	sidr          *sidrKey
	shares        int // of a listener: ids that use it

	timeout    sim.Time // until an answer
	maxRetries uint8
	private    []byte // of the last message that has no answer
	service24  uint8  // service timeout of a MRA

	typ                  verbs.QPType
	localQPN, remoteQPN  uint32
	rqPSN, sqPSN         uint32
	mtu                  verbs.MTU
	pkey                 uint16
	respRes, initDepth   uint8
	retryCount, rnrRetry uint8
	ackDelay             uint8 // of the target
	lapUsed              bool
}

// eventKind is enum ib_cm_event_type as far as it reaches rdma_cm.
type eventKind uint8

const (
	evREQError eventKind = iota
	evREQ
	evREPError
	evREP
	evRTU
	evEstablished
	evDREQError
	evDREQ
	evDREP
	evTimewaitExit
	evMRA
	evREJ
	evSIDRReqError
	evSIDRReq
	evSIDRRep
)

// connEvent is ib_cm_event.
type connEvent struct {
	kind     eventKind
	listener *conn    // of evREQ and evSIDRReq
	a        *arrival // nil: none came
	private  []byte   // room of the message
	path     *path    // of evREQ
	typ      verbs.QPType
	conn     verbs.ConnParam // of evREQ and evREP, as the receiver sees it
	reason   uint16          // of evREJ, status of evSIDRRep
	qkey     uint32
	qpn      uint32
	ece      ECE
}

// enterTimewait is cm_enter_timewait.
func (c *conn) enterTimewait() {
	p := c.peer
	c.state, c.peer = timewait, nil
	if p == nil {
		return
	}
	c.cs.forget(p)
	d := millis(c.av.timeout)
	if c.cs.m.breaks(rule.TimewaitHasItsTime) {
		d /= 2
	}
	c.cs.m.timers.After(d, func() { c.cs.timewaitExit(p) })
}

// timewaitExit is cm_timewait_handler.
func (cs *conns) timewaitExit(p *peer) {
	c := cs.acquire(p.local, p.remote)
	if c == nil || c.state != timewait || c.remoteQPN != p.qpn {
		return
	}
	c.state = connIdle
	c.report(&connEvent{kind: evTimewaitExit})
}

// resetToIdle is cm_reset_to_idle.
func (c *conn) resetToIdle() {
	c.state = connIdle
	if c.peer != nil {
		c.cs.forget(c.peer)
		c.peer = nil
	}
}

// verdict is what rdma_cm makes of an event.
type verdict uint8

const (
	keepConn    verdict = iota
	destroyConn         // the id is of no use: a request is rejected
	forgetConn          // as if the request had not come: the peer asks again
)

// report gives an event to rdma_cm.
func (c *conn) report(e *connEvent) {
	if c.handler == nil {
		return
	}
	switch c.handler(c, e) {
	case destroyConn:
		c.destroy()
	case forgetConn:
		if c.state == reqRcvd {
			c.resetToIdle()
		}
		c.destroy()
	}
}

// millis is cm_convert_to_ms: roughly 4.096 us times a power of two.
func millis(code uint8) sim.Time {
	t := sim.Millisecond
	for range max(int(code)-8, 0) {
		t *= 2
	}
	return t
}

// ackTimeout is cm_ack_timeout: the code of the time in which an ACK comes, by codes of the
// target's delay and a packet's lifetime.
func ackTimeout(delay, lifetime uint8) uint8 {
	t := lifetime + 1
	switch {
	case t >= delay:
		if delay >= t-1 {
			t++
		}
	case t >= delay-1:
		t = delay + 1
	default:
		t = delay
	}
	return min(31, t)
}

// setPath is cm_init_av_by_path.
func (c *conn) setPath(p *path) error {
	if p.port == nil || p.port.removed {
		return fmt.Errorf("a path without a port: %w", errInvalid)
	}
	a := verbs.AHAttr{Port: 1, SL: p.SL, StaticRate: p.Rate, DLID: p.DLID}
	sgid, pkey, err := p.ends()
	if err != nil {
		return err
	}
	if !p.port.ib() || p.HopLimit > 0 && !c.cs.m.breaks(rule.PathsWithHopsAreGlobal) {
		a.IsGlobal = true
		a.GRH = verbs.GRH{DGID: p.DGID, FlowLabel: p.FlowLabel, SGIDIndex: uint8(sgid), HopLimit: p.HopLimit, TrafficClass: p.TrafficClass}
	}
	c.av = vector{port: p.port, ah: a, timeout: min(31, p.Lifetime+1), pkey: pkey}
	return nil
}

// ends are the entries of the port's tables of GIDs and of P_Keys by which a path begins.
func (p *path) ends() (sgid, pkey int, err error) {
	if !p.port.ib() {
		if !p.port.d.Neighbour(p.sgid, p.DGID) {
			return 0, 0, fmt.Errorf("no way to %v: %w", p.DGID, errInvalid)
		}
		return p.sgid, 0, nil
	}
	sgid, ok := p.port.gidIndex(p.SGID, verbs.GIDTypeIB)
	if !ok {
		return 0, 0, fmt.Errorf("a path from %v, which is no GID of %s: %w", p.SGID, p.port.d.Name(), errInvalid)
	}
	pkey, ok = p.port.findPKey(p.PKey)
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("a path of partition %#x, in which %s is not: %w", p.PKey, p.port.d.Name(), errNoPartition)
	case pkey != 0: // QP1 sends by the first
		return 0, 0, fmt.Errorf("a path of partition %#x, which is not the first of %s: that is not modelled: %w", p.PKey, p.port.d.Name(), syscall.EOPNOTSUPP)
	}
	return sgid, pkey, nil
}

// post sends a message of the id once.
func (c *conn) post(m mad.MAD) error { return c.av.port.send(&c.av.ah, m) }

// ask sends a message that has an answer.
func (c *conn) ask(m mad.MAD, s connState) error {
	x := &exchange{p: c.av.port, to: c.av.ah, m: m, timeout: c.timeout, left: int(c.maxRetries), state: s, failed: c.sendFailed}
	if err := x.start(); err != nil {
		return err
	}
	c.msg, c.state = x, s
	return nil
}

// sendFailed is cm_process_send_error, of a message that had no answer.
func (c *conn) sendFailed(x *exchange) {
	if x != c.msg || x.state != c.state {
		return
	}
	e := &connEvent{}
	switch c.state {
	case reqSent, mraReqRcvd:
		c.resetToIdle()
		e.kind = evREQError
	case repSent, mraRepRcvd:
		c.resetToIdle()
		e.kind = evREPError
	case dreqSent:
		c.enterTimewait()
		e.kind = evDREQError
	case sidrReqSent:
		c.state = connIdle
		e.kind = evSIDRReqError
	default:
		return
	}
	c.report(e)
}

// destroy is cm_destroy_id.
func (c *conn) destroy() {
	switch c.state {
	case connListen:
		if c.shares--; c.shares > 0 {
			return
		}
		delete(c.cs.listeners, serviceKey{c.port, c.service})
	case sidrReqSent:
		c.state = connIdle
		c.msg.stop()
	case sidrReqRcvd:
		_ = c.sendSIDRRep(&sidrReply{status: mad.SIDRReject})
	case reqSent, mraReqRcvd:
		c.msg.stop()
		_ = c.sendREJ(mad.RejTimeout, true, nil)
	case repSent, mraRepRcvd:
		c.msg.stop()
		_ = c.sendREJ(mad.RejConsumerDefined, false, nil)
	case reqRcvd, mraReqSent, repRcvd, mraRepSent:
		_ = c.sendREJ(mad.RejConsumerDefined, false, nil)
	case established:
		if c.typ != verbs.QPTXRCRecv && c.sendDREQ() == nil {
			c.msg.stop()
			c.enterTimewait()
		}
	case dreqSent:
		c.msg.stop()
		c.enterTimewait()
	case dreqRcvd:
		_ = c.sendDREP()
	}
	c.release()
}

// release takes the id out of the tables.
func (c *conn) release() {
	if c.peer != nil {
		c.cs.forget(c.peer)
		c.peer = nil
	}
	if c.sidr != nil {
		delete(c.cs.bySIDR, *c.sidr)
		c.sidr = nil
	}
	if c.cs.byLocal[c.local] == c {
		delete(c.cs.byLocal, c.local)
	}
	c.state, c.handler = connIdle, nil
}
