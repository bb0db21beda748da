package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// The target of an XRC connection keeps the order of its packets and their answers, and has nothing
// else of its own: each request names an SRQ in its XRCETH. Receives come from that SRQ and
// complete to its CQ, and all keys are looked up in its protection domain, those of WRITE, READ and
// atomics too, since the QP's own is the driver's (the XRC patches for rxe of 2021-07-30, parts 7
// and 13).

// checkXRC is the order for the target of an XRC connection. A packet that is the next of its
// connection is looked at as far as the SRQ that it names, and then as any packet of a reliable
// connection.
func (q *responder) checkXRC(p *roce.Packet, info *roce.OpInfo) verdict {
	if p.BTH().PSN() != q.epsn || q.awaitsDriver(info) || !q.follows(info) {
		return q.checkRC(p, info)
	}
	s := q.named(p)
	switch {
	case s == nil:
		return noSRQ
	case !q.sharesDomain(s):
		return noSRQ
	case !q.keepsTo(s):
		return noSRQ
	}
	q.use(s)
	return q.checkRC(p, info)
}

// named is the XRC SRQ whose number a request bears, or nil.
func (q *responder) named(p *roce.Packet) *srq {
	if q.srqs == nil {
		return nil
	}
	s := q.srqs.xrc(p.XRCETH().SRQN())
	if s == nil && q.breaks(rule.RequestNamesAnXRCSRQ) {
		return q.spare
	}
	return s
}

// sharesDomain says whether an SRQ is of the QP's XRC domain.
func (q *responder) sharesDomain(s *srq) bool {
	return s.xrc.xrcd == q.context().XRCD() || s == q.spare && q.breaks(rule.RequestNamesAnXRCSRQ) || q.breaks(rule.NamedSRQIsOfTheDomain)
}

// keepsTo says whether a packet goes on with the SRQ of the message that is arriving, or of the
// receive WQE that is held for one which comes again. One that was destroyed meanwhile is another,
// whatever its number.
func (q *responder) keepsTo(s *srq) bool {
	return q.in == inNone && !q.recvOpen || s == q.srq || q.srq != nil && q.srq.exists() && q.breaks(rule.MessageKeepsToItsSRQ)
}

// use makes an SRQ that of the request under way.
func (q *responder) use(s *srq) {
	if s == q.srq || q.recvOpen || q.srq != nil && q.srq.exists() && q.breaks(rule.ReceivesComeFromTheNamedSRQ) {
		return
	}
	q.srq = s
	if !q.breaks(rule.RemoteKeysAreOfTheSRQsPD) {
		q.pd = s.pd
	}
	q.takeScatter()
}

// leave forgets the SRQ of the last request: the QP was reset.
func (q *responder) leave() { q.srq, q.pd = nil, q.context().PD() }

// requested is on whose behalf a request is that is carried out.
func (q *responder) requested(p *roce.Packet) asker {
	a := asker{pd: q.pd}
	if q.st == prm.STXRC {
		a.srqn = p.XRCETH().SRQN()
	}
	return a
}

// asksAgain says whether a duplicate is on behalf of whoever has asked first: its SRQ must still be
// there.
func (q *responder) asksAgain(p *roce.Packet, by asker) bool {
	if q.st != prm.STXRC {
		return true
	}
	s := q.srqs.xrc(by.srqn)
	return p.XRCETH().SRQN() == by.srqn && s != nil && s.pd == by.pd
}

// asking is who accesses memory for a READ.
func (q *responder) asking(pd uint32) mkey.User {
	if q.breaks(rule.ReadKeepsThePDOfItsRequest) {
		return q.user()
	}
	return mkey.User{PD: pd, QPN: q.num}
}
