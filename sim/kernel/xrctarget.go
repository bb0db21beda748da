package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// target is an XRC target QP: the real_qp of ib_core, which programs reach by handles, or by number
// in the designs of before.
type target struct {
	qp
	domain *xrcDomain
	users  []targetUser // who is told of its events
}

// targetUser is a handle of a target QP, or a registration.
type targetUser interface {
	// tell queues an event for the program.
	tell(t verbs.EventType)
}

// targetHandle is one handle of a target QP.
type targetHandle struct {
	u         *Ucontext
	of        *target
	via       *xrcd
	cookie    uint64
	asyncSeen uint32
	deaf      bool // it has no file for events
}

func (h *targetHandle) queue() *qp          { return &h.of.qp }
func (h *targetHandle) asyncEvents() uint32 { return h.asyncSeen }

func (h *targetHandle) tell(t verbs.EventType) {
	if !h.deaf {
		h.u.objectEvent(t, h.cookie, &h.asyncSeen)
	}
}

// createTarget is the part of uverbs and of create_xrc_tgt_qp for a request whose type is XRC_RECV.
func (u *Ucontext) createTarget(k *call, r *QPReq) (*targetHandle, error) {
	if err := u.dev.hasXRC(); err != nil {
		return nil, err
	}
	if r.PD != 0 || r.SendCQ != 0 || r.RecvCQ != 0 {
		return nil, fmt.Errorf("a PD or a CQ for an XRC target: %w", syscall.EINVAL)
	}
	x, err := lookup[*xrcd](&u.objs, r.XRCD, "XRC domain")
	if err != nil {
		return nil, err
	}
	if r.HasSRQ {
		s, err := lookup[*srq](&u.objs, r.SRQ, "SRQ")
		if err != nil {
			return nil, err
		}
		if s.xrcd == nil {
			return nil, fmt.Errorf("an SRQ that is not of XRC: %w", syscall.EINVAL)
		}
	}
	if err := u.checkQPFlags(r); err != nil {
		return nil, err
	}
	if err := u.dev.p.XRC.hasHandles(); err != nil {
		return nil, err
	}
	uidx, err := u.userIndex(r.UIDX)
	if err != nil {
		return nil, err
	}
	t, err := k.makeTarget(x.domain, uidx, r.Flags)
	if err != nil {
		return nil, err
	}
	return t.open(u, x, r.Cookie), nil
}

// makeTarget makes a target QP in a domain (create_xrc_tgt_qp).
func (k *call) makeTarget(g *xrcDomain, uidx, flags uint32) (*target, error) {
	d := k.d
	k.work += d.p.CreateQP
	spare, err := k.spareXRC()
	if err != nil {
		return nil, err
	}
	t := &target{domain: g, qp: qp{dev: d, typ: verbs.QPTXRCRecv, svc: svcXRCRecv, bfreg: InvalidBFReg}}
	t.nums = qpNumbers{pd: d.pdn, sendCQ: spare.cqn, recvCQ: spare.cqn, srq: spare.srqn, xrcd: g.num}
	in, out := prm.NewIn(prm.OpCreateQP, 0), prm.NewOut(prm.OpCreateQP, 0)
	c := prm.CreateQPIn(in).QPC()
	c.SetST(prm.STXRC)
	c.SetPMState(prm.PMStateMigrated)
	c.SetPD(t.nums.pd)
	c.SetTSFormat(d.caps.tsFormat)
	c.SetRQType(prm.RQTypeSRQ)
	c.SetNoSQ(true)
	c.SetCQNSnd(t.nums.sendCQ)
	c.SetCQNRcv(t.nums.recvCQ)
	c.SetSRQN(t.nums.srq)
	c.SetXRCD(t.nums.xrcd)
	if d.caps.cqeVersion == 1 {
		c.SetUserIndex(uidx)
	}
	if flags&qpPCIWriteEndPadding != 0 {
		c.SetEndPaddingMode(1)
	}
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	t.qpn = prm.CreateQPOut(out).QPN()
	d.qps[t.qpn] = t
	d.res.QP++
	g.refs++
	g.targets[t.qpn] = t
	return t, nil
}

// open is __ib_open_qp and what uverbs counts of it.
func (t *target) open(u *Ucontext, x *xrcd, cookie uint64) *targetHandle {
	h := &targetHandle{u: u, of: t, via: x, cookie: cookie}
	x.refs++
	t.users = append(t.users, h)
	return h
}

// OpenQP is OPEN_QP (ib_uverbs_open_qp): it opens another handle of a target QP. EINVAL: another
// type, or no target QP of that number in the domain. ENOENT: the domain's handle is gone.
func (u *Ucontext) OpenQP(c Caller, domain Handle, qpn uint32, typ verbs.QPType, cookie uint64) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		x, err := lookup[*xrcd](&u.objs, domain, "XRC domain")
		if err != nil {
			return fmt.Errorf("open QP %#x: %w", qpn, err)
		}
		if err := u.dev.p.XRC.sharesHandles(); err != nil {
			return fmt.Errorf("open QP %#x: %w", qpn, err)
		}
		if typ != verbs.QPTXRCRecv {
			return fmt.Errorf("open QP %#x: type %d is not XRC_RECV: %w", qpn, typ, syscall.EINVAL)
		}
		t := x.domain.targets[qpn]
		if any, ok := u.dev.qps[qpn].(*target); ok && u.dev.breaks(rule.TargetIsOpenedInItsDomain) {
			t = any
		}
		if t == nil {
			return fmt.Errorf("open QP %#x: no target QP of the domain: %w", qpn, syscall.EINVAL)
		}
		another := t.open(u, x, cookie)
		another.deaf = u.dev.p.XRC == XRC6_1
		h = u.objs.add(another)
		return nil
	})
	return h, err
}

// destroy closes the handle (__ib_destroy_shared_qp). The QP ends with its last handle, except
// where the end of a process only closes it.
func (h *targetHandle) destroy(k *call) error {
	t := h.of
	stays := k.closes && (k.d.p.XRC == XRC3_2 || k.d.breaks(rule.TargetEndsWithItsLastProcess))
	if len(t.users) == 1 && !stays || k.d.breaks(rule.TargetLivesToItsLastHandle) && t.domain.targets[t.qpn] == t {
		if err := k.endTarget(t); err != nil {
			return err
		}
	}
	t.forget(h)
	h.via.refs--
	h.u.async.forget(&h.asyncSeen)
	return nil
}

// forget takes a user off the list.
func (t *target) forget(x targetUser) {
	t.users = slices.DeleteFunc(t.users, func(y targetUser) bool { return y == x })
}

// endTarget takes a target QP from the device and from its domain.
func (k *call) endTarget(t *target) error {
	if err := t.remove(k); err != nil {
		return err
	}
	g := t.domain
	g.refs--
	delete(g.targets, t.qpn)
	return nil
}

// event tells every handle (__ib_shared_qp_event_handler), or every registered process. Of a QP
// that is the kernel's alone it goes to the log, as the proposal of 2007 has it.
func (t *target) event(e prm.EQE) bool {
	typ, ok := qpEvents[e.Type()]
	if !ok || e.QueueType() != prm.EventQueueQP {
		return false
	}
	if len(t.users) == 0 {
		t.dev.count.LoggedEvents++
	}
	for _, x := range t.users {
		if !t.dev.breaks(rule.TargetEventsReachItsHandles) {
			x.tell(typ)
		}
	}
	return true
}
