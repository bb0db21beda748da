package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// Strides of RQs, as powers of two: a data segment, and what a WQE may be long.
const (
	minLogStride = 4
	maxLogStride = 10
)

// noPD is in the context of an RQ that is never to receive anything: Linux has such a one, to which
// tables lead while its queues are closed.
const noPD = 0

// newPacketQueue makes the common part of an SQ or an RQ of the contexts that a driver has sent.
func (d *Device) newPacketQueue(w prm.WQ, cqn, state uint32, pas prm.PAS) (packetQueue, prm.Status) {
	none := packetQueue{}
	c := d.cqs.at(cqn)
	if c == nil || state != prm.PacketQueueRST || w.WQType() != prm.WQTypeCyclic || w.WQSignature() ||
		w.LogWQSz() > logMaxPacketQueue || w.DBRUmemValid() || w.WQUmemValid() || w.DBRAddr()%prm.DBRecSize != 0 {
		return none, prm.StatusBadParam
	}
	r, ok := newRing(pas, w.LogWQPgSz(), w.PageOffset(), 1<<w.LogWQStride()<<w.LogWQSz())
	if !ok {
		return none, prm.StatusBadParam
	}
	n, ok := d.nic.numbers.alloc()
	if !ok {
		return none, prm.StatusLimErr
	}
	q := packetQueue{
		all: &d.nic.packetQueues, num: n, arg: d.nic.word(n), ring: r, size: 1 << w.LogWQSz(), unit: 1 << w.LogWQStride(),
		dbr: mem.PA(w.DBRAddr()), cq: c, user: mkey.User{PD: w.PD(), QPN: n},
	}
	c.refs++
	if w.PD() != noPD {
		d.pds[w.PD()]++
	}
	return q, prm.StatusOK
}

// freePacketQueue gives back what newPacketQueue took.
func (d *Device) freePacketQueue(q *packetQueue) {
	q.forget()
	q.cq.refs--
	if q.user.PD != noPD {
		d.pds[q.user.PD]--
	}
	d.nic.numbers.release(q.num)
}

// canBecome says whether a queue can go from one state to another.
func canBecome(from, to uint32) bool {
	switch to {
	case prm.PacketQueueRST, prm.PacketQueueERR:
		return true
	case prm.PacketQueueRDY:
		return from != prm.PacketQueueERR
	}
	return false
}

func cmdCreateSQ(d *Device, in, out []byte) prm.Status {
	m := prm.CreateSQIn(in)
	c := m.Context()
	w := c.WQ()
	var t *tis // nil: the queue sends nothing, as that for the driver's own work
	if c.TISLstSz() > 0 {
		t = numbered(d.nic.tiss, c.TISNum0())
	}
	if c.TISLstSz() > 1 || (t != nil) != (c.TISLstSz() == 1) || !d.hasPD(w.PD()) || !d.hasUAR(w.UARPage()) || 1<<w.LogWQStride() != prm.WQEBBSize ||
		c.AllowMultiPktSendWQE() || c.RegUMR() || c.AllowSWP() || c.Hairpin() || c.NonWire() || c.TSFormat() != 0 {
		return prm.StatusBadParam
	}
	base, st := d.newPacketQueue(w, c.CQN(), c.State(), m.PAS())
	if st != prm.StatusOK {
		return st
	}
	q := &packetSQ{packetQueue: base, senders: d.nic.senders, tis: t, uar: w.UARPage()}
	q.uidx, q.flush = c.UserIndex(), c.FlushInErrorEn()
	copy(q.ctx[:], c)
	q.useTIS(1)
	d.uarUsers[q.uar]++
	d.nic.senders.sqs = put(d.nic.senders.sqs, q.num, q)
	prm.CreateSQOut(out).SetSQN(q.num)
	return prm.StatusOK
}

// useTIS counts a queue among the users of its TIS; by is 1 or -1.
func (q *packetSQ) useTIS(by int) {
	if q.tis != nil {
		q.tis.users += by
	}
}

func cmdModifySQ(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifySQIn(in)
	q := d.nic.senders.at(m.SQN())
	switch to := m.Context().State(); {
	case q == nil, m.SQState() != q.state, !canBecome(q.state, to):
		return prm.StatusBadResState
	case m.Select()&^prm.ModifySQRateLimit != 0, m.Select() != 0 && m.Context().PacketPacingRateLimitIndex() != 0:
		return prm.StatusBadParam
	default:
		q.setState(to)
		return prm.StatusOK
	}
}

func cmdDestroySQ(d *Device, in, _ []byte) prm.Status {
	q := d.nic.senders.at(prm.DestroySQIn(in).SQN())
	if q == nil {
		return prm.StatusBadResState
	}
	d.freePacketQueue(&q.packetQueue)
	q.useTIS(-1)
	d.uarUsers[q.uar]--
	d.nic.senders.sqs[q.num] = nil
	return prm.StatusOK
}

func cmdQuerySQ(d *Device, in, out []byte) prm.Status {
	q := d.nic.senders.at(prm.QuerySQIn(in).SQN())
	if q == nil {
		return prm.StatusBadResState
	}
	c := prm.QuerySQOut(out).Context()
	copy(c, q.ctx[:])
	c.SetState(q.state)
	c.WQ().SetHWCounter(uint32(q.ci))
	c.WQ().SetSWCounter(uint32(q.pi))
	return prm.StatusOK
}

func cmdCreateRQ(d *Device, in, out []byte) prm.Status {
	m := prm.CreateRQIn(in)
	c := m.Context()
	w := c.WQ()
	set := d.qset(c.CounterSetID())
	if w.PD() != noPD && !d.hasPD(w.PD()) || c.MemRQType() != 0 || c.DelayDropEn() || c.Hairpin() || c.TSFormat() != 0 || w.LogWQStride() < minLogStride || w.LogWQStride() > maxLogStride ||
		set == nil && c.CounterSetID() != 0 {
		return prm.StatusBadParam
	}
	base, st := d.newPacketQueue(w, c.CQN(), c.State(), m.PAS())
	if st != prm.StatusOK {
		return st
	}
	q := &packetRQ{packetQueue: base, receivers: d.nic.receivers, qs: set}
	q.uidx, q.flush = c.UserIndex(), c.FlushInErrorEn()
	if set != nil {
		set.refs++
	}
	copy(q.ctx[:], c)
	d.nic.receivers.rqs = put(d.nic.receivers.rqs, q.num, q)
	prm.CreateRQOut(out).SetRQN(q.num)
	return prm.StatusOK
}

func cmdModifyRQ(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyRQIn(in)
	q, from := d.nic.receivers.at(m.RQN()), m.Context()
	to, sel := from.State(), m.Select()
	if q == nil || m.RQState() != q.state || !canBecome(q.state, to) {
		return prm.StatusBadResState
	}
	set := d.qset(from.CounterSetID())
	if sel&^(prm.ModifyRQVSD|prm.ModifyRQScatterFCS|prm.ModifyRQCounterSet) != 0 || sel&prm.ModifyRQCounterSet != 0 && set == nil && from.CounterSetID() != 0 {
		return prm.StatusBadParam
	}
	c := prm.RQC(q.ctx[:])
	if sel&prm.ModifyRQVSD != 0 {
		c.SetVSD(from.VSD())
	}
	if sel&prm.ModifyRQScatterFCS != 0 {
		c.SetScatterFCS(from.ScatterFCS())
	}
	if sel&prm.ModifyRQCounterSet != 0 {
		q.setCounters(set)
		c.SetCounterSetID(from.CounterSetID())
	}
	if to != q.state {
		q.setState(to)
	}
	return prm.StatusOK
}

// setCounters has a queue count in another set; nil: none.
func (q *packetRQ) setCounters(s *qset) {
	if s != nil {
		s.refs++
	}
	if q.qs != nil {
		q.qs.refs--
	}
	q.qs = s
}

func cmdDestroyRQ(d *Device, in, _ []byte) prm.Status {
	q := d.nic.receivers.at(prm.DestroyRQIn(in).RQN())
	if q == nil || q.users > 0 {
		return prm.StatusBadResState
	}
	q.drop()
	d.freePacketQueue(&q.packetQueue)
	q.setCounters(nil)
	d.nic.receivers.rqs[q.num] = nil
	return prm.StatusOK
}

func cmdQueryRQ(d *Device, in, out []byte) prm.Status {
	q := d.nic.receivers.at(prm.QueryRQIn(in).RQN())
	if q == nil {
		return prm.StatusBadResState
	}
	c := prm.QueryRQOut(out).Context()
	copy(c, q.ctx[:])
	c.SetState(q.state)
	c.WQ().SetHWCounter(uint32(q.ci))
	c.WQ().SetSWCounter(uint32(q.pi))
	return prm.StatusOK
}
