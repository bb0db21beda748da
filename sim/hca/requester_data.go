package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// onReadResponse is a packet of a READ's data.
func (q *requester) onReadResponse(p *roce.Packet, psn uint32) {
	m := q.answeredBy(psn)
	if m == nil {
		return
	}
	if m.op == prm.WQEOpAtomicWrite {
		q.onAtomicWritten(m, p)
		return
	}
	if q.landingWaits() {
		q.u.c.RxGhosts++
		return
	}
	if !q.checkReadData(m, p) {
		q.badResponse()
		return
	}
	q.rnr = q.rnrMax
	if !q.land(m, m.next*uint32(q.mtu), p.Payload()) {
		return
	}
	m.next++
	q.landed += uint64(len(p.Payload()))
	q.una = roce.AddPSN(psn, 1)
	if m.next == m.n {
		q.endRead(m)
	}
	q.progress()
}

// badResponse is a response that does not answer what it should.
func (q *requester) badResponse() {
	q.qs.add(prm.QCReqBadResponse)
	q.failAnswered(prm.SyndromeBadResp)
}

// land writes response data to where a READ's or an atomic's data segments say,
// or, when it is small and all of it is here, into the CQE.
func (q *requester) land(m *msg, off uint32, data []byte) bool {
	if inCQE(q.csReq, len(data)) && m.signal && uint32(len(data)) == m.length && !q.scripted && !q.streams.flushed(m.stream) {
		q.sendCQE(m, data)
		m.signal = false
		return true
	}
	w := &q.u.parsed
	if prm.ParseSendWQE(q.landing[m.land].wqe, uint32(q.st), w) != nil {
		q.u.bug("QP %#x: the landing area of WQE %d changed", q.num, m.idx)
	}
	c, packet := cursor{}, len(data)
	for skip := off; skip > 0; {
		s, next, _ := w.Data(c.at)
		if skip < s.Len {
			c.pos = skip
			break
		}
		skip -= s.Len
		c.at = next
	}
	for len(data) > 0 {
		s, next, ok := w.Data(c.at)
		if !ok {
			q.u.bug("QP %#x: a READ's landing area is too small", q.num)
		}
		n := int(min(uint32(len(data)), s.Len-c.pos))
		if r := q.u.dma.writeTo(q.user(), s.LKey, q.sum(rule.LandingAddressesHave64Bits, s.Addr, c.pos), data[:n], mkey.LocalWrite); r != mkey.OK {
			q.cannotLand(r, off, packet)
			return false
		}
		data = data[n:]
		if c.pos += uint32(n); c.pos == s.Len {
			c.at, c.pos = next, 0
		}
	}
	return true
}

// cursor is a place in a list of data segments.
type cursor struct {
	at  int
	pos uint32
}

func (q *requester) endRead(m *msg) {
	q.reads--
	q.landing[m.land].busy = false
}

func (q *requester) onAtomicAck(p *roce.Packet, psn uint32) {
	m := q.answeredBy(psn)
	if m == nil {
		return
	}
	if q.landingWaits() {
		q.u.c.RxGhosts++
		return
	}
	if !q.checkAtomicAck(m, p) {
		q.badResponse()
		return
	}
	q.rnr = q.rnrMax
	var v [8]byte
	putHost64(v[:], p.AtomicAckETH().Original())
	if !q.land(m, 0, v[:]) {
		return
	}
	m.next = 1
	q.una = roce.AddPSN(psn, 1)
	q.endRead(m)
	q.progress()
}
