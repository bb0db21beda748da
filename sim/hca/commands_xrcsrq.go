package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// cmdCreateXRCSRQ makes an SRQ of an XRC domain. Its numbers are those of RMPs.
func cmdCreateXRCSRQ(d *Device, in, out []byte) prm.Status {
	m := prm.CreateXRCSRQIn(in)
	c := m.Context()
	log, stride := c.LogSize(), c.LogRQStride()+4
	q := d.cqs.at(c.CQN())
	if c.WQSignature() || c.ContSRQ() || c.BasicCyclicRcvWQE() || c.DBRUmemValid() || m.UmemValid() || c.DBRAddr()%prm.DBRecSize != 0 ||
		!d.hasPD(c.PD()) || !counted(d.xrcds, c.XRCD()) || q == nil ||
		log > uint32(d.p.LogMaxSRQSz) || stride < 5 || 1<<stride > d.p.MaxWQESizeRQ || c.LWM() >= 1<<log && c.LWM() != 0 {
		return prm.StatusBadParam
	}
	r, ok := newRing(m.PAS(), c.LogPageSize(), c.PageOffset(), 1<<stride<<log)
	if !ok {
		return prm.StatusBadParam
	}
	n, ok := d.srqs.numbers.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	s := &srq{num: n, pd: c.PD(), ring: r, stride: 1 << stride, size: 1 << log, dbr: mem.PA(c.DBRAddr()), xrc: &xrcSRQ{xrcd: c.XRCD(), cq: q}}
	copy(s.xrc.ctx[:], c)
	prm.XRCSRQC(s.xrc.ctx[:]).SetState(prm.XRCSRQGood)
	d.srqs.add(s)
	d.pds[s.pd]++
	d.xrcds[s.xrc.xrcd]++
	q.refs++
	s.arm(uint16(c.LWM()))
	prm.CreateXRCSRQOut(out).SetSRQN(n)
	return prm.StatusOK
}

func cmdDestroyXRCSRQ(d *Device, in, _ []byte) prm.Status {
	s := d.srqs.xrc(prm.DestroyXRCSRQIn(in).SRQN())
	if s == nil || s.refs > 0 {
		return prm.StatusBadResState
	}
	d.pds[s.pd]--
	d.xrcds[s.xrc.xrcd]--
	s.xrc.cq.refs--
	d.srqs.remove(s)
	s.wake(len(s.waiters)) // the packets that waited find it unknown
	return prm.StatusOK
}

func cmdQueryXRCSRQ(d *Device, in, out []byte) prm.Status {
	s := d.srqs.xrc(prm.QueryXRCSRQIn(in).SRQN())
	if s == nil {
		return prm.StatusBadResState
	}
	c := prm.QueryXRCSRQOut(out).Context()
	copy(c, s.xrc.ctx[:])
	c.SetLWM(uint32(s.limit))
	c.SetWQECnt(uint32(s.posted - s.taken))
	return prm.StatusOK
}

func cmdArmXRCSRQ(d *Device, in, _ []byte) prm.Status {
	m := prm.ArmXRCSRQIn(in)
	s := d.srqs.xrc(m.SRQN())
	switch {
	case prm.CmdIn(in).OpMod() != prm.ArmXRCSRQMod:
		return prm.StatusBadOp
	case s == nil, s.failed:
		return prm.StatusBadResState
	case m.LWM() >= s.size && m.LWM() != 0:
		return prm.StatusBadParam
	}
	s.arm(uint16(m.LWM()))
	return prm.StatusOK
}
