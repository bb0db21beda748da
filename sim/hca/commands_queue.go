package hca

import (
	"github.com/rdmasim/rdmasim/prm"
)

func cmdCreateEQ(d *Device, in, out []byte) prm.Status {
	m := prm.CreateEQIn(in)
	c := m.EQC()
	log := c.LogEQSize()
	if log > uint32(d.p.LogMaxEQSize) || int(c.Intr()) >= d.p.Vectors || !d.hasUAR(c.UARPage()) || c.OI() || c.EC() {
		return prm.StatusBadParam
	}
	r, ok := newRing(m.PAS(), c.LogPageSize(), c.PageOffset(), prm.EQESize<<log)
	if !ok {
		return prm.StatusBadParam
	}
	n, ok := d.events.numbers.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	q := &eq{core: &d.core, num: n, ring: r, size: 1 << log, uar: c.UARPage(), vector: int(c.Intr())}
	copy(q.ctx[:], c)
	for i := range q.mask {
		q.mask[i] = m.EventBitmask(i)
	}
	d.events.eqs = put(d.events.eqs, n, q)
	d.uarUsers[q.uar]++
	prm.CreateEQOut(out).SetEQNumber(n)
	return prm.StatusOK
}

func cmdDestroyEQ(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyEQIn(in).EQNumber()
	q := d.events.at(n)
	if q == nil || q.refs > 0 {
		return prm.StatusBadResState
	}
	d.uarUsers[q.uar]--
	d.events.eqs[n] = nil
	d.events.numbers.release(n)
	return prm.StatusOK
}

func cmdQueryEQ(d *Device, in, out []byte) prm.Status {
	q := d.events.at(prm.QueryEQIn(in).EQNumber())
	if q == nil {
		return prm.StatusBadResState
	}
	o := prm.QueryEQOut(out)
	c := o.EQC()
	copy(c, q.ctx[:])
	c.SetConsumerCounter(q.ci)
	c.SetProducerCounter(q.pi)
	c.SetST(prm.ArmStateFired)
	if q.armed {
		c.SetST(prm.ArmStateArmed)
	}
	return prm.StatusOK
}

func cmdCreateCQ(d *Device, in, out []byte) prm.Status {
	m := prm.CreateCQIn(in)
	c := m.CQC()
	log := c.LogCQSize()
	eq := d.events.at(c.EQN() & 0xff)
	size := prm.CQE64Size
	switch c.CQESz() {
	case prm.CQESz64:
	case prm.CQESz128, prm.CQESz128Pad:
		size = 2 * prm.CQE64Size
	default:
		return prm.StatusBadParam
	}
	if log > uint32(d.p.LogMaxCQSize) || eq == nil || !d.hasUAR(c.UARPage()) || c.CC() {
		return prm.StatusBadParam
	}
	comp, ok := d.cqs.newSession(c, 1<<log)
	if !ok {
		return prm.StatusBadParam
	}
	r, ok := d.queueRing(m.PAS(), c.LogPageSize(), c.PageOffset(), m.CQUmemValid(), m.CQUmemID(), m.CQUmemOffset(), uint64(size)<<log)
	if !ok {
		return prm.StatusBadParam
	}
	dbr, ok := d.record(c.DBRAddr(), c.DBRUmemValid(), c.DBRUmemID())
	if !ok {
		return prm.StatusBadParam
	}
	n, ok := d.cqs.numbers.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	d.cqs.made++
	q := &cq{
		core: &d.core, all: &d.cqs, num: n, arg: d.cqs.made<<24 | uint64(n), ring: r, size: 1 << log, cqe: size,
		dbr: dbr, uar: c.UARPage(), eq: eq, firedSN: -1, comp: comp,
	}
	q.umems = d.usedUmems(m.CQUmemValid(), m.CQUmemID(), c.DBRUmemValid(), c.DBRUmemID())
	q.umems.use(1)
	copy(q.ctx[:], c)
	d.cqs.cqs = put(d.cqs.cqs, n, q)
	eq.refs++
	d.uarUsers[q.uar]++
	prm.CreateCQOut(out).SetCQN(n)
	return prm.StatusOK
}

func cmdDestroyCQ(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyCQIn(in).CQN()
	c := d.cqs.at(n)
	if c == nil || c.refs > 0 {
		return prm.StatusBadResState
	}
	c.eq.refs--
	c.umems.use(-1)
	d.uarUsers[c.uar]--
	d.cqs.cqs[n] = nil
	d.cqs.numbers.release(n)
	return prm.StatusOK
}

func cmdQueryCQ(d *Device, in, out []byte) prm.Status {
	q := d.cqs.at(prm.QueryCQIn(in).CQN())
	if q == nil {
		return prm.StatusBadResState
	}
	c := prm.QueryCQOut(out).CQC()
	copy(c, q.ctx[:])
	c.SetConsumerCounter(q.ci)
	c.SetProducerCounter(q.pi)
	c.SetLastSolicitIndex(q.solicited)
	switch q.arms {
	case armedAny:
		c.SetST(prm.ArmStateArmed)
	case armedSolicited:
		c.SetST(prm.ArmStateSolicited)
	default:
		c.SetST(prm.ArmStateFired)
	}
	return prm.StatusOK
}

// cmdModifyCQ changes the parameters that op_mod 0 selects, or with op_mod 1 the ring.
func cmdModifyCQ(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyCQIn(in)
	q := d.cqs.at(m.CQN())
	if q == nil {
		return prm.StatusBadResState
	}
	switch prm.CmdIn(in).OpMod() {
	case prm.ModifyCQParams:
	case prm.ModifyCQResize:
		return q.resize(m)
	default:
		return prm.StatusBadOp
	}
	sel, from, to := m.FieldSelect(), m.CQC(), prm.CQC(q.ctx[:])
	if sel&^(prm.CQModifyPeriod|prm.CQModifyCount|prm.CQModifyOverrun|prm.CQModifyPeriodMode) != 0 {
		return prm.StatusBadParam
	}
	if sel&prm.CQModifyPeriod != 0 {
		to.SetCQPeriod(from.CQPeriod())
	}
	if sel&prm.CQModifyCount != 0 {
		to.SetCQMaxCount(from.CQMaxCount())
	}
	if sel&prm.CQModifyOverrun != 0 {
		to.SetOI(from.OI())
	}
	if sel&prm.CQModifyPeriodMode != 0 {
		to.SetCQPeriodMode(from.CQPeriodMode())
	}
	q.due = 0
	q.fire() // an event that was held back may be due now
	return prm.StatusOK
}
