package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// creatable says whether the device has a service type, and the QP what it needs: QP0 and QP1 are
// those of a port, QP0 of an InfiniBand port; the queue of a driver's UMRs has no receive queue,
// and its PD comes later. Other types are not modelled.
func (d *Device) creatable(c prm.QPC) bool {
	switch c.ST() {
	case prm.STRC, prm.STUC, prm.STUD, prm.STQP1:
		return d.hasPD(c.PD())
	case prm.STDCI:
		return d.p.DCT && d.hasPD(c.PD()) && !c.NoSQ()
	case prm.STXRC:
		return d.hasPD(c.PD()) && counted(d.xrcds, c.XRCD())
	case prm.STQP0:
		return d.ib != nil && d.hasPD(c.PD())
	case prm.STRegUMR:
		return (c.PD() == 0 || d.hasPD(c.PD())) && c.RQType() == prm.RQTypeNone && !c.NoSQ()
	}
	return false
}

// holdsStreams says whether the device has the streams that a context asks for.
func (d *Device) holdsStreams(c prm.QPC) bool {
	limit := uint32(d.p.DCIStreams)
	return c.LogNumDCIStreamChannels() <= limit && c.LogNumDCIErroredStreams() <= limit &&
		(c.ST() == prm.STDCI || c.LogNumDCIStreamChannels() == 0 && c.LogNumDCIErroredStreams() == 0)
}

// receivable says whether there is what a QP's receives are to come from. XRC has no receive queue:
// a target must name an XRC SRQ, and an initiator may, as the driver does with a spare one (mlx5_ib
// qp.c).
func (d *Device) receivable(c prm.QPC) bool {
	xrc := c.ST() == prm.STXRC
	switch c.RQType() {
	case prm.RQTypeRegular:
		return !xrc && c.ST() != prm.STDCI
	case prm.RQTypeNone:
		return !xrc || !c.NoSQ()
	case prm.RQTypeSRQ:
		if xrc {
			return d.srqs.xrc(c.SRQN()) != nil
		}
		return d.rmp(c.SRQN()) != nil
	}
	return false
}

// rings says whether a QP has doorbells, and so a UAR page: a target of XRC has no queue.
func rings(c prm.QPC) bool { return c.ST() != prm.STXRC || !c.NoSQ() }

// specialAt is the place of QP0 or QP1 in the table of them, for these service types.
func (d *Device) specialAt(c prm.QPC) (at **qp, ok bool) {
	switch c.ST() {
	case prm.STQP0:
		return &d.special[0], true
	case prm.STQP1:
		return &d.special[gsiQPN], true
	}
	return nil, false
}

// cmdCreateQP makes a QP of a type that is modelled.
func cmdCreateQP(d *Device, in, out []byte) prm.Status {
	m := prm.CreateQPIn(in)
	c := m.QPC()
	g := d.fw.general()
	rqType := c.RQType()
	bad := !d.creatable(c) || !d.receivable(c) || !d.holdsStreams(c) ||
		rings(c) && !d.hasUAR(c.UARPage()) || d.cqs.at(c.CQNSnd()) == nil || d.cqs.at(c.CQNRcv()) == nil ||
		c.NoSQ() && c.LogSQSize() != 0 || c.LogSQSize() > g.LogMaxQPSz() ||
		c.CounterSetID() != 0 && d.qset(c.CounterSetID()) == nil
	if bad {
		return prm.StatusBadParam
	}
	special, ok := d.specialAt(c)
	if ok && *special != nil {
		return prm.StatusBadRes // inferred: the port has one of each
	}
	bytes := uint64(0)
	if rqType == prm.RQTypeRegular {
		if c.LogRQSize() > g.LogMaxQPSz() || 16<<c.LogRQStride() > d.p.MaxWQESizeRQ {
			return prm.StatusBadParam
		}
		bytes += 16 << c.LogRQStride() << c.LogRQSize()
	}
	if !c.NoSQ() {
		bytes += prm.WQEBBSize << c.LogSQSize()
	}
	r := ring{}
	if bytes > 0 {
		if r, ok = d.queueRing(m.PAS(), c.LogPageSize(), c.PageOffset(), m.WQUmemValid(), m.WQUmemID(), m.WQUmemOffset(), bytes); !ok {
			return prm.StatusBadParam
		}
	}
	umems := d.usedUmems(bytes > 0 && m.WQUmemValid(), m.WQUmemID(), c.DBRUmemValid(), c.DBRUmemID())
	dbr, ok := d.record(c.DBRAddr(), c.DBRUmemValid(), c.DBRUmemID())
	if !ok {
		return prm.StatusBadParam
	}
	if c.DBRUmemValid() { // from here on the record is where any other is
		c = prm.QPC(slices.Clone(c))
		c.SetDBRAddr(uint64(dbr))
	}
	n, ok := d.qpNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	q := d.newQP(n, c, r, d.partnersOf(c))
	if q.st == prm.STXRC {
		q.joinDomain(d.srqOf(c), &d.srqs)
	}
	d.bySlot = put(d.bySlot, d.qpSlot(n), q)
	if special != nil {
		*special = q
	}
	q.umems = umems
	d.holdPartners(q, 1)
	prm.CreateQPOut(out).SetQPN(n)
	return prm.StatusOK
}

func cmdDestroyQP(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyQPIn(in).QPN()
	q := d.queue(n)
	if q == nil || q.joined > 0 {
		return prm.StatusBadResState
	}
	q.stop()
	if special, ok := d.specialAt(q.context()); ok {
		*special = nil
	}
	d.holdPartners(q, -1)
	q.state = prm.QPStateRST
	d.bySlot[d.qpSlot(n)] = nil
	d.qpNums.release(n)
	return prm.StatusOK
}

// holdPartners counts a QP, by 1 or -1, among the users of what its context names.
func (d *Device) holdPartners(q *qp, by int) {
	c := q.context()
	q.umems.use(by)
	if c.PD() != 0 {
		d.pds[c.PD()] += int32(by)
	}
	if rings(c) {
		d.uarUsers[q.uar] += int32(by)
	}
	if q.st == prm.STXRC && !d.breaks(rule.DomainWithQPsIsBusy) {
		d.xrcds[c.XRCD()] += int32(by)
	}
	q.scq.refs += by
	q.rcq.refs += by
	if s := d.srqOf(c); s != nil {
		s.refs += by
	}
	if q.qs != nil {
		q.qs.refs += by
	}
}

// srqOf is the SRQ that a context names, or nil.
func (d *Device) srqOf(c prm.QPC) *srq {
	if c.RQType() != prm.RQTypeSRQ {
		return nil
	}
	return d.srqs.at(c.SRQN())
}

// partnersOf finds what a QP is made with, which was checked.
func (d *Device) partnersOf(c prm.QPC) partners {
	with := partners{scq: d.cqs.at(c.CQNSnd()), rcq: d.cqs.at(c.CQNRcv()), qs: d.qset(c.CounterSetID())}
	if c.ST() != prm.STXRC {
		with.srq = d.srqOf(c)
	}
	return with
}

// cmdQueryQP answers with the live context and, as far as there is room, the pages of the ring.
func cmdQueryQP(d *Device, in, out []byte) prm.Status {
	m := prm.QueryQPIn(in)
	q := d.queue(m.QPN())
	switch {
	case q == nil:
		return prm.StatusBadResState
	case m.QPCExt():
		return prm.StatusBadParam
	}
	o := prm.QueryQPOut(out)
	c, pas := o.QPC(), o.PAS()
	copy(c, q.ctx[:])
	for i, pa := range q.setup.ring.pages[:min(len(q.setup.ring.pages), pas.Count())] {
		pas.Set(i, uint64(pa))
	}
	q.requester.report(c)
	q.responder.report(c)
	return prm.StatusOK
}

// queue is the QP with a number that a driver may name, or nil: a DCR is none.
func (d *Device) queue(n uint32) *qp {
	if q := d.qpn(n); q != nil && q.st != prm.STDCT {
		return q
	}
	return nil
}
