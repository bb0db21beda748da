package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// Receive QPs by number: the proposal of December 2007, and what OFED 1.3 made of it. The errnos
// are those of public OFED trees (uverbs_cmd.c, xrc code); what a file descriptor or an object
// handle cannot tell apart is the domain's handle.

// registration is a context's use of a receive QP of OFED 1.3.
type registration struct {
	u      *Ucontext
	of     *target
	via    *xrcd
	handle Handle
}

// tell queues an event with the QP's number, which the program tells from a handle's by its type
// (IBV_XRC_QP_EVENT_FLAG).
func (r *registration) tell(t verbs.EventType) {
	r.u.async.put(fileEvent{typ: t, qpn: r.of.qpn})
	r.u.dev.count.AsyncEvents++
}

// destroy ends the use. The QP ends with its last user.
func (r *registration) destroy(k *call) error {
	if len(r.of.users) == 1 {
		if err := k.endTarget(r.of); err != nil {
			return err
		}
	}
	r.of.forget(r)
	r.via.refs--
	return nil
}

// register makes a context a user of a receive QP.
func (u *Ucontext) register(x *xrcd, t *target) {
	r := &registration{u: u, of: t, via: x}
	r.handle = u.objs.add(r)
	x.refs++
	t.users = append(t.users, r)
}

// registrationOf is the context's use of a receive QP, or nil.
func (t *target) registrationOf(u *Ucontext) *registration {
	for _, x := range t.users {
		if r, ok := x.(*registration); ok && r.u == u {
			return r
		}
	}
	return nil
}

// rcvQP runs a call that names a receive QP by its number. EINVAL: the domain has none of that
// number.
func (u *Ucontext) rcvQP(c Caller, what string, domain Handle, qpn uint32, f func(k *call, x *xrcd, t *target) error) error {
	return u.do(c, func(k *call) error {
		x, err := u.rcvDomain(what, XRCOFED1_3, domain)
		if err != nil {
			return err
		}
		t := x.domain.targets[qpn]
		if t == nil {
			return fmt.Errorf("%s: the domain has no receive QP %#x: %w", what, qpn, syscall.EINVAL)
		}
		if err := f(k, x, t); err != nil {
			return fmt.Errorf("%s %#x: %w", what, qpn, err)
		}
		return nil
	})
}

func (u *Ucontext) rcvDomain(what string, design XRCEra, domain Handle) (*xrcd, error) {
	if err := u.dev.p.XRC.is(design, what); err != nil {
		return nil, err
	}
	x, err := lookup[*xrcd](&u.objs, domain, "XRC domain")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return x, nil
}

// AllocXRCRcvQP is the proposal's single call: it creates a receive QP that is ready to receive. No
// call queries or destroys the QP. EINVAL: an attribute is missing, or not among those that the
// call takes.
func (u *Ucontext) AllocXRCRcvQP(c Caller, domain Handle, a *verbs.QPAttr, mask verbs.QPAttrMask) (qpn uint32, err error) {
	const what = "alloc_xrc_rcv_qp"
	err = u.do(c, func(k *call) error {
		x, err := u.rcvDomain(what, XRCProposal, domain)
		if err != nil {
			return err
		}
		toInit, toRTR := mask&initAttrs[svcXRCRecv], mask&^initAttrs[svcXRCRecv]&^mState
		if rtr := &transitions[verbs.QPSInit][verbs.QPSRTR]; toInit != initAttrs[svcXRCRecv] || !modifyIsOK(verbs.QPSInit, verbs.QPSRTR, svcXRCRecv, toRTR) {
			return fmt.Errorf("%s: attributes %#x: %#x are needed, and %#x are optional: %w", what, uint32(mask),
				uint32(initAttrs[svcXRCRecv]|rtr.must[svcXRCRecv]), uint32(rtr.may[svcXRCRecv]&mAlt), syscall.EINVAL)
		}
		t, err := k.makeTarget(x.domain, noUIDX, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for _, s := range [...]struct {
			to   verbs.QPState
			mask verbs.QPAttrMask
		}{{verbs.QPSInit, toInit}, {verbs.QPSRTR, toRTR}} {
			at := *a
			at.State = s.to
			if err := u.modify(k, &t.qp, &at, s.mask|mState); err != nil {
				if end := k.endTarget(t); end != nil {
					return end
				}
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		qpn = t.qpn
		return nil
	})
	return qpn, err
}

// CreateXRCRcvQP is create_xrc_rcv_qp of OFED 1.3; the context is its first user.
func (u *Ucontext) CreateXRCRcvQP(c Caller, domain Handle) (qpn uint32, err error) {
	const what = "create_xrc_rcv_qp"
	err = u.do(c, func(k *call) error {
		x, err := u.rcvDomain(what, XRCOFED1_3, domain)
		if err != nil {
			return err
		}
		t, err := k.makeTarget(x.domain, noUIDX, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		u.register(x, t)
		qpn = t.qpn
		return nil
	})
	return qpn, err
}

// ModifyXRCRcvQP is modify_xrc_rcv_qp: ModifyQP by number.
func (u *Ucontext) ModifyXRCRcvQP(c Caller, domain Handle, qpn uint32, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return u.rcvQP(c, "modify_xrc_rcv_qp", domain, qpn, func(k *call, _ *xrcd, t *target) error {
		return u.modify(k, &t.qp, a, mask)
	})
}

// QueryXRCRcvQP is query_xrc_rcv_qp: QueryQP by number.
func (u *Ucontext) QueryXRCRcvQP(c Caller, domain Handle, qpn uint32) (a verbs.QPAttr, err error) {
	err = u.rcvQP(c, "query_xrc_rcv_qp", domain, qpn, func(k *call, _ *xrcd, t *target) (err error) {
		a, err = t.query(k)
		return err
	})
	return a, err
}

// RegXRCRcvQP is reg_xrc_rcv_qp: it makes the context a user of the QP; registering twice counts
// once.
func (u *Ucontext) RegXRCRcvQP(c Caller, domain Handle, qpn uint32) error {
	return u.rcvQP(c, "reg_xrc_rcv_qp", domain, qpn, func(_ *call, x *xrcd, t *target) error {
		if t.registrationOf(u) == nil {
			u.register(x, t)
		}
		return nil
	})
}

// UnregXRCRcvQP is unreg_xrc_rcv_qp. EINVAL: the context is not a user.
func (u *Ucontext) UnregXRCRcvQP(c Caller, domain Handle, qpn uint32) error {
	return u.rcvQP(c, "unreg_xrc_rcv_qp", domain, qpn, func(k *call, _ *xrcd, t *target) error {
		r := t.registrationOf(u)
		if r == nil {
			return fmt.Errorf("not registered: %w", syscall.EINVAL)
		}
		if err := r.destroy(k); err != nil {
			return err
		}
		u.objs.remove(r.handle)
		return nil
	})
}
