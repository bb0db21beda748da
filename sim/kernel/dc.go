package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Ends of the dynamically connected transport are QPs of the driver's type. A DCI is a QP of the
// device with transitions of its own (modify_dci_qp_is_ok). A DCT is a context that the driver
// fills with each transition; the device makes it, and gives it its number, at RTR
// (mlx5_ib_modify_dct), and takes it away with the QP. It knows no other transition.

// DCEnd says which end of the DC transport a QP of the driver's type becomes
// (MLX5_QP_FLAG_TYPE_DCT, MLX5_QP_FLAG_TYPE_DCI).
type DCEnd uint8

// Ends. A request with both flags, or with none, has none.
const (
	NoDCEnd DCEnd = iota
	DCTEnd
	DCIEnd
)

// DCIStreams has the number of streams of a DCI, and how many of them may be in error, as base-2
// logarithms (struct mlx5_ib_dci_streams_caps, struct mlx5_ib_create_qp_dci_streams).
type DCIStreams struct{ LogConcurrent, LogErrored uint8 }

// DCIStreams returns the largest values that the device has; zeros: DCIs have no streams.
func (u *Ucontext) DCIStreams() DCIStreams {
	if u.dev.caps.streams.LogConcurrent == 0 {
		return DCIStreams{}
	}
	return u.dev.caps.streams
}

// dctState is what the driver keeps of a DCT: the context that it will make.
type dctState struct{ in []byte }

func (t *dctState) context() prm.DCTC { return prm.CreateDCTIn(t.in).Context() }

// checkDC is what mlx5_ib_create_qp checks of a QP of the driver's type (check_qp_type,
// process_vendor_flags, check_qp_attr).
func (d *Device) checkDC(r *QPReq) error {
	switch {
	case !d.caps.dct:
		return fmt.Errorf("the device has no dynamically connected transport: %w", syscall.EOPNOTSUPP)
	case r.DC == NoDCEnd:
		return fmt.Errorf("a QP of the driver's type that is neither DCT nor DCI: %w", syscall.EINVAL)
	case r.DC == DCTEnd && r.Flags != 0:
		return fmt.Errorf("create flags %#x of a DCT: %w", r.Flags, syscall.EINVAL)
	case r.DC == DCTEnd && !r.HasSRQ && !d.breaks(rule.TargetNeedsAnSRQ):
		return fmt.Errorf("a DCT without an SRQ: %w", syscall.EINVAL)
	case r.DC == DCIEnd && (r.Cap.MaxRecvWR != 0 || r.Cap.MaxRecvSGE != 0):
		return fmt.Errorf("receives of a DCI: %w", syscall.EINVAL)
	}
	return nil
}

// createDCT is create_dct: the device learns nothing yet.
func (q *qp) createDCT(r *QPReq, uidx uint32) {
	q.dct = &dctState{in: prm.NewIn(prm.OpCreateDCT, 0)}
	c := q.dct.context()
	c.SetPD(q.nums.pd)
	c.SetSRQN(q.nums.srq)
	c.SetCQN(q.nums.recvCQ)
	c.SetAccessKey(r.AccessKey)
	c.SetUserIndex(uidx)
	if r.ScatterToCQE && q.dev.caps.scatterToCQE && q.recvCQ.cqeSize == 128 {
		c.SetCSRes(prm.CSResUpTo64B)
	}
	r.Cap.MaxRecvWR, r.Cap.MaxRecvSGE = 0, 0
}

// only says whether a mask has all that is required and no more than what is optional, the state
// apart (is_valid_mask).
func only(mask, required, optional verbs.QPAttrMask) bool {
	required |= mState
	return mask&required == required && mask&^(required|optional) == 0
}

// dciIsOK is modify_dci_qp_is_ok.
func dciIsOK(from, to verbs.QPState, mask verbs.QPAttrMask) bool {
	switch {
	case to == verbs.QPSReset:
		return only(mask, 0, 0)
	case from == verbs.QPSReset && to == verbs.QPSInit:
		return only(mask, mPKey|mPort, 0)
	case from == verbs.QPSInit && to == verbs.QPSInit:
		return only(mask, 0, mPKey|mPort)
	case from == verbs.QPSInit && to == verbs.QPSRTR:
		return only(mask, mMTU, mPKey|mAV)
	case from == verbs.QPSRTR && to == verbs.QPSRTS:
		return only(mask, mTimeout|mRetry|mRNRRetry|mRdAtom|mSQPSN, mRNRTimer)
	case from == verbs.QPSRTS && to == verbs.QPSRTS:
		return only(mask, 0, mRNRTimer)
	case from != verbs.QPSReset && from != verbs.QPSErr && to == verbs.QPSErr:
		return only(mask, 0, 0)
	}
	return false
}

// dct is mlx5_ib_modify_dct.
func (m *modify) dct(k *call) error {
	q, a := m.q, &m.a
	if !m.has(mState) {
		return fmt.Errorf("a DCT without a new state: %w", syscall.EINVAL)
	}
	c := q.dct.context()
	switch m.from, m.to = q.state, a.State; {
	case m.from == verbs.QPSReset && m.to == verbs.QPSInit:
		if !only(m.mask, mAccess|mPKey|mPort, 0) {
			break
		}
		if err := m.dctInit(c); err != nil {
			return err
		}
		q.state, q.port = m.to, a.Port
		return nil
	case m.from == verbs.QPSInit && m.to == verbs.QPSRTR:
		if !only(m.mask, mRNRTimer|mAV|mMTU, 0) {
			break
		}
		return m.dctRTR(k, c)
	}
	return fmt.Errorf("%v to %v of a DCT with attributes %#x: %w", m.from, m.to, uint32(m.mask), syscall.EINVAL)
}

func (m *modify) dctInit(c prm.DCTC) error {
	a, d := &m.a, m.q.dev
	if a.Port == 0 || int(a.Port) > d.caps.ports {
		return m.badPort(a.Port)
	}
	if a.Access&verbs.AccessRemoteRead != 0 {
		c.SetRRE(true)
	}
	if a.Access&verbs.AccessRemoteWrite != 0 {
		c.SetRWE(true)
	}
	if a.Access&verbs.AccessRemoteAtomic != 0 {
		if d.caps.dcAtomicMode == 0 {
			return fmt.Errorf("the device has no atomics of DC: %w", syscall.EOPNOTSUPP)
		}
		c.SetAtomicMode(d.caps.dcAtomicMode)
		c.SetRAE(true)
	}
	c.SetPKeyIndex(uint32(a.PKeyIndex))
	c.SetPort(uint32(a.Port))
	c.SetCounterSetID(d.qcnt)
	return nil
}

// dctRTR has the device make the target.
func (m *modify) dctRTR(k *call, c prm.DCTC) error {
	q, a := m.q, &m.a
	c.SetMinRNRNAK(uint32(a.MinRNRTimer))
	c.SetTClass(uint32(a.AH.GRH.TrafficClass))
	c.SetFlowLabel(a.AH.GRH.FlowLabel)
	c.SetMTU(uint32(a.PathMTU))
	c.SetMyAddrIndex(uint32(a.AH.GRH.SGIDIndex))
	c.SetHopLimit(uint32(a.AH.GRH.HopLimit))
	if !q.dev.caps.ib {
		c.SetEthPrio(uint32(a.AH.SL) & 7)
	}
	out := prm.NewOut(prm.OpCreateDCT, 0)
	if err := k.exec(q.dct.in, out); err != nil {
		return err
	}
	q.state, q.qpn = m.to, prm.CreateDCTOut(out).DCTN()
	return nil
}

// HasDC reports whether the device has the DC transport.
func (u *Ucontext) HasDC() bool { return u.dev.caps.dct }

// IsDCT reports whether a handle names a DCT.
func (u *Ucontext) IsDCT(h Handle) bool {
	q, err := lookup[queuePair](&u.objs, h, "QP")
	return err == nil && q.queue().dct != nil
}

// DCTN returns the number of a DCT, which the response to the transition to RTR contains
// (mlx5_ib_modify_qp_resp); 0: it has none yet, or the QP is no DCT.
func (u *Ucontext) DCTN(h Handle) uint32 {
	q, err := lookup[queuePair](&u.objs, h, "QP")
	if err != nil || q.queue().dct == nil || u.dev.breaks(rule.TargetNumberComesWithRTR) {
		return 0
	}
	return q.queue().qpn
}

// removeDCT is mlx5_ib_destroy_dct. That the driver sleeps until the event of the drained target
// has come is not modelled: the device drains at once.
func (q *qp) removeDCT(k *call) error {
	if q.state != verbs.QPSRTR {
		return nil
	}
	in := prm.NewIn(prm.OpDrainDCT, 0)
	prm.DrainDCTIn(in).SetDCTN(q.qpn)
	if err := k.destroy(in); err != nil {
		return err
	}
	in = prm.NewIn(prm.OpDestroyDCT, 0)
	prm.DestroyDCTIn(in).SetDCTN(q.qpn)
	return k.destroy(in)
}

// queryDCT is mlx5_ib_dct_query_qp.
func (q *qp) queryDCT(k *call, mask verbs.QPAttrMask) (a verbs.QPAttr, err error) {
	const supported = mState | mAccess | mPort | mRNRTimer | mAV | mMTU | mPKey
	if mask&^supported != 0 || q.state != verbs.QPSRTR {
		return a, fmt.Errorf("query a DCT in %v, attributes %#x: %w", q.state, uint32(mask), syscall.EINVAL)
	}
	in, out := prm.NewIn(prm.OpQueryDCT, 0), prm.NewOut(prm.OpQueryDCT, 0)
	prm.QueryDCTIn(in).SetDCTN(q.qpn)
	if err := k.exec(in, out); err != nil {
		return a, fmt.Errorf("query DCT %#x: %w", q.qpn, err)
	}
	c := prm.QueryDCTOut(out).Context()
	for _, x := range [...]struct {
		bit verbs.QPAttrMask
		get func()
	}{
		{mState, func() { a.State = verbs.QPSRTR }},
		{mAccess, func() { a.Access = dctAccess(c) }},
		{mPort, func() { a.Port = uint8(c.Port()) }},
		{mRNRTimer, func() { a.MinRNRTimer = uint8(c.MinRNRNAK()) }},
		{mAV, func() {
			a.AH.GRH = verbs.GRH{TrafficClass: uint8(c.TClass()), FlowLabel: c.FlowLabel(), SGIDIndex: uint8(c.MyAddrIndex()), HopLimit: uint8(c.HopLimit())}
		}},
		{mMTU, func() { a.PathMTU = verbs.MTU(c.MTU()) }},
		{mPKey, func() { a.PKeyIndex = uint16(c.PKeyIndex()) }},
	} {
		if mask&x.bit != 0 {
			x.get()
		}
	}
	return a, nil
}

func dctAccess(c prm.DCTC) (a verbs.AccessFlags) {
	if c.RRE() {
		a |= verbs.AccessRemoteRead
	}
	if c.RWE() {
		a |= verbs.AccessRemoteWrite
	}
	if c.RAE() {
		a |= verbs.AccessRemoteAtomic
	}
	return a
}
