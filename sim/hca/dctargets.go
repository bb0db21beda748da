package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// dct is the target with a number, or nil.
func (v *queuePairs) dct(n uint32) *dct { return v.targets[n] }

// connected is the DCR that a request packet to a target is for, or nil.
func (v *queuePairs) connected(p *roce.Packet) *qp {
	t := v.dct(p.BTH().DestQP())
	if t == nil || !p.Has(roce.HasDCETH) {
		return nil
	}
	if l := t.byPeer[peerOf(p)]; l.dcr != nil && l.last == p.DCETH().Connection() && l.dcr.framing == p.Framing {
		return l.dcr
	}
	return nil
}

// toTarget takes a packet of the transport that no QP has admitted. One without a connection is
// dropped: its initiator asks again, and connects again when nothing answers.
func (v *queuePairs) toTarget(f *roce.Frame) {
	p := &f.Packet
	t := v.dct(p.BTH().DestQP())
	switch {
	case t == nil || !p.Has(roce.HasDCETH):
		v.c.RxNoQP++
	case !v.isOwnAddress(p):
		v.c.RxAddress++
	case !roce.PKeyMatch(p.BTH().PKey(), t.pkey):
		v.badPKey()
	case p.Info().Class == roce.ClassDCConnect:
		v.connectTo(t, p)
	default:
		q := v.connected(p)
		switch {
		case q == nil:
			v.c.RxNoQP++
		case p.Info().Class == roce.ClassDCDisconnect:
			v.release(t, peerOf(p), q)
		case q.takesRequests():
			q.responder.request(f)
			return
		}
	}
	f.Release()
}

// connectTo makes a connection, unless it is there, or was: an initiator that has heard nothing
// connects again. Another access key is answered as an invalid request (assumed; the context counts
// them).
func (v *queuePairs) connectTo(t *dct, p *roce.Packet) {
	peer, h := peerOf(p), p.DCETH()
	if l, again := t.byPeer[peer]; again {
		if int32(h.Connection()-l.last) <= 0 {
			return
		}
		if l.dcr != nil {
			v.release(t, peer, l.dcr)
		}
	}
	q := v.dcr(t)
	if q == nil {
		v.c.RxNoQP++
		return
	}
	if !q.answerTo(p, t) {
		t.idle = append(t.idle, q)
		v.c.RxAddress++
		return
	}
	t.byPeer[peer] = dcLink{q, h.Connection()}
	q.remote = peer.qpn
	q.responder.connect()
	q.responder.epsn, q.responder.est = p.BTH().PSN(), true
	q.responder.takeRights()
	q.setState(prm.QPStateRTR)
	q.qs.add(prm.QCRxDCTConnect)
	if c := t.context(); h.AccessKey() != c.AccessKey() && !v.breaks(rule.AccessKeyIsChecked) {
		c.SetKeyViolations(c.KeyViolations() + 1)
		q.responder.answer(answerNAK, p.BTH().PSN(), roce.NAKInvalidRequest)
		q.toError()
	}
}

// dcr is a responder context of a target that has no connection, or nil if it takes none or there
// is no number for one.
func (v *queuePairs) dcr(t *dct) *qp {
	if t.draining || v.breaks(rule.TargetOutlivesItsConnections) && t.context().KeyViolations() > 0 {
		return nil
	}
	if n := len(t.idle); n > 0 {
		q := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return q
	}
	n, ok := v.qpNums.alloc()
	if !ok {
		return nil
	}
	from, ctx := t.context(), [prm.QPCSize]byte{}
	c := prm.QPC(ctx[:])
	c.SetST(prm.STDCT)
	c.SetNoSQ(true)
	c.SetPD(from.PD())
	c.SetUserIndex(from.UserIndex())
	c.SetRQType(prm.RQTypeSRQ)
	c.SetSRQN(from.SRQN())
	c.SetCQNSnd(from.CQN())
	c.SetCQNRcv(from.CQN())
	c.SetMTU(from.MTU())
	c.SetMinRNRNAK(from.MinRNRNAK())
	c.SetLogRRAMax(uint32(v.p.LogMaxRARes))
	c.SetRRE(from.RRE())
	c.SetRWE(from.RWE())
	c.SetRAE(from.RAE())
	c.SetCSRes(from.CSRes())
	q := v.newQP(n, c, ring{}, t.with)
	q.wireQPN = t.num
	q.mtu = roce.MTU(from.MTU()).Bytes()
	v.bySlot = put(v.bySlot, v.qpSlot(n), q)
	t.all = append(t.all, q)
	return q
}

// release ends a connection.
func (v *queuePairs) release(t *dct, peer dcPeer, q *qp) {
	t.byPeer[peer] = dcLink{last: t.byPeer[peer].last}
	q.reset()
	t.idle = append(t.idle, q)
}

// drain ends all connections of a target.
func (v *queuePairs) drain(t *dct) {
	t.draining = true
	for _, q := range t.all {
		q.stop()
		q.state = prm.QPStateRST
		v.bySlot[v.qpSlot(q.num)] = nil
		v.qpNums.release(q.num)
	}
	t.all, t.idle, t.byPeer = nil, nil, map[dcPeer]dcLink{}
}

// newDCT makes a target of a context that was checked.
func (v *queuePairs) newDCT(num uint32, c prm.DCTC, with partners) *dct {
	t := &dct{num: num, with: with, pkey: v.pkey(int(c.PKeyIndex())), byPeer: map[dcPeer]dcLink{}}
	copy(t.ctx[:], c)
	t.context().SetState(prm.DCTActive)
	v.targets[num] = t
	return t
}
