package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// ackReqFreq is what the driver asks in every transition: an acknowledgement at the
// latest after 2^8 packets (MLX5_IB_ACK_REQ_FREQ).
const ackReqFreq = 8

// setQKeyPrivileged marks a Q_Key that only privileged processes may set.
const setQKeyPrivileged = 1 << 31

// ModifyQP checks what uverbs, ib_core and mlx5_ib check, in their order, then sends
// the transition's command. EOPNOTSUPP: an attribute bit that nobody knows. EPERM: a
// privileged Q_Key. ENODATA: a source GID index whose slot is empty. ETIMEDOUT: a
// destination whose Ethernet address nobody answers for. EINVAL: everything else, the
// device's refusal included; RTS to SQD has no command on mlx5 (Params.SQD).
func (u *Ucontext) ModifyQP(c Caller, h Handle, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return u.do(c, func(k *call) error {
		if mask&^knownMask != 0 {
			return fmt.Errorf("modify QP: attribute mask %#x: %w", uint32(mask), syscall.EOPNOTSUPP)
		}
		q, err := lookup[*qp](u, h, "QP")
		if err != nil {
			return err
		}
		m := modify{q: q, a: *a, mask: mask}
		if err := m.run(k); err != nil {
			return fmt.Errorf("modify QP %#x (%v): %w", q.qpn, q.state, err)
		}
		return nil
	})
}

// modify is one transition on its way to the device. The attributes are a copy: the
// kernel cuts and resolves some.
type modify struct {
	q        *qp
	a        verbs.QPAttr
	mask     verbs.QPAttrMask
	from, to verbs.QPState
	sgid     *gidEntry
	dmac     MAC
}

func (m *modify) run(k *call) error {
	if err := m.uverbs(); err != nil {
		return err
	}
	if err := m.core(k); err != nil {
		return err
	}
	if err := m.driver(k.d); err != nil {
		return err
	}
	if m.from == m.to && m.from == verbs.QPSReset {
		return nil
	}
	return m.send(k)
}

func (m *modify) has(bit verbs.QPAttrMask) bool { return m.mask&bit != 0 }

func (m *modify) badPort(p uint8) error {
	return fmt.Errorf("port %d: %w", p, syscall.EINVAL)
}

// uverbs is modify_qp of uverbs_cmd.c.
func (m *modify) uverbs() error {
	q, a := m.q, &m.a
	ports := uint8(q.u.dev.caps.ports)
	valid := func(p uint8) bool { return p >= 1 && p <= ports }
	if m.has(mPort) && !valid(a.Port) {
		return m.badPort(a.Port)
	}
	if m.has(mAV) {
		if !valid(a.AH.Port) {
			return m.badPort(a.AH.Port)
		}
		switch {
		case m.has(mState) && a.State == verbs.QPSRTR:
			if a.AH.Port != q.port {
				return fmt.Errorf("address of port %d, QP of port %d: %w", a.AH.Port, q.port, syscall.EINVAL)
			}
		case m.has(mPort):
			if a.Port != a.AH.Port {
				return fmt.Errorf("address of port %d, port %d: %w", a.AH.Port, a.Port, syscall.EINVAL)
			}
		default:
			m.mask |= mPort
			a.Port = a.AH.Port
		}
	}
	if m.has(mAlt) && (!valid(a.AltPort) || !valid(a.AltAH.Port) || a.AltPort != a.AltAH.Port) {
		return m.badPort(a.AltPort)
	}
	if m.has(mCur) && a.CurState > verbs.QPSErr || m.has(mState) && a.State > verbs.QPSErr {
		return fmt.Errorf("state %d or %d: %w", a.CurState, a.State, syscall.EINVAL)
	}
	if m.has(mQKey) && a.QKey&setQKeyPrivileged != 0 && !q.u.proc.NetRaw {
		return fmt.Errorf("privileged Q_Key %#x: %w", a.QKey, syscall.EPERM)
	}
	switch q.svc { // modify_qp_mask
	case svcXRCSend:
		m.mask &^= mDestRd | mRNRTimer
	case svcXRCRecv:
		m.mask &^= mRdAtom | mRetry | mRNRRetry
	}
	return nil
}

// core is _ib_modify_qp: it resolves addresses and cuts PSNs to 24 bits.
func (m *modify) core(k *call) error {
	a := &m.a
	if m.has(mAV) {
		sgid, err := k.d.checkAH(&a.AH)
		if err != nil {
			return err
		}
		m.sgid = sgid
		if m.q.svc != svcUD && m.q.svc != svcRaw && !k.d.caps.ib {
			mac, hops, err := k.resolve(sgid, a.AH.GRH.DGID)
			if err != nil {
				return err
			}
			m.dmac = mac
			if hops != 0 {
				a.AH.GRH.HopLimit = hops
			}
		}
	}
	if m.has(mAlt) {
		if _, err := k.d.checkAH(&a.AltAH); err != nil {
			return err
		}
		if !k.d.caps.ib {
			return fmt.Errorf("alternate path on RoCE: %w", syscall.EINVAL)
		}
	}
	a.RQPSN &= 0xffffff
	a.SQPSN &= 0xffffff
	return nil
}

// checkAH is rdma_fill_sgid_attr: a global route is a must on RoCE. Without one there is
// no entry.
func (d *Device) checkAH(ah *verbs.AHAttr) (*gidEntry, error) {
	if ah.Port < 1 || int(ah.Port) > d.caps.ports {
		return nil, fmt.Errorf("address of port %d: %w", ah.Port, syscall.EINVAL)
	}
	if !ah.IsGlobal && d.caps.ib {
		return nil, nil
	}
	if !ah.IsGlobal {
		return nil, fmt.Errorf("address without global route on RoCE: %w", syscall.EINVAL)
	}
	return d.gidAt(int(ah.GRH.SGIDIndex))
}

// driver is mlx5_ib_modify_qp up to the command.
func (m *modify) driver(d *Device) error {
	q, a := m.q, &m.a
	m.from = q.state
	if m.has(mCur) {
		m.from = a.CurState
	}
	m.to = m.from
	if m.has(mState) {
		m.to = a.State
	}
	if !modifyIsOK(m.from, m.to, q.svc, m.mask) {
		return fmt.Errorf("%v to %v with attributes %#x: %w", m.from, m.to, uint32(m.mask), syscall.EINVAL)
	}
	if m.has(mAlt) {
		return fmt.Errorf("automatic path migration is not modelled: %w", syscall.EOPNOTSUPP)
	}
	if m.has(mPKey) && int(a.PKeyIndex) >= d.caps.pkeys {
		return fmt.Errorf("P_Key index %d of %d: %w", a.PKeyIndex, d.caps.pkeys, syscall.EINVAL)
	}
	if m.has(mRdAtom) && int(a.MaxRdAtomic) > 1<<d.caps.logRARes {
		return fmt.Errorf("max_rd_atomic %d: %w", a.MaxRdAtomic, syscall.EINVAL)
	}
	if m.has(mDestRd) && int(a.MaxDestRdAtomic) > 1<<d.caps.logRAReq {
		return fmt.Errorf("max_dest_rd_atomic %d: %w", a.MaxDestRdAtomic, syscall.EINVAL)
	}
	return nil
}

// transitionOp is optab of __mlx5_ib_modify_qp; 0: there is no command. sqd adds those
// that drain a send queue, which mlx5_ib does not have.
func transitionOp(from, to verbs.QPState, sqd bool) prm.Opcode {
	switch {
	case to == verbs.QPSReset:
		return prm.Op2RstQP
	case to == verbs.QPSErr:
		return prm.Op2ErrQP
	case from == verbs.QPSReset && to == verbs.QPSInit:
		return prm.OpRst2InitQP
	case from == verbs.QPSInit && to == verbs.QPSInit:
		return prm.OpInit2InitQP
	case from == verbs.QPSInit && to == verbs.QPSRTR:
		return prm.OpInit2RTRQP
	case from == verbs.QPSRTR && to == verbs.QPSRTS:
		return prm.OpRTR2RTSQP
	case from == verbs.QPSRTS && to == verbs.QPSRTS:
		return prm.OpRTS2RTSQP
	case from == verbs.QPSSQD && to == verbs.QPSRTS:
		return prm.OpSQDRTSQP
	case from == verbs.QPSSQE && to == verbs.QPSRTS:
		return prm.OpSQErr2RTSQP
	case sqd && from == verbs.QPSRTS && to == verbs.QPSSQD:
		return prm.OpRTS2SQDQP
	case sqd && from == verbs.QPSSQD && to == verbs.QPSSQD:
		return prm.OpSQD2SQDQP
	}
	return 0
}

// send makes and sends the command, and remembers what the driver remembers.
func (m *modify) send(k *call) error {
	q, a := m.q, &m.a
	ctx := make([]byte, prm.QPCSize)
	if err := m.fill(prm.QPC(ctx), k.d); err != nil {
		return err
	}
	op := transitionOp(m.from, m.to, k.d.p.SQD)
	if op == 0 {
		return fmt.Errorf("%v to %v has no command on mlx5: %w", m.from, m.to, syscall.EINVAL)
	}
	in := prm.NewIn(op, 0)
	switch op {
	case prm.Op2RstQP:
		prm.Cmd2RstQPIn(in).SetQPN(q.qpn)
	case prm.Op2ErrQP:
		prm.Cmd2ErrQPIn(in).SetQPN(q.qpn)
	default:
		req := prm.ModifyQPIn(in)
		req.SetQPN(q.qpn)
		req.SetOptParamMask(optParams(m.mask) & optAllowed(op, q.svc))
		copy(req.QPC(), ctx)
		if op == prm.OpRTS2SQDQP && m.has(mSQDEvent) && a.EnSQDAsyncNotify {
			prm.CmdIn(in).SetOpMod(1)
		}
	}
	if err := k.exec(in, prm.NewOut(op, 0)); err != nil {
		return err
	}
	q.state = m.to
	if m.has(mAccess) {
		q.access = a.Access
	}
	if m.has(mDestRd) {
		q.respDepth = a.MaxDestRdAtomic
	}
	if m.has(mPort) {
		q.port = a.Port
	}
	return nil
}

// fill translates the attributes that are given into the context; the rest is zero.
func (m *modify) fill(c prm.QPC, d *Device) error {
	q, a := m.q, &m.a
	c.SetST(q.serviceType())
	c.SetPMState(prm.PMStateMigrated)
	if m.has(mPathMig) {
		c.SetPMState(pmState(a.PathMigState))
	}
	switch {
	case q.svc == svcUD:
		c.SetMTU(uint32(verbs.MTU4096))
		c.SetLogMsgMax(12)
	case m.has(mMTU):
		if a.PathMTU < verbs.MTU256 || a.PathMTU > verbs.MTU4096 {
			return fmt.Errorf("path MTU %d: %w", a.PathMTU, syscall.EINVAL)
		}
		c.SetMTU(uint32(a.PathMTU))
		c.SetLogMsgMax(d.caps.logMaxMsg)
	}
	c.SetRemoteQPN(given(m, mDestQPN, a.DestQPN))
	if err := m.fillPath(c.PrimaryPath(), d); err != nil {
		return err
	}
	c.SetPD(q.pd.pdn)
	c.SetCQNSnd(q.sendCQ.cqn)
	c.SetCQNRcv(q.recvCQ.cqn)
	c.SetLogAckReqFreq(ackReqFreq)
	c.SetRNRRetry(given(m, mRNRRetry, uint32(a.RNRRetry)))
	c.SetRetryCount(given(m, mRetry, uint32(a.RetryCnt)))
	c.SetLogSRAMax(given(m, mRdAtom, logDepth(a.MaxRdAtomic)))
	c.SetLogRRAMax(given(m, mDestRd, logDepth(a.MaxDestRdAtomic)))
	c.SetNextSendPSN(given(m, mSQPSN, a.SQPSN))
	c.SetNextRcvPSN(given(m, mRQPSN, a.RQPSN))
	c.SetMinRNRNAK(given(m, mRNRTimer, uint32(a.MinRNRTimer)))
	c.SetQKey(given(m, mQKey, a.QKey))
	if m.has(mAccess | mDestRd) {
		if err := m.fillAccess(c, d); err != nil {
			return err
		}
	}
	if m.from == verbs.QPSReset && m.to == verbs.QPSInit {
		c.SetCounterSetID(d.qcnt)
		if q.rqCount > 0 {
			page := q.u.dbPages[q.dbAddr&^pageMask]
			c.SetDBRAddr(uint64(page.mem.pages[0]) + q.dbAddr&pageMask)
		}
	}
	return nil
}

// given is v when the attribute is in the mask.
func given(m *modify, bit verbs.QPAttrMask, v uint32) uint32 {
	if m.has(bit) {
		return v
	}
	return 0
}

// logDepth is the logarithm of a number of outstanding READs, rounded up.
func logDepth(n uint8) uint32 {
	if n == 0 {
		return 0
	}
	return uint32(bits.Len8(n - 1))
}

func pmState(s uint8) uint32 {
	switch s {
	case 1:
		return prm.PMStateRearm
	case 2:
		return prm.PMStateArmed
	}
	return prm.PMStateMigrated
}

// fillAccess is set_qpc_atomic_flags: without a depth for READs and atomics only
// remote writes are let in, until the depth comes with RTR.
func (m *modify) fillAccess(c prm.QPC, d *Device) error {
	depth, access := m.q.respDepth, m.q.access
	if m.has(mDestRd) {
		depth = m.a.MaxDestRdAtomic
	}
	if m.has(mAccess) {
		access = m.a.Access
	}
	if depth == 0 {
		access &= verbs.AccessRemoteWrite
	}
	c.SetRRE(access&verbs.AccessRemoteRead != 0)
	c.SetRWE(access&verbs.AccessRemoteWrite != 0)
	if access&verbs.AccessRemoteAtomic != 0 {
		if d.caps.atomicMode == 0 {
			return fmt.Errorf("the device has no atomics: %w", syscall.EOPNOTSUPP)
		}
		c.SetRAE(true)
		c.SetAtomicMode(d.caps.atomicMode)
	}
	return nil
}
