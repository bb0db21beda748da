package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// packetQP is what a raw packet QP is on the device (mlx5_ib_raw_packet_qp): an SQ with a TIS, an
// RQ with a TIR. One that receives by a table of WQs has the TIR alone.
type packetQP struct {
	sq, rq           packetQueue
	tisn, tirn       uint32
	tirAt            uint64 // where entries of programs find the TIR; 0: none do
	hasSQ, hasRQ     bool
	table            *wqTable // nil: it has queues of its own
	flags            uint32   // of the creation
	sqState, rqState uint32
	flows            int // rules that lead here
}

// packetQueue is an SQ or an RQ.
type packetQueue struct {
	num uint32
	mem *umem
}

// PacketCaps describes what programs may use of Ethernet packets; zero: nothing.
type PacketCaps struct {
	MaxWQ, MaxTables, MaxTableSize uint32 // RQs; tables of them for a hash, and their entries
	Checksums, StripsVLAN, FCS     bool
	MaxLSO                         uint32 // bytes
}

// queueFlags are those that receive queues can have, of flags that programs know them by.
func (p *PacketCaps) queueFlags(cvlan, fcs uint32) (flags uint32) {
	if p.StripsVLAN {
		flags |= cvlan
	}
	if p.FCS {
		flags |= fcs
	}
	return flags
}

// Packets returns what programs may use of Ethernet packets (raw_packet_caps, rss_caps and tso_caps
// of mlx5_ib_query_device).
func (u *Ucontext) Packets() PacketCaps { return u.dev.caps.packets }

// packetCaps reads what the device can do with packets (mlx5_ib's use of eth_net_offloads and of
// its page).
func (c *caps) packetCaps(k *call, g prm.HCACap) error {
	if !g.EthNetOffloads() || !g.NICFlowTable() {
		return nil
	}
	page, err := k.queryCap(prm.CapEth, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	e := prm.EthCap(page)
	c.packets = PacketCaps{
		MaxWQ: 1 << g.LogMaxRQ(), MaxTables: 1 << g.LogMaxRQT(), MaxTableSize: 1 << g.LogMaxRQTSize(), Checksums: e.CsumCap(), StripsVLAN: e.VLANCap(), FCS: e.ScatterFCS(),
		MaxLSO: 1 << e.MaxLSOCap(),
	}
	c.logMaxWQSz = g.LogMaxWQSz()
	page, err = k.queryCap(prm.CapNICFlowTable, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	t := prm.NICFlowTableCap(page)
	c.logFlowTable = min(t.Receive().LogMaxSize(), maxLogFlowTable)
	var memory prm.DeviceMemCap
	if t.Receive().SWOwner() {
		if memory, err = k.queryCap(prm.CapDeviceMem, prm.CapModeCurrent); err != nil {
			return err
		}
	}
	c.steers(t, memory)
	return nil
}

// createPackets is create_raw_packet_qp.
func (q *qp) createPackets(k *call, r *QPReq, uidx uint32) error {
	if q.srq != nil {
		return fmt.Errorf("raw packets into an SRQ: %w", syscall.EOPNOTSUPP)
	}
	if r.SQWQECount == 0 && r.RQWQECount == 0 {
		return fmt.Errorf("raw packet QP that neither sends nor receives: %w", syscall.EINVAL)
	}
	p := &packetQP{flags: r.Flags}
	q.packets = p
	db, err := q.u.dbPages.pin(k, q.u.proc, q.dbAddr)
	if err != nil {
		q.packets = nil
		return err
	}
	if r.SQWQECount > 0 {
		err = p.createSend(k, q, r, uidx, db)
	}
	if err == nil && r.RQWQECount > 0 {
		err = p.createReceive(k, q, r, uidx, db)
	}
	if err != nil {
		q.removePackets(k)
		return err
	}
	q.qpn = p.rq.num
	if p.hasSQ {
		q.qpn = p.sq.num
	}
	return nil
}

// pinRing pins a ring and finds its layout in the terms of a WQ context.
func (q *packetQueue) pinRing(k *call, p *Process, addr, size uint64) (l ring, err error) {
	if q.mem, err = k.pin(p, addr, size, 0); err != nil {
		return l, fmt.Errorf("ring: %w", err)
	}
	return q.mem.queueLayout(1<<32-64, wqPageOffsetBits)
}

// wqPageOffsetBits is how many bits a WQ context has for where a ring begins in its page.
const wqPageOffsetBits = 5

// fillWQ describes a ring of 2^logSize WQEs or blocks of 2^logStride bytes.
func (q *packetQueue) fillWQ(w prm.WQ, l ring, pdn uint32, db uint64, logSize, logStride uint32) {
	w.SetWQType(prm.WQTypeCyclic)
	w.SetPD(pdn)
	w.SetDBRAddr(db)
	w.SetLogWQSz(logSize)
	w.SetLogWQStride(logStride)
	w.SetLogWQPgSz(l.logPageSize())
	w.SetPageOffset(l.pageOffset)
}

// createSend is create_raw_packet_qp_tis and create_raw_packet_qp_sq.
func (p *packetQP) createSend(k *call, q *qp, r *QPReq, uidx uint32, db uint64) error {
	uar, err := q.chooseUAR(r)
	if err != nil {
		return err
	}
	l, err := p.sq.pinRing(k, q.u.proc, r.AccessKey, uint64(r.SQWQECount)*prm.WQEBBSize)
	if err != nil {
		return err
	}
	in, out := prm.NewIn(prm.OpCreateTIS, 0), prm.NewOut(prm.OpCreateTIS, 0)
	prm.CreateTISIn(in).Context().SetTransportDomain(q.u.tdn)
	if err := k.exec(in, out); err != nil {
		return err
	}
	p.tisn = prm.CreateTISOut(out).TISN()
	in, out = prm.NewIn(prm.OpCreateSQ, 8*l.blocks), prm.NewOut(prm.OpCreateSQ, 0)
	m := prm.CreateSQIn(in)
	p.sq.mem.fillPAS(m.PAS(), l.pageSize)
	c := m.Context()
	c.SetFlushInErrorEn(true)
	c.SetMinWQEInlineMode(prm.WQEInlineNone)
	c.SetUserIndex(uidx)
	c.SetCQN(q.nums.sendCQ)
	c.SetTISLstSz(1)
	c.SetTISNum0(p.tisn)
	c.WQ().SetUARPage(uar)
	p.sq.fillWQ(c.WQ(), l, q.nums.pd, db, uint32(bits.TrailingZeros32(r.SQWQECount)), uint32(bits.TrailingZeros(prm.WQEBBSize)))
	if err := k.exec(in, out); err != nil {
		return err
	}
	p.sq.num, p.hasSQ = prm.CreateSQOut(out).SQN(), true
	return nil
}

// createReceive is create_raw_packet_qp_rq and create_raw_packet_qp_tir.
func (p *packetQP) createReceive(k *call, q *qp, r *QPReq, uidx uint32, db uint64) error {
	x := rqReq{addr: r.BufAddr, db: db, count: r.RQWQECount, shift: r.RQWQEShift, uidx: uidx, cqn: q.nums.recvCQ, pdn: q.nums.pd,
		stripped: p.flags&qpCVLANStripping != 0, scatterFCS: p.flags&qpScatterFCS != 0}
	if err := p.rq.create(k, q.u, x); err != nil {
		return err
	}
	p.hasRQ = true
	in, out := prm.NewIn(prm.OpCreateTIR, 0), prm.NewOut(prm.OpCreateTIR, 0)
	c := prm.CreateTIRIn(in).Context()
	c.SetDispType(prm.TIRDirect)
	c.SetInlineRQN(p.rq.num)
	c.SetTransportDomain(q.u.tdn)
	if err := k.exec(in, out); err != nil {
		return err
	}
	p.tirn = prm.CreateTIROut(out).TIRN()
	if k.d.caps.steering.programs {
		p.tirAt = prm.CreateTIROut(out).ICMAddress()
	}
	return nil
}

// rqReq is what an RQ is made of.
type rqReq struct {
	addr, db             uint64
	count, shift         uint32
	uidx, cqn, pdn       uint32
	stripped, scatterFCS bool
}

// create makes an RQ in state RESET.
func (q *packetQueue) create(k *call, u *Ucontext, r rqReq) error {
	l, err := q.pinRing(k, u.proc, r.addr, uint64(r.count)<<r.shift)
	if err != nil {
		return err
	}
	in, out := prm.NewIn(prm.OpCreateRQ, 8*l.blocks), prm.NewOut(prm.OpCreateRQ, 0)
	m := prm.CreateRQIn(in)
	q.mem.fillPAS(m.PAS(), l.pageSize)
	c := m.Context()
	c.SetVSD(!r.stripped)
	c.SetScatterFCS(r.scatterFCS)
	c.SetFlushInErrorEn(true)
	c.SetUserIndex(r.uidx)
	c.SetCQN(r.cqn)
	q.fillWQ(c.WQ(), l, r.pdn, r.db, uint32(bits.Len32(r.count)-1), r.shift)
	if err := k.exec(in, out); err != nil {
		return err
	}
	q.num = prm.CreateRQOut(out).RQN()
	return nil
}

// removePackets is destroy_raw_packet_qp; it serves what a creation that failed has left, too.
func (q *qp) removePackets(k *call) {
	p := q.packets
	if p.tirn != 0 {
		in := prm.NewIn(prm.OpDestroyTIR, 0)
		prm.DestroyTIRIn(in).SetTIRN(p.tirn)
		k.mustDestroy(in)
	}
	if p.table != nil {
		p.table.refs--
		return
	}
	if p.hasRQ {
		p.rq.destroy(k)
	}
	if p.hasSQ {
		in := prm.NewIn(prm.OpDestroySQ, 0)
		prm.DestroySQIn(in).SetSQN(p.sq.num)
		k.mustDestroy(in)
	}
	if p.tisn != 0 {
		in := prm.NewIn(prm.OpDestroyTIS, 0)
		prm.DestroyTISIn(in).SetTISN(p.tisn)
		k.mustDestroy(in)
	}
	k.unpin(p.rq.mem)
	k.unpin(p.sq.mem)
	q.u.dbPages.unpin(k, q.dbAddr)
}

// destroy takes an RQ from the device.
func (q *packetQueue) destroy(k *call) {
	in := prm.NewIn(prm.OpDestroyRQ, 0)
	prm.DestroyRQIn(in).SetRQN(q.num)
	k.mustDestroy(in)
}

// modifyRQ sends an RQ from one state to another, with the counters of the driver when it comes to
// life.
func (q *packetQueue) modifyRQ(k *call, from, to uint32) error {
	in := prm.NewIn(prm.OpModifyRQ, 0)
	m := prm.ModifyRQIn(in)
	m.SetRQN(q.num)
	m.SetRQState(from)
	m.Context().SetState(to)
	if to == prm.PacketQueueRDY && k.d.qcnt != 0 {
		m.SetSelect(prm.ModifyRQCounterSet)
		m.Context().SetCounterSetID(k.d.qcnt)
	}
	return k.exec(in, prm.NewOut(prm.OpModifyRQ, 0))
}

// modifySQ sends the SQ from one state to another.
func (q *packetQueue) modifySQ(k *call, from, to uint32) error {
	in := prm.NewIn(prm.OpModifySQ, 0)
	m := prm.ModifySQIn(in)
	m.SetSQN(q.num)
	m.SetSQState(from)
	m.Context().SetState(to)
	return k.exec(in, prm.NewOut(prm.OpModifySQ, 0))
}

// destroyPackets takes the QP from the device.
func (q *qp) destroyPackets(k *call) {
	q.removePackets(k)
	if q.bfreg != InvalidBFReg {
		q.u.bfregs.Free(q.bfreg)
	}
	if q.qpn != 0 {
		delete(q.dev.qps, q.qpn)
	}
	q.u.async.forget(&q.asyncSeen)
	q.dev.res.QP--
}

// packets is modify_raw_packet_qp. EINVAL: a rate limit, which the device does not have, or a QP on
// a table of WQs.
func (m *modify) packets(k *call) error {
	p := m.q.packets
	if p.table != nil {
		return fmt.Errorf("a QP that receives by a table of WQs has no states: %w", syscall.EOPNOTSUPP)
	}
	if m.has(mRate) {
		return fmt.Errorf("rate limit: %w", syscall.EINVAL)
	}
	if err := p.learn(k); err != nil {
		return err
	}
	sq, rq := p.sqState, p.rqState
	switch m.to {
	case verbs.QPSReset:
		sq, rq = prm.PacketQueueRST, prm.PacketQueueRST
	case verbs.QPSErr:
		sq, rq = prm.PacketQueueERR, prm.PacketQueueERR
	case verbs.QPSInit:
		rq = prm.PacketQueueRDY
	case verbs.QPSRTR:
	case verbs.QPSRTS:
		sq = prm.PacketQueueRDY
	default:
		return fmt.Errorf("%v to %v of a raw packet QP: %w", m.from, m.to, syscall.EINVAL)
	}
	if p.hasRQ && rq != p.rqState {
		if err := p.rq.modifyRQ(k, p.rqState, rq); err != nil {
			return err
		}
		p.rqState = rq
	}
	if p.hasSQ && sq != p.sqState {
		if err := p.sq.modifySQ(k, p.sqState, sq); err != nil {
			return err
		}
		p.sqState = sq
	}
	m.q.state = m.to
	if m.has(mPort) {
		m.q.port = m.a.Port
	}
	return nil
}

// learn asks the device for the states of the queues, which change with errors.
func (p *packetQP) learn(k *call) error {
	if p.hasSQ {
		in, out := prm.NewIn(prm.OpQuerySQ, 0), prm.NewOut(prm.OpQuerySQ, 0)
		prm.QuerySQIn(in).SetSQN(p.sq.num)
		if err := k.exec(in, out); err != nil {
			return err
		}
		p.sqState = prm.QuerySQOut(out).Context().State()
	}
	if p.hasRQ {
		in, out := prm.NewIn(prm.OpQueryRQ, 0), prm.NewOut(prm.OpQueryRQ, 0)
		prm.QueryRQIn(in).SetRQN(p.rq.num)
		if err := k.exec(in, out); err != nil {
			return err
		}
		p.rqState = prm.QueryRQOut(out).Context().State()
	}
	return nil
}

// queryPackets is query_raw_packet_qp_state and what mlx5_ib_query_qp adds.
func (q *qp) queryPackets(k *call) (a verbs.QPAttr, err error) {
	p := q.packets
	if p.table != nil {
		return a, fmt.Errorf("query of a QP that receives by a table of WQs: %w", syscall.EOPNOTSUPP)
	}
	if err := p.learn(k); err != nil {
		return a, err
	}
	sqFailed, rqFailed := p.hasSQ && p.sqState == prm.PacketQueueERR, p.hasRQ && p.rqState == prm.PacketQueueERR
	switch {
	case rqFailed || sqFailed && !p.hasRQ:
		q.state = verbs.QPSErr
	case sqFailed:
		q.state = verbs.QPSSQE
	}
	a = verbs.QPAttr{State: q.state, CurState: q.state, Port: 1, Cap: verbs.QPCap{MaxRecvWR: q.rqCount, MaxInline: q.inline}}
	if q.rqCount > 0 {
		a.Cap.MaxRecvSGE = 1 << q.rqShift / 16
	}
	return a, nil
}
