package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/verbs"
)

// CreateQP is CREATE_QP. EPERM: raw packet without CAP_NET_RAW. EOPNOTSUPP: a type or
// a flag that the device or this model does not have. EINVAL: sizes above what the
// device takes, a ring that is no power of two, a user index that does not match the
// CQE version, a bfreg that does not exist, objects of the wrong kind. ENOENT: objects
// that are gone. EFAULT, ENOMEM: the ring's memory, as for RegMR.
func (u *Ucontext) CreateQP(c Caller, r QPReq) (h Handle, resp QPResp, err error) {
	err = u.do(c, func(k *call) error {
		if r.Type == verbs.QPTXRCRecv {
			q, err := u.createTarget(k, &r)
			if err != nil {
				return fmt.Errorf("create XRC target QP: %w", err)
			}
			h, resp = u.objs.add(q), QPResp{QPN: q.of.qpn, BFRegIndex: InvalidBFReg, Cap: r.Cap}
			return nil
		}
		q, err := u.createQP(k, &r)
		if err != nil {
			return fmt.Errorf("create QP: %w", err)
		}
		h = u.objs.add(q)
		resp = QPResp{QPN: q.qpn, BFRegIndex: InvalidBFReg, Cap: r.Cap}
		if q.bfreg != InvalidBFReg {
			resp.BFRegIndex = bfreg.Gross(q.bfreg)
		}
		if p := q.packets; p != nil {
			resp.Packets = PacketNumbers{TIRN: p.tirn, TISN: p.tisn, RQN: p.rq.num, SQN: p.sq.num, TIRAddress: p.tirAt}
		}
		return nil
	})
	return h, resp, err
}

// checkQPType is the switch of uverbs' create_qp, then what the device has.
func (u *Ucontext) checkQPType(r *QPReq) error {
	switch t := r.Type; t {
	case verbs.QPTRC, verbs.QPTUC, verbs.QPTUD:
		return nil
	case verbs.QPTRawPacket:
		if !u.proc.NetRaw {
			return fmt.Errorf("raw packet needs CAP_NET_RAW: %w", syscall.EPERM)
		}
		if u.dev.caps.packets.MaxWQ == 0 {
			return fmt.Errorf("the port has no raw packets: %w", syscall.EOPNOTSUPP)
		}
		return nil
	case verbs.QPTXRCSend, verbs.QPTXRCRecv:
		return u.dev.hasXRC()
	case verbs.QPTDriver:
		return u.dev.checkDC(r)
	}
	return fmt.Errorf("QP type %d: %w", r.Type, syscall.EINVAL)
}

func (u *Ucontext) checkQPFlags(r *QPReq) error {
	flags := r.Flags
	if r.Type == verbs.QPTRawPacket {
		flags &^= u.dev.caps.packets.queueFlags(qpCVLANStripping, qpScatterFCS)
	}
	if u.dev.caps.blockLBMC {
		flags &^= qpBlockMulticastLoopback
	}
	switch {
	case flags&^qpKnownFlags != 0:
		return fmt.Errorf("create flags %#x: %w", flags, syscall.EINVAL)
	case flags&qpSourceQPN != 0 && !u.proc.NetRaw:
		return fmt.Errorf("a source QPN needs CAP_NET_RAW: %w", syscall.EPERM)
	case flags&^qpPCIWriteEndPadding != 0 || flags != 0 && !u.dev.caps.endPad:
		return fmt.Errorf("create flags %#x: the device has no such thing: %w", flags, syscall.EOPNOTSUPP)
	}
	return nil
}

// find looks the objects of a request up.
func (q *qp) find(r *QPReq) (err error) {
	if r.HasSRQ {
		if q.svc == svcXRCSend {
			return fmt.Errorf("an SRQ for a QP that only sends: %w", syscall.EINVAL)
		}
		if q.srq, err = lookup[*srq](&q.u.objs, r.SRQ, "SRQ"); err != nil {
			return err
		}
		if q.srq.xrcd != nil {
			return fmt.Errorf("an XRC SRQ for a QP that is no XRC target: %w", syscall.EINVAL)
		}
	}
	if q.svc != svcXRCSend {
		if q.recvCQ, err = lookup[*cq](&q.u.objs, r.RecvCQ, "receive CQ"); err != nil {
			return err
		}
	}
	if q.sendCQ, err = lookup[*cq](&q.u.objs, r.SendCQ, "send CQ"); err != nil {
		return err
	}
	q.pd, err = lookup[*pd](&q.u.objs, r.PD, "PD")
	return err
}

// checkSizes is set_rq_size and set_user_buf_size.
func (q *qp) checkSizes(r *QPReq) error {
	most := uint32(1) << q.dev.caps.logMaxQPSz
	hasRQ := r.Cap.MaxRecvWR > 0 && q.srq == nil && q.svc != svcXRCSend
	switch {
	case r.Cap.MaxRecvWR > most:
		return fmt.Errorf("%d receives, at most %d: %w", r.Cap.MaxRecvWR, most, syscall.EINVAL)
	case !hasRQ && (r.RQWQECount != 0 || r.RQWQEShift != 0):
		return fmt.Errorf("a receive ring for a QP without receives: %w", syscall.EINVAL)
	case hasRQ && r.RQWQEShift >= 31:
		return fmt.Errorf("receive WQEs of 2^%d bytes: %w", r.RQWQEShift, syscall.EINVAL)
	case r.SQWQECount > most:
		return fmt.Errorf("send ring of %d blocks, at most %d: %w", r.SQWQECount, most, syscall.EINVAL)
	case r.SQWQECount&(r.SQWQECount-1) != 0:
		return fmt.Errorf("send ring of %d blocks is no power of two: %w", r.SQWQECount, syscall.EINVAL)
	case uint64(r.RQWQECount)<<r.RQWQEShift+uint64(r.SQWQECount)<<6 >= 1<<31:
		return fmt.Errorf("ring of 2 GiB or more: %w", syscall.EINVAL)
	}
	if !hasRQ {
		r.Cap.MaxRecvWR, r.Cap.MaxRecvSGE = 0, 0
	}
	return nil
}

// userIndex is verify_assign_uidx.
func (u *Ucontext) userIndex(uidx uint32) (uint32, error) {
	if u.cqeVersion == 0 {
		if uidx != noUIDX && uidx != 0 {
			return 0, fmt.Errorf("user index %#x with CQE version 0: %w", uidx, syscall.EINVAL)
		}
		return noUIDX, nil
	}
	if uidx >= noUIDX {
		return 0, fmt.Errorf("user index %#x: %w", uidx, syscall.EINVAL)
	}
	return uidx, nil
}

func (u *Ucontext) createQP(k *call, r *QPReq) (*qp, error) {
	if err := u.checkQPType(r); err != nil {
		return nil, err
	}
	q := &qp{
		dev: u.dev, u: u, typ: r.Type, cookie: r.Cookie, dbAddr: r.DBAddr, bfreg: InvalidBFReg,
		rqCount: r.RQWQECount, rqShift: r.RQWQEShift, sqCount: r.SQWQECount, sigAll: r.SigAll,
		inline: r.Cap.MaxInline,
	}
	switch r.DC {
	case DCTEnd:
		q.svc = svcDCT
	case DCIEnd:
		q.svc = svcDCI
	default:
		q.svc = serviceOf[r.Type]
	}
	if err := q.find(r); err != nil {
		return nil, err
	}
	if err := u.checkQPFlags(r); err != nil {
		return nil, err
	}
	if r.Streams != nil && u.DCIStreams().LogConcurrent == 0 {
		return nil, fmt.Errorf("streams of a DCI: the device has none: %w", syscall.EINVAL)
	}
	if r.Vendor != 0 {
		return nil, fmt.Errorf("the driver's flags %#x: the device has no such thing: %w", r.Vendor, syscall.EINVAL)
	}
	uidx, err := u.userIndex(r.UIDX)
	if err != nil {
		return nil, err
	}
	if q.svc != svcDCT {
		if err := q.checkSizes(r); err != nil {
			return nil, err
		}
	}
	k.work += u.dev.p.CreateQP
	if err := q.name(k); err != nil {
		return nil, err
	}
	if q.svc == svcDCT {
		q.createDCT(r, uidx)
		q.hold()
		return q, nil
	}
	create := q.create
	if q.svc == svcRaw {
		create = q.createPackets
	}
	if err := create(k, r, uidx); err != nil {
		if q.bfreg != InvalidBFReg {
			u.bfregs.Free(q.bfreg)
		}
		k.unpin(q.mem)
		return nil, err
	}
	u.dev.qps[q.qpn] = q
	q.hold()
	u.dev.res.QP++
	return q, nil
}

// hold refers to what the QP was made with.
func (q *qp) hold() {
	q.pd.refs++
	q.sendCQ.refs++
	if q.recvCQ != nil {
		q.recvCQ.refs++
	}
	if q.srq != nil {
		q.srq.refs++
	}
}

// name finds the numbers of the objects that the context names (the default resources of
// create_user_qp).
func (q *qp) name(k *call) error {
	q.nums = qpNumbers{pd: q.pd.pdn, sendCQ: q.sendCQ.cqn, xrcd: q.dev.xrcd[1]}
	switch {
	case q.svc == svcXRCSend:
		spare, err := k.spareXRC()
		if err != nil {
			return err
		}
		q.nums.recvCQ, q.nums.srq = spare.cqn, spare.srqn
		return nil
	case q.srq != nil:
		q.nums.srq, q.nums.xrcd = q.srq.srqn, q.dev.xrcd[0]
	}
	q.nums.recvCQ = q.recvCQ.cqn
	return nil
}

// chooseUAR finds the UAR that the QP rings (the switch of _create_user_qp).
func (q *qp) chooseUAR(r *QPReq) (uar uint32, err error) {
	if r.BFRegMode >= bfregModeCount {
		return 0, fmt.Errorf("bfreg mode %d: %w", r.BFRegMode, syscall.EINVAL)
	}
	if r.BFRegMode == BFRegUARPage {
		return r.BFRegIndex, nil
	}
	t := q.u.bfregs
	if t == nil {
		return 0, fmt.Errorf("the context has no bfreg table, a UAR must be named: %w", syscall.EINVAL)
	}
	if r.BFRegMode == BFRegDynamic {
		return t.UARIndex(r.BFRegIndex, true)
	}
	q.bfreg = t.Alloc()
	return t.UARIndex(q.bfreg, false)
}

// create pins the rings and sends the command. What it leaves behind on an error is
// the bfreg and the rings, for the caller to release.
func (q *qp) create(k *call, r *QPReq, uidx uint32) error {
	uar, err := q.chooseUAR(r)
	if err != nil {
		return err
	}
	var layout ring
	size := uint64(r.RQWQECount)<<r.RQWQEShift + uint64(r.SQWQECount)<<6
	if size > 0 && r.BufAddr != 0 {
		if q.mem, err = k.pin(q.u.proc, r.BufAddr, size, 0); err != nil {
			return fmt.Errorf("ring: %w", err)
		}
		if layout, err = q.mem.ringLayout(1<<32 - 64); err != nil {
			return err
		}
	}
	db, err := q.u.dbPages.pin(k, q.u.proc, q.dbAddr)
	if err != nil {
		return err
	}
	in, out := prm.NewIn(prm.OpCreateQP, 8*layout.blocks), prm.NewOut(prm.OpCreateQP, 0)
	m := prm.CreateQPIn(in)
	c := m.QPC()
	if q.mem != nil {
		q.mem.fillPAS(m.PAS(), layout.pageSize)
		c.SetLogPageSize(layout.logPageSize())
		c.SetPageOffset(layout.pageOffset)
	}
	c.SetUARPage(uar)
	c.SetDBRAddr(db)
	q.fillQPC(c, r, uidx)
	if err := k.exec(in, out); err != nil {
		q.u.dbPages.unpin(k, q.dbAddr)
		return err
	}
	q.qpn = prm.CreateQPOut(out).QPN()
	return nil
}

// fillQPC is the rest of create_user_qp.
func (q *qp) fillQPC(c prm.QPC, r *QPReq, uidx uint32) {
	d := q.dev
	c.SetST(q.serviceType())
	c.SetPMState(prm.PMStateMigrated)
	c.SetPD(q.nums.pd)
	if r.ScatterToCQE && d.caps.scatterToCQE {
		q.scatterToCQE(c, r)
	}
	if q.srq != nil || q.svc == svcXRCSend {
		c.SetRQType(prm.RQTypeSRQ)
		c.SetSRQN(q.nums.srq)
	} else if q.rqCount > 0 {
		c.SetLogRQStride(q.rqShift - 4)
		c.SetLogRQSize(uint32(bits.TrailingZeros32(q.rqCount)))
		c.SetRQType(prm.RQTypeRegular)
	} else {
		c.SetRQType(prm.RQTypeNone)
	}
	if q.sqCount > 0 {
		c.SetLogSQSize(uint32(bits.TrailingZeros32(q.sqCount)))
	} else {
		c.SetNoSQ(true)
	}
	c.SetTSFormat(d.caps.tsFormat)
	c.SetXRCD(q.nums.xrcd)
	c.SetCQNSnd(q.nums.sendCQ)
	c.SetCQNRcv(q.nums.recvCQ)
	if d.caps.cqeVersion == 1 {
		c.SetUserIndex(uidx)
	}
	if r.Flags&qpPCIWriteEndPadding != 0 {
		c.SetEndPaddingMode(1)
	}
	if s := r.Streams; s != nil && q.svc == svcDCI {
		c.SetLogNumDCIStreamChannels(uint32(s.LogConcurrent))
		c.SetLogNumDCIErroredStreams(uint32(s.LogErrored))
	}
	if r.Flags&qpBlockMulticastLoopback != 0 && q.svc != svcDCI { // create_dci leaves it out
		c.SetBlockLBMC(true)
	}
}

// scatterToCQE lets the device put small payloads into completions: responses of a
// requester only when every request is signalled (configure_requester_scat_cqe).
func (q *qp) scatterToCQE(c prm.QPC, r *QPReq) {
	if q.svc == svcRC || q.svc == svcUC {
		c.SetCSRes(prm.CSResUpTo32B)
		if q.recvCQ.cqeSize == 128 {
			c.SetCSRes(prm.CSResUpTo64B)
		}
	}
	if (q.svc == svcRC || q.svc == svcDCI) && (r.SigAll || r.AllowScatterToCQE) {
		c.SetCSReq(prm.CSReqUpTo32B)
		if q.sendCQ.cqeSize == 128 {
			c.SetCSReq(prm.CSReqUpTo64B)
		}
	}
}

// Creation flags that uverbs lets through (IB_QP_CREATE_*).
const (
	qpBlockMulticastLoopback = 1 << 1
	qpCrossChannel           = 1 << 2
	qpManagedSend            = 1 << 3
	qpManagedRecv            = 1 << 4
	qpScatterFCS             = 1 << 8
	qpCVLANStripping         = 1 << 9
	qpSourceQPN              = 1 << 10
	qpPCIWriteEndPadding     = 1 << 11
	qpKnownFlags             = qpBlockMulticastLoopback | qpCrossChannel | qpManagedSend | qpManagedRecv | qpScatterFCS |
		qpCVLANStripping | qpSourceQPN | qpPCIWriteEndPadding
)

// Values of QPReq.BFRegMode.
const (
	BFRegKernel    = 0 // the kernel chooses from its table
	BFRegDynamic   = 1 // MLX5_QP_FLAG_BFREG_INDEX: an index in the table's dynamic part
	BFRegUARPage   = 2 // MLX5_QP_FLAG_UAR_PAGE_INDEX: a hardware UAR
	bfregModeCount = 3
)

// noUIDX is the user index of a QP whose completions carry none.
const noUIDX = 0xffffff
