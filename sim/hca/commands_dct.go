package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// cmdCreateDCT makes a target of the dynamically connected transport. Its numbers are those of QPs.
func cmdCreateDCT(d *Device, in, out []byte) prm.Status {
	c := prm.CreateDCTIn(in).Context()
	q, s, mtu := d.cqs.at(c.CQN()), d.rmp(c.SRQN()), roce.MTU(c.MTU())
	switch {
	case !d.p.DCT:
		return prm.StatusBadOp
	case !d.hasPD(c.PD()) || q == nil || s == nil || mtu.Bytes() == 0 || !d.carries(mtu) || c.Port() > 1,
		c.CounterSetID() != 0 && d.qset(c.CounterSetID()) == nil:
		return prm.StatusBadParam
	case c.PKeyIndex() >= d.pkeyIndexes() || d.ib == nil && int(c.MyAddrIndex()) >= len(d.gids):
		return prm.StatusIX
	}
	n, ok := d.qpNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	t := d.newDCT(n, c, partners{scq: q, rcq: q, srq: s, qs: d.qset(c.CounterSetID())})
	d.holdTarget(t, 1)
	prm.CreateDCTOut(out).SetDCTN(n)
	return prm.StatusOK
}

// holdTarget counts a target, by 1 or -1, among the users of what its context names.
func (d *Device) holdTarget(t *dct, by int) {
	d.pds[t.context().PD()] += int32(by)
	t.with.rcq.refs += by
	t.with.srq.refs += by
	if t.with.qs != nil {
		t.with.qs.refs += by
	}
}

// cmdDrainDCT ends the connections of a target, which takes no others then, and reports that. What
// initiators have outstanding is not answered.
func cmdDrainDCT(d *Device, in, _ []byte) prm.Status {
	t := d.dct(prm.DrainDCTIn(in).DCTN())
	if t == nil {
		return prm.StatusBadResState
	}
	d.drain(t)
	t.context().SetState(prm.DCTDrained)
	d.events.ofDCT(prm.EventDCTDrained, t.num)
	return prm.StatusOK
}

// cmdDestroyDCT ends a target that was drained (inferred: drivers drain each before).
func cmdDestroyDCT(d *Device, in, _ []byte) prm.Status {
	t := d.dct(prm.DestroyDCTIn(in).DCTN())
	if t == nil || !t.draining {
		return prm.StatusBadResState
	}
	d.holdTarget(t, -1)
	delete(d.targets, t.num)
	d.qpNums.release(t.num)
	return prm.StatusOK
}

func cmdQueryDCT(d *Device, in, out []byte) prm.Status {
	t := d.dct(prm.QueryDCTIn(in).DCTN())
	if t == nil {
		return prm.StatusBadResState
	}
	copy(prm.QueryDCTOut(out).Context(), t.ctx[:])
	return prm.StatusOK
}
