package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

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
	c.SetRemoteQPN(whenSet(m, mDestQPN, a.DestQPN))
	if err := m.fillPath(c.PrimaryPath(), d); err != nil {
		return err
	}
	c.SetPD(q.nums.pd)
	c.SetCQNSnd(q.nums.sendCQ)
	c.SetCQNRcv(q.nums.recvCQ)
	c.SetLogAckReqFreq(ackReqFreq)
	c.SetRNRRetry(whenSet(m, mRNRRetry, uint32(a.RNRRetry)))
	c.SetRetryCount(whenSet(m, mRetry, uint32(a.RetryCnt)))
	c.SetLogSRAMax(whenSet(m, mRdAtom, logDepth(a.MaxRdAtomic)))
	c.SetLogRRAMax(whenSet(m, mDestRd, logDepth(a.MaxDestRdAtomic)))
	c.SetNextSendPSN(whenSet(m, mSQPSN, a.SQPSN))
	c.SetNextRcvPSN(whenSet(m, mRQPSN, a.RQPSN))
	c.SetMinRNRNAK(whenSet(m, mRNRTimer, uint32(a.MinRNRTimer)))
	c.SetQKey(whenSet(m, mQKey, a.QKey))
	if m.has(mAccess | mDestRd) {
		if err := m.fillAccess(c, d); err != nil {
			return err
		}
	}
	if m.from == verbs.QPSReset && m.to == verbs.QPSInit {
		c.SetCounterSetID(d.qcnt)
		if q.rqCount > 0 {
			c.SetDBRAddr(q.u.dbPages.dma(q.dbAddr))
		}
	}
	return nil
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

// ackReqFreq is what the driver asks in every transition: an acknowledgement at the
// latest after 2^8 packets (MLX5_IB_ACK_REQ_FREQ).
const ackReqFreq = 8
