package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// SRQReq holds the arguments of CREATE_SRQ: mlx5_ib_create_srq and the core's fields. BufAddr and
// DBAddr are addresses in the process.
type SRQReq struct {
	Type            verbs.SRQType
	PD              Handle
	XRCD, CQ        Handle // of an XRC SRQ
	UIDX            uint32 // likewise: user index, or 0xffffff with CQE version 0
	MaxWR, MaxSGE   uint32 // MaxWR is one less than the ring's WQEs, rounded up
	BufAddr, DBAddr uint64
	Cookie          uint64
}

// SRQResp is the response of CREATE_SRQ.
type SRQResp struct {
	SRQN  uint32
	MaxWR uint32
}

type srq struct {
	u         *Ucontext
	pd        *pd
	srqn      uint32
	cookie    uint64
	mem       *umem
	dbAddr    uint64
	max       uint32 // WQEs, a power of two
	maxSGE    uint32
	stride    uint32 // bytes of a WQE, a power of two
	refs      int    // QPs (usecnt)
	asyncSeen uint32
	holds     holders
	xrcd      *xrcd // of an XRC SRQ, as is cq; else nil
	cq        *cq
}

// CreateSRQ is CREATE_SRQ. EINVAL: more WQEs or SGEs than the device has, or a wrong user index;
// EFAULT, ENOMEM: the ring's memory, as for RegMR; EOPNOTSUPP: tag matching, or XRC on a device
// without it.
func (u *Ucontext) CreateSRQ(c Caller, r SRQReq) (h Handle, resp SRQResp, err error) {
	err = u.do(c, func(k *call) error {
		s, err := u.createSRQ(k, &r)
		if err != nil {
			return fmt.Errorf("create SRQ: %w", err)
		}
		h, resp = u.objs.add(s), SRQResp{SRQN: s.srqn, MaxWR: s.max - 1}
		return nil
	})
	return h, resp, err
}

// createSRQ is mlx5_ib_create_srq.
func (u *Ucontext) createSRQ(k *call, r *SRQReq) (*srq, error) {
	d := u.dev
	s := &srq{u: u, cookie: r.Cookie, dbAddr: r.DBAddr, maxSGE: r.MaxSGE}
	uidx, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if most := uint32(1) << d.caps.logSRQSz; r.MaxWR >= most || r.MaxSGE > uint32(d.caps.maxWQERQ)/16 {
		return nil, fmt.Errorf("%d receives of %d SGEs, at most %d of %d: %w", r.MaxWR, r.MaxSGE, most-1,
			d.caps.maxWQERQ/16, syscall.EINVAL)
	}
	k.work += d.p.CreateCQ // no figure of its own; a ring and a record are pinned, too
	s.max = 1 << bits.Len32(r.MaxWR)
	s.stride = max(32, uint32(1)<<bits.Len32(prm.SRQNextSegmentSize+r.MaxSGE*prm.DataSegmentSize-1))
	if s.mem, err = k.pin(u.proc, r.BufAddr, uint64(s.max)*uint64(s.stride), 0); err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	if err := s.create(k, uidx); err != nil {
		k.unpin(s.mem)
		return nil, err
	}
	d.srqs[s.srqn] = s
	s.pd.refs++
	if s.xrcd != nil {
		s.cq.refs++
		s.xrcd.hold()
	}
	d.res.SRQ++
	return s, nil
}

// find looks the objects of a request up, and its user index.
func (s *srq) find(r *SRQReq) (uidx uint32, err error) {
	if s.pd, err = lookup[*pd](&s.u.objs, r.PD, "PD"); err != nil {
		return 0, err
	}
	switch r.Type {
	case verbs.SRQBasic:
		return noUIDX, nil
	case verbs.SRQXRC:
	default:
		return 0, fmt.Errorf("SRQ type %d: %w", r.Type, syscall.EOPNOTSUPP)
	}
	if err := s.u.dev.hasXRC(); err != nil {
		return 0, err
	}
	if s.xrcd, err = lookup[*xrcd](&s.u.objs, r.XRCD, "XRC domain"); err != nil {
		return 0, err
	}
	if s.cq, err = lookup[*cq](&s.u.objs, r.CQ, "CQ"); err != nil {
		return 0, err
	}
	return s.u.userIndex(r.UIDX)
}

// create is create_rmp_cmd, for with command interface step 1 a basic SRQ is an RMP, or
// create_xrc_srq_cmd.
func (s *srq) create(k *call, uidx uint32) error {
	pageOffsetBits := uint(5) // of a WQ context
	if s.xrcd != nil {
		pageOffsetBits = 6
	}
	layout, err := s.mem.queueLayout(1<<32-64, pageOffsetBits)
	if err != nil {
		return err
	}
	db, err := s.u.dbPages.pin(k, s.u.proc, s.dbAddr)
	if err != nil {
		return err
	}
	command := s.createRMP
	if s.xrcd != nil {
		command = s.createXRC
	}
	if s.srqn, err = command(k, layout, db, uidx); err != nil {
		s.u.dbPages.unpin(k, s.dbAddr)
	}
	return err
}

func (s *srq) createRMP(k *call, layout ring, db uint64, _ uint32) (uint32, error) {
	in, out := prm.NewIn(prm.OpCreateRMP, 8*layout.blocks), prm.NewOut(prm.OpCreateRMP, 0)
	m := prm.CreateRMPIn(in)
	m.RMPC().SetState(prm.RMPStateReady)
	w := m.RMPC().WQ()
	w.SetPD(s.pd.pdn)
	w.SetDBRAddr(db)
	w.SetLogWQSz(uint32(bits.TrailingZeros32(s.max)))
	w.SetLogWQStride(uint32(bits.TrailingZeros32(s.stride)))
	w.SetLogWQPgSz(layout.logPageSize())
	w.SetPageOffset(layout.pageOffset)
	s.mem.fillPAS(m.PAS(), layout.pageSize)
	err := k.exec(in, out)
	return prm.CreateRMPOut(out).RMPN(), err
}

func (s *srq) createXRC(k *call, layout ring, db uint64, uidx uint32) (uint32, error) {
	in, out := prm.NewIn(prm.OpCreateXRCSRQ, 8*layout.blocks), prm.NewOut(prm.OpCreateXRCSRQ, 0)
	m := prm.CreateXRCSRQIn(in)
	c := m.Context()
	c.SetState(prm.XRCSRQGood)
	c.SetPD(s.pd.pdn)
	c.SetXRCD(s.xrcd.domain.num)
	c.SetCQN(s.cq.cqn)
	c.SetDBRAddr(db)
	c.SetLogSize(uint32(bits.TrailingZeros32(s.max)))
	c.SetLogRQStride(uint32(bits.TrailingZeros32(s.stride)) - 4)
	c.SetLogPageSize(layout.logPageSize())
	c.SetPageOffset(layout.pageOffset)
	if k.d.caps.cqeVersion == 1 {
		c.SetUserIndex(uidx)
	}
	s.mem.fillPAS(m.PAS(), layout.pageSize)
	err := k.exec(in, out)
	return prm.CreateXRCSRQOut(out).SRQN(), err
}

// ModifySRQ is MODIFY_SRQ. EINVAL: a resize, which mlx5 does not have, or a limit that
// the ring cannot hold.
func (u *Ucontext) ModifySRQ(c Caller, h Handle, a verbs.SRQAttr, mask verbs.SRQAttrMask) error {
	return u.do(c, func(k *call) error {
		s, err := lookup[*srq](&u.objs, h, "SRQ")
		if err != nil {
			return err
		}
		switch {
		case mask&verbs.SRQMaskMaxWR != 0:
			return fmt.Errorf("modify SRQ: resize to %d: %w", a.MaxWR, syscall.EINVAL)
		case mask&verbs.SRQMaskLimit == 0:
			return nil
		case a.Limit >= s.max:
			return fmt.Errorf("modify SRQ: limit %d of %d WQEs: %w", a.Limit, s.max, syscall.EINVAL)
		}
		return s.arm(k, a.Limit)
	})
}

// arm is mlx5_cmd_arm_srq.
func (s *srq) arm(k *call, limit uint32) error {
	if s.xrcd != nil {
		in := prm.NewIn(prm.OpArmXRCSRQ, 0)
		prm.CmdIn(in).SetOpMod(prm.ArmXRCSRQMod)
		m := prm.ArmXRCSRQIn(in)
		m.SetSRQN(s.srqn)
		m.SetLWM(limit)
		return k.exec(in, prm.NewOut(prm.OpArmXRCSRQ, 0))
	}
	in := prm.NewIn(prm.OpModifyRMP, 0)
	m := prm.ModifyRMPIn(in)
	m.SetRMPN(s.srqn)
	m.SetRMPState(prm.RMPStateReady)
	m.SetSelectLWM(true)
	m.RMPC().SetState(prm.RMPStateReady)
	m.RMPC().WQ().SetLWM(limit)
	return k.exec(in, prm.NewOut(prm.OpModifyRMP, 0))
}

// QuerySRQ is QUERY_SRQ.
func (u *Ucontext) QuerySRQ(c Caller, h Handle) (a verbs.SRQAttr, err error) {
	err = u.do(c, func(k *call) error {
		s, err := lookup[*srq](&u.objs, h, "SRQ")
		if err != nil {
			return err
		}
		limit, err := s.limit(k)
		if err != nil {
			return err
		}
		a = verbs.SRQAttr{MaxWR: s.max - 1, MaxSGE: s.maxSGE, Limit: limit}
		return nil
	})
	return a, err
}

// limit asks the device for the limit (mlx5_cmd_query_srq).
func (s *srq) limit(k *call) (uint32, error) {
	if s.xrcd != nil {
		in, out := prm.NewIn(prm.OpQueryXRCSRQ, 0), prm.NewOut(prm.OpQueryXRCSRQ, 0)
		prm.QueryXRCSRQIn(in).SetSRQN(s.srqn)
		err := k.exec(in, out)
		return prm.QueryXRCSRQOut(out).Context().LWM(), err
	}
	in, out := prm.NewIn(prm.OpQueryRMP, 0), prm.NewOut(prm.OpQueryRMP, 0)
	prm.QueryRMPIn(in).SetRMPN(s.srqn)
	err := k.exec(in, out)
	return prm.QueryRMPOut(out).RMPC().WQ().LWM(), err
}

// DestroySRQ is DESTROY_SRQ: EBUSY while a QP is on it. It returns how many
// asynchronous events of the SRQ programs have read.
func (u *Ucontext) DestroySRQ(c Caller, h Handle) (asyncEvents uint32, err error) {
	err = u.doDestroy(c, func(k *call) error {
		s, err := destroyObject[*srq](&u.objs, k, h, "SRQ")
		if err == nil {
			asyncEvents = s.asyncSeen
		}
		return err
	})
	return asyncEvents, err
}

func (s *srq) destroy(k *call) error {
	if s.refs > 0 && !k.d.breaks(rule.SRQInUseIsBusy) {
		return fmt.Errorf("%d QPs are on it: %w", s.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDestroyRMP, 0)
	prm.DestroyRMPIn(in).SetRMPN(s.srqn)
	if s.xrcd != nil {
		in = prm.NewIn(prm.OpDestroyXRCSRQ, 0)
		prm.DestroyXRCSRQIn(in).SetSRQN(s.srqn)
	}
	if err := k.destroy(in); err != nil {
		return err
	}
	k.leaveTo(&s.holds)
	delete(s.u.dev.srqs, s.srqn)
	if !k.d.breaks(rule.SRQEventsGoWithTheSRQ) {
		s.u.async.forget(&s.asyncSeen)
	}
	s.u.dbPages.unpin(k, s.dbAddr)
	k.unpin(s.mem)
	s.pd.refs--
	if s.xrcd != nil {
		s.cq.refs--
		s.xrcd.drop()
	}
	s.u.dev.res.SRQ--
	return nil
}

// event gives an event of the SRQ to programs (mlx5_ib_srq_event).
func (s *srq) event(e prm.EQE) bool {
	t := verbs.EventSRQLimitReached
	if e.Type() == prm.EventSRQCatasError {
		t = verbs.EventSRQErr
	}
	s.u.objectEvent(t, s.cookie, &s.asyncSeen)
	return true
}
