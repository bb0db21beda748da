package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// setQKeyPrivileged marks a Q_Key that only privileged processes may set.
const setQKeyPrivileged = 1 << 31

// ModifyQP checks what uverbs, ib_core and mlx5_ib check, in their order, then sends the
// command of the transition. It returns EOPNOTSUPP for an undefined attribute bit, EPERM
// for a privileged Q_Key, ENODATA for an empty source GID, ETIMEDOUT for a destination
// whose Ethernet address cannot be resolved, and EINVAL for everything else. That includes
// what the device refuses, and RTS to SQD where the driver has no command for it (Params.SQD).
func (u *Ucontext) ModifyQP(c Caller, h Handle, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return u.do(c, func(k *call) error {
		if mask&^knownMask != 0 {
			return fmt.Errorf("modify QP: attribute mask %#x: %w", uint32(mask), syscall.EOPNOTSUPP)
		}
		q, err := lookup[queuePair](&u.objs, h, "QP")
		if err != nil {
			return err
		}
		return u.modify(k, q.queue(), a, mask)
	})
}

func (u *Ucontext) modify(k *call, q *qp, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	m := modify{u: u, q: q, a: *a, mask: mask}
	if err := m.run(k); err != nil {
		return fmt.Errorf("modify QP %#x (%v): %w", q.qpn, q.state, err)
	}
	return nil
}

func (m *modify) run(k *call) error {
	if err := m.uverbs(); err != nil {
		return err
	}
	if err := m.core(k); err != nil {
		return err
	}
	if m.q.dct != nil {
		return m.dct(k)
	}
	if err := m.driver(k.d); err != nil {
		return err
	}
	if m.from == m.to && m.from == verbs.QPSReset {
		return nil
	}
	if m.q.packets != nil {
		return m.packets(k)
	}
	return m.send(k)
}

func (m *modify) badPort(p uint8) error {
	return fmt.Errorf("port %d: %w", p, syscall.EINVAL)
}

// uverbs is modify_qp of uverbs_cmd.c.
func (m *modify) uverbs() error {
	q, a := m.q, &m.a
	ports := uint8(q.dev.caps.ports)
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
	if m.has(mQKey) && q.dev.breaks(rule.PrivilegeComesFromTheTopBit) && a.QKey>>30 != 0 && !m.u.proc.NetRaw {
		return fmt.Errorf("privileged Q_Key %#x: %w", a.QKey, syscall.EPERM)
	}
	if m.has(mQKey) && a.QKey&setQKeyPrivileged != 0 && !m.u.proc.NetRaw && !q.dev.breaks(rule.HighQKeysArePrivileged) {
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
		if m.q.svc.connected() && !k.d.caps.ib {
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
	if !m.allowed(d) && !d.breaks(rule.TransitionsAreATable) {
		return fmt.Errorf("%v to %v with attributes %#x: %w", m.from, m.to, uint32(m.mask), syscall.EINVAL)
	}
	if m.has(mAlt) {
		return fmt.Errorf("automatic path migration is not modelled: %w", syscall.EOPNOTSUPP)
	}
	if m.has(mPKey) && int(a.PKeyIndex) >= d.caps.pkeys {
		return fmt.Errorf("P_Key index %d of %d: %w", a.PKeyIndex, d.caps.pkeys, syscall.EINVAL)
	}
	logRARes := d.caps.logRARes
	if q.svc == svcDCI {
		logRARes = d.caps.logRAResDC
	}
	if m.has(mRdAtom) && int(a.MaxRdAtomic) > 1<<logRARes && !d.breaks(rule.ReadsAreLimitedByTheDevice) {
		return fmt.Errorf("max_rd_atomic %d: %w", a.MaxRdAtomic, syscall.EINVAL)
	}
	if m.has(mDestRd) && int(a.MaxDestRdAtomic) > 1<<d.caps.logRAReq {
		return fmt.Errorf("max_dest_rd_atomic %d: %w", a.MaxDestRdAtomic, syscall.EINVAL)
	}
	return nil
}

// allowed says whether there is such a transition with these attributes.
func (m *modify) allowed(d *Device) bool {
	if m.q.svc == svcDCI {
		return dciIsOK(m.from, m.to, m.mask)
	}
	cell := &transitions[m.from][m.to]
	if rule.Mutants {
		wrong := cell.broken(m.from, m.to, m.q.svc, d.eng.Broken().TableBit())
		cell = &wrong
	}
	return cell.takes(m.from, m.q.svc, m.brokenMask(d))
}

// brokenMask is the mask, with what a broken rule adds and takes away.
func (m *modify) brokenMask(d *Device) verbs.QPAttrMask {
	t := &transitions[m.from][m.to]
	mask, must, may := m.mask, t.must[m.q.svc], t.may[m.q.svc]
	if d.breaks(rule.TransitionsNeedTheirAttributes) {
		mask |= must
	}
	if d.breaks(rule.TransitionsTakeNoOtherAttributes) {
		mask &= must | may | mState
	}
	return mask
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
		req := prm.ModifyQPIn(in) // of a DCI the device gets what it needs, and no optional field
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
