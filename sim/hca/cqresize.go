package hca

import "github.com/rdmasim/rdmasim/prm"

// resize is MODIFY_CQ with op_mod RESIZE (mlx5_ib_resize_cq, hw/mlx5/cq.c): an entry with opcode
// RESIZE is the last in the old ring, and what follows goes to the new one. Software
// moves the entries that lie before it one place up, so every index of the CQ counts
// one more from here on.
//
// The new ring must hold the outstanding entries and the place that a CQ never uses;
// so must the old one, for the RESIZE entry.
func (c *cq) resize(m prm.ModifyCQIn) prm.Status {
	const fields = prm.CQResizeLogSize | prm.CQResizePageOff | prm.CQResizePageSize
	from := m.CQC()
	log := from.LogCQSize()
	if m.FieldSelect() != fields || log > uint32(c.p.LogMaxCQSize) || m.CQUmemValid() ||
		(from.CQESz() == prm.CQESz64) != (c.cqe == prm.CQE64Size) {
		return prm.StatusBadParam
	}
	r, ok := newRing(m.PAS(), from.LogPageSize(), from.PageOffset(), uint64(c.cqe)<<log)
	if !ok {
		return prm.StatusBadParam
	}
	if c.failed {
		return prm.StatusBadResState
	}
	c.settle()
	var rec [prm.DBRecSize]byte
	c.bus.PeekDMA(c.dbr, rec[:])
	c.consumed(prm.CQDBRec(rec[:]).CI())
	outstanding := c.used() + uint32(len(c.pending)/c.cqe)
	if outstanding >= 1<<log || c.used() >= c.size {
		return prm.StatusBadSizeOutsCQEs
	}
	c.mark()
	c.ring, c.size = r, 1<<log
	to := prm.CQC(c.ctx[:])
	to.SetLogCQSize(log)
	to.SetLogPageSize(from.LogPageSize())
	to.SetPageOffset(from.PageOffset())
	c.c.CQResizes++
	return prm.StatusOK
}

// mark writes the RESIZE entry. It is no completion: it fires nothing, and what the CQ
// remembers of entries before it moves up with them.
func (c *cq) mark() {
	b := c.all.entry[:c.cqe]
	clear(b)
	e := prm.CQE64(b[c.cqe-prm.CQE64Size:])
	e.SetOpOwn(prm.CQEResizeCQ, prm.CQEFormatPlain, false, prm.CQEOwner(c.pi, c.size))
	pa, _ := c.ring.at(uint64(c.pi&(c.size-1))*uint64(c.cqe), c.cqe)
	c.bus.WriteDMA(pa, b)
	for _, i := range []*uint32{&c.pi, &c.ci, &c.solicited, &c.armCI, &c.notified} {
		*i = (*i + 1) & queueIndexMask
	}
}
