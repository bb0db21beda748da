//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// qp is a queue pair.
type qp struct {
	QP
	h      kernel.Handle
	cookie uint64
	sigAll bool
	target bool // of XRC, or a DCT: it has no rings and rings nothing
}

// createQP is QP_CREATE.
func (f *File) createQP(c Caller, k *uapi.Call) error {
	if k.Has(uapi.QPCreateIndTable) {
		return f.createRSSQP(c, k)
	}
	b, err := k.InExact(uapi.AttrUHWIn, 36, uapi.MLX5CreateQPSize) // through uidx
	if err != nil {
		return err
	}
	d := uapi.MLX5CreateQP(b)
	r, err := f.qpReq(k, d)
	if err != nil {
		return err
	}
	async, err := f.asyncOf(c, k, uapi.QPCreateEventFD)
	if err != nil {
		return err
	}
	q := &qp{sigAll: r.SigAll, target: r.Type == verbs.QPTXRCRecv || r.DC == kernel.DCTEnd}
	q.UserHandle = k.Value(uapi.QPCreateUserHandle)
	q.DBAddr, q.RQAddr, q.RQCount, q.RQShift = r.DBAddr, r.BufAddr, r.RQWQECount, r.RQWQEShift
	q.SQAddr, q.SQCount = r.BufAddr+uint64(r.RQWQECount)<<r.RQWQEShift, r.SQWQECount
	if r.Type == verbs.QPTRawPacket {
		q.SQAddr = d.SQBufAddr()
	}
	if r.BFRegMode == kernel.BFRegDynamic && !q.target {
		if _, err := f.dynamic(r.BFRegIndex / bfreg.PerUAR); err != nil {
			return err
		}
	}
	q.cookie = f.own(&owner{q.UserHandle, async})
	r.Cookie = q.cookie
	h, resp, err := f.u.CreateQP(noCaller, r)
	if err != nil {
		delete(f.owners, q.cookie)
		return err
	}
	q.h, q.QPN = h, resp.QPN
	if q.target {
		resp.BFRegIndex = 0
	} else {
		err = f.register(q, &r, &resp)
	}
	if err == nil {
		err = f.answerQP(k, q, &resp)
	}
	if err != nil {
		delete(f.owners, q.cookie)
		return undo(err, func() error { _, err := f.u.DestroyQP(noCaller, h); return err })
	}
	f.qps[uint32(h)] = q
	if !q.target {
		f.pages.AddQP(&q.QP)
	}
	return nil
}

// withdrawQP takes back what createQP has announced.
func (f *File) withdrawQP(q *qp) {
	if !q.target {
		f.pages.RemoveQP(&q.QP)
	}
}

// qpReq checks a request as uverbs and the driver do, and translates it.
func (f *File) qpReq(k *uapi.Call, d uapi.MLX5CreateQP) (r kernel.QPReq, err error) {
	typ := k.Value(uapi.QPCreateType)
	if typ > 0xff {
		return r, fmt.Errorf("QP type %d: %w", typ, syscall.EINVAL)
	}
	r.Type = verbs.QPType(typ)
	flags, err := k.Flags32(uapi.QPCreateFlags, uapi.QPCreateBlockMulticastLoopback|uapi.QPCreateScatterFCS|uapi.QPCreateCVLANStripping|
		uapi.QPCreatePCIWriteEndPadding|uapi.QPCreateSQSigAll)
	if err != nil {
		return r, err
	}
	r.SigAll, r.Flags = flags&uapi.QPCreateSQSigAll != 0, flags&^uapi.QPCreateSQSigAll
	switch {
	case r.Type == verbs.QPTDriver && !f.u.HasDC(): // before the driver looks at its flags (check_qp_type)
		return r, fmt.Errorf("dynamically connected transport: the device has none: %w", syscall.EOPNOTSUPP)
	case r.Type == verbs.QPTXRCRecv && (k.Has(uapi.QPCreatePD) || k.Has(uapi.QPCreateSendCQ) || k.Has(uapi.QPCreateRecvCQ)):
		return r, fmt.Errorf("QP_CREATE of an XRC target with a PD or a CQ: %w", syscall.EINVAL)
	case r.Type == verbs.QPTXRCRecv && !k.Has(uapi.QPCreateXRCD):
		return r, fmt.Errorf("QP_CREATE of an XRC target without an XRC domain: %w", syscall.ENOENT)
	case r.Type != verbs.QPTXRCRecv && k.Has(uapi.QPCreateXRCD):
		return r, fmt.Errorf("QP_CREATE of type %d with an XRC domain: %w", r.Type, syscall.EINVAL)
	case k.Has(uapi.QPCreateSourceQPN):
		return r, fmt.Errorf("source QPN: %w: %w", errNotModelled, syscall.EOPNOTSUPP)
	}
	for _, o := range [...]struct {
		id uint16
		h  *kernel.Handle
	}{{uapi.QPCreatePD, &r.PD}, {uapi.QPCreateSRQ, &r.SRQ}, {uapi.QPCreateSendCQ, &r.SendCQ}, {uapi.QPCreateRecvCQ, &r.RecvCQ}, {uapi.QPCreateXRCD, &r.XRCD}} {
		if h, ok := k.Handle(o.id); ok {
			*o.h = kernelHandle(h)
		}
	}
	r.HasSRQ = k.Has(uapi.QPCreateSRQ)
	b, err := k.In(uapi.QPCreateCap, uapi.QPCapSize)
	if err != nil {
		return r, err
	}
	n := uapi.QPCap(b)
	r.Cap = verbs.QPCap{MaxSendWR: n.MaxSendWR(), MaxRecvWR: n.MaxRecvWR(), MaxSendSGE: n.MaxSendSGE(), MaxRecvSGE: n.MaxRecvSGE(), MaxInline: n.MaxInlineData()}
	r.BufAddr, r.DBAddr, r.UIDX, r.BFRegIndex = d.BufAddr(), d.DBAddr(), d.UIDX(), d.BFRegIndex()
	r.SQWQECount, r.RQWQECount, r.RQWQEShift = d.SQWQECount(), d.RQWQECount(), d.RQWQEShift()
	r.AccessKey = d.SQBufAddr()
	if d.Flags()&uapi.QPFlagDCIStream != 0 {
		r.Streams = &kernel.DCIStreams{LogConcurrent: d.LogStreams(), LogErrored: d.LogErroredStreams()}
	}
	return r, driverFlags(&r, d.Flags())
}

// driverFlags is process_vendor_flags. The permission to scatter small payloads into
// CQEs where not every request is signalled is accepted and not used.
func driverFlags(r *kernel.QPReq, flags uint32) error {
	known := uint32(uapi.QPFlagScatterCQE | uapi.QPFlagAllowScatterCQE | uapi.QPFlagBFRegIndex | uapi.QPFlagUARPageIndex | uapi.QPFlagDCIStream)
	if r.Type == verbs.QPTDriver {
		known |= dcEnds
		r.DC = dcEnd(flags)
	}
	switch {
	case flags&uapi.QPFlagSignature != 0:
		return fmt.Errorf("QP_CREATE: WQE signatures: %w: %w", errNotModelled, syscall.EOPNOTSUPP)
	case flags&^known != 0:
		return fmt.Errorf("QP_CREATE: driver flags %#x: %w", flags, syscall.EINVAL)
	case flags&uapi.QPFlagUARPageIndex != 0:
		r.BFRegMode = kernel.BFRegUARPage
	case flags&uapi.QPFlagBFRegIndex != 0:
		r.BFRegMode = kernel.BFRegDynamic
	}
	r.ScatterToCQE, r.AllowScatterToCQE = flags&uapi.QPFlagScatterCQE != 0, flags&uapi.QPFlagAllowScatterCQE != 0
	return nil
}

// dcEnds are the flags of the ends of the dynamically connected transport.
const dcEnds = uapi.QPFlagTypeDCT | uapi.QPFlagTypeDCI

func dcEnd(flags uint32) kernel.DCEnd {
	switch flags & dcEnds {
	case uapi.QPFlagTypeDCT:
		return kernel.DCTEnd
	case uapi.QPFlagTypeDCI:
		return kernel.DCIEnd
	}
	return kernel.NoDCEnd
}

// register finds the page and the register that the library will ring.
func (f *File) register(q *qp, r *kernel.QPReq, resp *kernel.QPResp) error {
	switch r.BFRegMode {
	case kernel.BFRegUARPage:
		q.UAROff, q.BFReg = uint64(r.BFRegIndex)*prm.UARPageSize, AnyBFReg
	case kernel.BFRegDynamic:
		m, err := f.dynamic(r.BFRegIndex / bfreg.PerUAR)
		if err != nil {
			return err
		}
		q.UAROff, q.BFReg = m.Off, r.BFRegIndex%bfreg.PerUAR
	default:
		page := resp.BFRegIndex / bfreg.GrossPerUAR
		if page >= uint32(len(f.static)) {
			return fmt.Errorf("bfreg %#x of %d pages: %w", resp.BFRegIndex, len(f.static), syscall.EIO)
		}
		q.UAROff, q.BFReg = f.static[page].Off, resp.BFRegIndex%bfreg.GrossPerUAR
	}
	return nil
}

func (f *File) answerQP(k *uapi.Call, q *qp, resp *kernel.QPResp) error {
	n := uapi.QPCap(make([]byte, uapi.QPCapSize))
	n.SetMaxSendWR(resp.Cap.MaxSendWR)
	n.SetMaxRecvWR(resp.Cap.MaxRecvWR)
	n.SetMaxSendSGE(resp.Cap.MaxSendSGE)
	n.SetMaxRecvSGE(resp.Cap.MaxRecvSGE)
	n.SetMaxInlineData(resp.Cap.MaxInline)
	d := uapi.MLX5CreateQPResp(make([]byte, uapi.MLX5CreateQPRespSize))
	d.SetBFRegIndex(resp.BFRegIndex)
	for _, n := range [...]struct {
		num, bit uint32
		set      func(uint32)
	}{
		{resp.Packets.TIRN, uapi.QPRespTIRN, d.SetTIRN}, {resp.Packets.TISN, uapi.QPRespTISN, d.SetTISN},
		{resp.Packets.RQN, uapi.QPRespRQN, d.SetRQN}, {resp.Packets.SQN, uapi.QPRespSQN, d.SetSQN},
	} {
		if n.num != 0 {
			n.set(n.num)
			d.SetCompMask(d.CompMask() | n.bit)
		}
	}
	if a := resp.Packets.TIRAddress; a != 0 {
		d.SetTIRICMAddr(a)
		d.SetCompMask(d.CompMask() | uapi.QPRespTIRICMAddr)
	}
	return errors.Join(k.OutStruct(uapi.QPCreateRspCap, n), k.Out32(uapi.QPCreateRspQPN, q.QPN), k.Out(uapi.AttrUHWOut, d),
		k.SetNew(uapi.QPCreateHandle, uint64(q.h)))
}

// destroyQP is QP_DESTROY.
func (f *File) destroyQP(k *uapi.Call) error {
	h, _ := k.Handle(uapi.QPDestroyHandle)
	events, err := f.u.DestroyQP(noCaller, kernelHandle(h))
	if err != nil {
		return err
	}
	q := f.qps[h]
	f.withdrawQP(q)
	delete(f.qps, h)
	delete(f.owners, q.cookie)
	r := uapi.DestroyQPResp(make([]byte, uapi.DestroyQPRespSize))
	r.SetEventsReported(events - f.forgetAsync(q.cookie))
	return k.Out(uapi.QPDestroyRsp, r)
}

// standardMask are the attributes that the command may carry that is not extended.
const standardMask = 1<<21 - 1

// modifyQP is MODIFY_QP in both forms.
func (f *File) modifyQP(w *uapi.Write) error {
	ex := w.Cmd&uapi.CmdExtended != 0
	n := uapi.ModifyQPSize
	if ex {
		n = uapi.ExModifyQPSize
	}
	b, err := w.Request(n)
	if err != nil {
		return err
	}
	m := uapi.ModifyQP(b[:uapi.ModifyQPSize])
	a := qpAttr(m)
	if ex {
		a.RateLimit = uapi.ExModifyQP(b).RateLimit()
	} else if m.AttrMask()&^standardMask != 0 {
		return fmt.Errorf("%s: attribute mask %#x: %w", w.Name, m.AttrMask(), syscall.EOPNOTSUPP)
	}
	h, mask := kernelHandle(m.QPHandle()), verbs.QPAttrMask(m.AttrMask())
	numbers := f.u.IsDCT(h) && mask&verbs.QPMaskState != 0 && a.State == verbs.QPSRTR
	if numbers && (!ex || w.DriverRoom() < dctnEnd) {
		return fmt.Errorf("%s: no room for the number of a DCT: %w", w.Name, syscall.EINVAL)
	}
	if err := f.u.ModifyQP(noCaller, h, &a, mask); err != nil {
		return err
	}
	if !ex {
		return nil
	}
	r := uapi.ExModifyQPResp(make([]byte, uapi.ExModifyQPRespSize))
	r.SetResponseLength(uint32(w.Room(len(r))))
	if numbers {
		if err := f.answerDCT(w, h, f.qps[m.QPHandle()]); err != nil {
			return err
		}
	}
	return w.Respond(r)
}

// dctnEnd is how much of the driver's answer reaches behind the number of a DCT.
const dctnEnd = 8

// answerDCT tells the number of a DCT that the device has just made (mlx5_ib_modify_dct).
func (f *File) answerDCT(w *uapi.Write, h kernel.Handle, q *qp) error {
	d := uapi.MLX5ModifyQPResp(make([]byte, uapi.MLX5ModifyQPRespSize))
	q.QPN = f.u.DCTN(h)
	d.SetDCTN(q.QPN)
	if w.DriverRoom() < len(d) {
		d = d[:dctnEnd]
	}
	d.SetResponseLength(uint32(len(d)))
	return w.RespondDriver(d)
}

// qpAttr is modify_qp's translation.
func qpAttr(m uapi.ModifyQP) verbs.QPAttr {
	return verbs.QPAttr{
		State: verbs.QPState(m.State()), CurState: verbs.QPState(m.CurState()), PathMTU: verbs.MTU(m.PathMTU()),
		PathMigState: m.PathMigState(), QKey: m.QKey(), RQPSN: m.RQPSN(), SQPSN: m.SQPSN(), DestQPN: m.DestQPN(),
		Access: access(m.AccessFlags()), AH: ahAttr(m.Dest()), AltAH: ahAttr(m.AltDest()),
		PKeyIndex: m.PKeyIndex(), AltPKeyIndex: m.AltPKeyIndex(), EnSQDAsyncNotify: m.EnSQDAsyncNotify() != 0,
		MaxRdAtomic: m.MaxRdAtomic(), MaxDestRdAtomic: m.MaxDestRdAtomic(), MinRNRTimer: m.MinRNRTimer(),
		Port: m.Port(), AltPort: m.AltPort(), Timeout: m.Timeout(), AltTimeout: m.AltTimeout(), RetryCnt: m.RetryCnt(), RNRRetry: m.RNRRetry(),
	}
}

func access(v uint32) verbs.AccessFlags { return verbs.AccessFlags(v) }

// ahAttr is copy_ah_attr_from_uverbs.
func ahAttr(d uapi.QPDest) verbs.AHAttr {
	a := verbs.AHAttr{
		DLID: d.DLID(), SL: d.SL(), SrcPathBits: d.SrcPathBits(), StaticRate: d.StaticRate(), IsGlobal: d.IsGlobal() != 0, Port: d.Port(),
		GRH: verbs.GRH{FlowLabel: d.FlowLabel(), SGIDIndex: d.SGIDIndex(), HopLimit: d.HopLimit(), TrafficClass: d.TrafficClass()},
	}
	copy(a.GRH.DGID[:], d.DGID())
	return a
}

// fillDest is copy_ah_attr_to_uverbs.
func fillDest(d uapi.QPDest, a *verbs.AHAttr) {
	copy(d.DGID(), a.GRH.DGID[:])
	d.SetFlowLabel(a.GRH.FlowLabel)
	d.SetSGIDIndex(a.GRH.SGIDIndex)
	d.SetHopLimit(a.GRH.HopLimit)
	d.SetTrafficClass(a.GRH.TrafficClass)
	d.SetDLID(a.DLID)
	d.SetSL(a.SL)
	d.SetSrcPathBits(a.SrcPathBits)
	d.SetStaticRate(a.StaticRate)
	if a.IsGlobal {
		d.SetIsGlobal(1)
	}
	d.SetPort(a.Port)
}

// queryQP is QUERY_QP.
func (f *File) queryQP(w *uapi.Write) error {
	b, err := w.Request(uapi.QueryQPSize)
	if err != nil {
		return err
	}
	req := uapi.QueryQP(b)
	a, err := f.u.QueryQP(noCaller, kernelHandle(req.QPHandle()), verbs.QPAttrMask(req.AttrMask()))
	if err != nil {
		return err
	}
	r := uapi.QueryQPResp(make([]byte, uapi.QueryQPRespSize))
	fillQuery(r, &a)
	if q := f.qps[req.QPHandle()]; q != nil && q.sigAll {
		r.SetSQSigAll(1)
	}
	return w.Respond(r)
}

func fillQuery(r uapi.QueryQPResp, a *verbs.QPAttr) {
	fillDest(r.Dest(), &a.AH)
	fillDest(r.AltDest(), &a.AltAH)
	r.SetMaxSendWR(a.Cap.MaxSendWR)
	r.SetMaxRecvWR(a.Cap.MaxRecvWR)
	r.SetMaxSendSGE(a.Cap.MaxSendSGE)
	r.SetMaxRecvSGE(a.Cap.MaxRecvSGE)
	r.SetMaxInlineData(a.Cap.MaxInline)
	r.SetQKey(a.QKey)
	r.SetRQPSN(a.RQPSN)
	r.SetSQPSN(a.SQPSN)
	r.SetDestQPN(a.DestQPN)
	r.SetAccessFlags(uint32(a.Access))
	r.SetPKeyIndex(a.PKeyIndex)
	r.SetAltPKeyIndex(a.AltPKeyIndex)
	r.SetState(uint8(a.State))
	r.SetCurState(uint8(a.CurState))
	r.SetPathMTU(uint8(a.PathMTU))
	r.SetPathMigState(a.PathMigState)
	if a.SQDraining {
		r.SetSQDraining(1)
	}
	r.SetMaxRdAtomic(a.MaxRdAtomic)
	r.SetMaxDestRdAtomic(a.MaxDestRdAtomic)
	r.SetMinRNRTimer(a.MinRNRTimer)
	r.SetPort(a.Port)
	r.SetTimeout(a.Timeout)
	r.SetRetryCnt(a.RetryCnt)
	r.SetRNRRetry(a.RNRRetry)
	r.SetAltPort(a.AltPort)
	r.SetAltTimeout(a.AltTimeout)
}
