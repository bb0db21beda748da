package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

func cmdCreateRMP(d *Device, in, out []byte) prm.Status {
	m := prm.CreateRMPIn(in)
	c := m.RMPC()
	w := c.WQ()
	log, stride := w.LogWQSz(), w.LogWQStride()
	if c.State() != prm.RMPStateReady || c.BasicCyclicRcvWQE() || w.WQType() != prm.WQTypeLinkedList || w.WQSignature() ||
		!d.hasPD(w.PD()) || w.DBRUmemValid() || w.WQUmemValid() || w.DBRAddr()%prm.DBRecSize != 0 ||
		log > uint32(d.p.LogMaxSRQSz) || stride < 5 || 1<<stride > d.p.MaxWQESizeRQ || w.LWM() >= 1<<log && w.LWM() != 0 {
		return prm.StatusBadParam
	}
	r, ok := newRing(m.PAS(), w.LogWQPgSz(), w.PageOffset(), 1<<stride<<log)
	if !ok {
		return prm.StatusBadParam
	}
	n, ok := d.srqs.numbers.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	s := &srq{num: n, pd: w.PD(), ring: r, stride: 1 << stride, size: 1 << log, dbr: mem.PA(w.DBRAddr())}
	copy(s.ctx[:], c)
	d.srqs.add(s)
	d.pds[s.pd]++
	s.arm(uint16(w.LWM()))
	prm.CreateRMPOut(out).SetRMPN(n)
	return prm.StatusOK
}

// rmp is the RMP with a number, or nil.
func (d *Device) rmp(n uint32) *srq {
	if s := d.srqs.at(n); s != nil && s.xrc == nil {
		return s
	}
	return nil
}

func cmdModifyRMP(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyRMPIn(in)
	s := d.rmp(m.RMPN())
	switch {
	case s == nil, s.failed:
		return prm.StatusBadResState
	case m.RMPState() != prm.RMPStateReady || m.RMPC().State() != prm.RMPStateReady:
		return prm.StatusBadParam
	case m.SelectLWM() && m.RMPC().WQ().LWM() >= s.size && m.RMPC().WQ().LWM() != 0:
		return prm.StatusBadParam
	}
	if m.SelectLWM() {
		s.arm(uint16(m.RMPC().WQ().LWM()))
	}
	return prm.StatusOK
}

func cmdDestroyRMP(d *Device, in, _ []byte) prm.Status {
	n := prm.DestroyRMPIn(in).RMPN()
	s := d.rmp(n)
	if s == nil || s.refs > 0 {
		return prm.StatusBadResState
	}
	d.pds[s.pd]--
	d.srqs.remove(s)
	return prm.StatusOK
}

func cmdQueryRMP(d *Device, in, out []byte) prm.Status {
	s := d.rmp(prm.QueryRMPIn(in).RMPN())
	if s == nil {
		return prm.StatusBadResState
	}
	c := prm.QueryRMPOut(out).RMPC()
	copy(c, s.ctx[:])
	c.WQ().SetLWM(uint32(s.limit))
	c.WQ().SetHWCounter(uint32(s.taken))
	c.WQ().SetSWCounter(uint32(s.posted))
	return prm.StatusOK
}
