package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// driverQueue is a QP of the driver with a CQ of its own and a key for all memory, as ib_mad and
// umr.c make them.
type driverQueue struct {
	cqn, qpn uint32
	lkey     uint32
	ring, cq mem.PA
	record   mem.PA // doorbell records, of the QP and then of the CQ
	logCQ    int
	ci, arms uint32

	cqe [prm.CQE64Size]byte // the completion that next returned
}

// driverCQRecord is where the record of the CQ lies behind that of the QP.
const driverCQRecord = prm.DBRecSize

// driverMemory is memory of a driver's queue.
type driverMemory struct {
	at *mem.PA
	n  uint64
}

// memory is where the rings and the records lie.
func (q *driverQueue) memory(ring uint64) []driverMemory {
	return []driverMemory{{&q.ring, ring}, {&q.cq, prm.CQE64Size << q.logCQ}, {&q.record, prm.PageSize}}
}

// allocate takes memory, in which the CQ and the records are empty.
func (q *driverQueue) allocate(k *call, memory []driverMemory) error {
	for _, x := range memory {
		var err error
		if *x.at, err = k.d.mem.Alloc(x.n, prm.PageSize); err != nil {
			return err
		}
	}
	var e [prm.CQE64Size]byte
	e[prm.CQE64Size-1] = prm.CQEOpOwnInit
	k.d.mem.Fill(q.cq, prm.CQE64Size<<q.logCQ, e[:])
	k.d.mem.Fill(q.record, prm.PageSize, make([]byte, prm.DBRecSize))
	return nil
}

// makeKey makes a local key of the driver's PD, for all memory (ib_alloc_pd).
func (q *driverQueue) makeKey(k *call) error {
	d := k.d
	in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
	d.mkeys++
	c := prm.CreateMKeyIn(in).MKC()
	c.SetAccessMode(prm.MKeyModePA)
	c.SetLength64(true)
	c.SetLR(true)
	c.SetLW(true)
	c.SetPD(d.pdn)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(uint32(d.mkeys))
	if err := k.exec(in, out); err != nil {
		return err
	}
	q.lkey = prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys))
	return nil
}

func (q *driverQueue) makeCQ(k *call) error {
	pages := prm.CQE64Size << q.logCQ / prm.PageSize
	in, out := prm.NewIn(prm.OpCreateCQ, 8*pages), prm.NewOut(prm.OpCreateCQ, 0)
	m := prm.CreateCQIn(in)
	c := m.CQC()
	c.SetLogCQSize(uint32(q.logCQ))
	c.SetUARPage(k.d.uar)
	c.SetEQN(uint32(k.d.eqs[1].eqn))
	c.SetDBRAddr(uint64(q.record) + driverCQRecord)
	fillContiguous(m.PAS(), q.cq, pages)
	if err := k.exec(in, out); err != nil {
		return err
	}
	q.cqn = prm.CreateCQOut(out).CQN()
	return nil
}

// makeQP makes the QP of a service type, for a ring of so many bytes. fill sets what is its own.
func (q *driverQueue) makeQP(k *call, st uint32, ring int, fill func(prm.QPC)) error {
	pages := ring / prm.PageSize
	in, out := prm.NewIn(prm.OpCreateQP, 8*pages), prm.NewOut(prm.OpCreateQP, 0)
	m := prm.CreateQPIn(in)
	c := m.QPC()
	c.SetST(st)
	c.SetPMState(prm.PMStateMigrated)
	c.SetUARPage(k.d.uar)
	c.SetCQNSnd(q.cqn)
	c.SetCQNRcv(q.cqn)
	c.SetUserIndex(noUIDX)
	c.SetDBRAddr(uint64(q.record))
	fill(c)
	fillContiguous(m.PAS(), q.ring, pages)
	if err := k.exec(in, out); err != nil {
		return err
	}
	q.qpn = prm.CreateQPOut(out).QPN()
	return nil
}

func fillContiguous(l prm.PAS, pa mem.PA, pages int) {
	for i := range pages {
		l.Set(i, uint64(pa)+uint64(i)*prm.PageSize)
	}
}

// start takes the QP to RTS (ib_mad_port_start, mlx5r_umr_qp_rst2rts).
func (q *driverQueue) start(k *call, st, qkey uint32) error {
	for _, op := range []prm.Opcode{prm.OpRst2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP} {
		in := prm.NewIn(op, 0)
		m := prm.ModifyQPIn(in)
		m.SetQPN(q.qpn)
		c := m.QPC()
		c.SetST(st)
		c.SetPMState(prm.PMStateMigrated)
		c.SetPD(k.d.pdn)
		c.SetCQNSnd(q.cqn)
		c.SetCQNRcv(q.cqn)
		c.SetQKey(qkey)
		c.SetMTU(uint32(verbs.MTU4096))
		c.SetLogMsgMax(12)
		c.PrimaryPath().SetVHCAPortNum(1)
		if err := k.exec(in, prm.NewOut(op, 0)); err != nil {
			return err
		}
	}
	return nil
}

// next takes the next completion, which is good until the one after it.
func (q *driverQueue) next(d *Device) (c prm.CQE64, ok bool) {
	d.mem.Read(q.cq+mem.PA(q.ci&(1<<q.logCQ-1))*prm.CQE64Size, q.cqe[:])
	c = q.cqe[:]
	if ok = c.Ready(q.ci, 1<<q.logCQ); ok {
		q.ci++
	}
	return c, ok
}

// arm asks for an event of the next completion.
func (q *driverQueue) arm(d *Device) {
	word := prm.MakeArmWord(q.arms, false, q.ci)
	q.arms++
	var rec [prm.DBRecSize]byte
	prm.CQDBRec(rec[:]).SetCI(q.ci)
	prm.CQDBRec(rec[:]).SetArm(word)
	d.mem.Write(q.record+driverCQRecord, rec[:])
	var db [prm.CQArmDoorbellSize]byte
	prm.CQArmDoorbell(db[:]).Set(word, q.cqn)
	d.link.PostNow(uint64(d.uar)*prm.UARPageSize+prm.UARCQArm, db[:])
}
