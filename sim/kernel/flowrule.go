package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// flowRule is a rule of a program (ib_flow).
type flowRule struct {
	parts   []flowPart
	qp      *qp          // nil: the rule leads to none
	matcher *flowMatcher // nil: of verbs
	actions []*flowAction
}

// flowPart is an entry of a rule with the goals that it has there.
type flowPart struct {
	t     *flowTable
	g     *flowGroup
	e     *flowEntry
	goals []flowGoal
}

func (r *flowRule) destroy(k *call) error {
	for _, p := range r.parts {
		if err := k.d.removeFlow(k, p); err != nil {
			return err
		}
	}
	if r.qp != nil {
		r.qp.packets.flows--
	}
	if r.matcher != nil {
		r.matcher.refs--
	}
	for _, a := range r.actions {
		a.refs--
	}
	return nil
}

// addRule makes a rule of entries that lead to a QP, too, if there is one.
func (u *Ucontext) addRule(k *call, q *qp, m *flowMatcher, wishes ...flowWish) (Handle, *flowRule, error) {
	r := &flowRule{qp: q, matcher: m}
	for _, w := range wishes {
		if q != nil {
			w.goals = append(slices.Clone(w.goals), flowGoal{prm.FlowToTIR, q.packets.tirn})
		}
		p, err := u.dev.addFlow(k, w)
		if err != nil {
			for _, p := range r.parts {
				if e := u.dev.removeFlow(k, p); e != nil {
					return 0, nil, e
				}
			}
			return 0, nil, fmt.Errorf("create flow: %w", err)
		}
		r.parts = append(r.parts, p)
	}
	if q != nil {
		q.packets.flows++
	}
	if m != nil {
		m.refs++
	}
	return u.objs.add(r), r, nil
}

// receiver is a QP that packets can be steered to.
func (u *Ucontext) receiver(h Handle) (*qp, error) {
	x, err := lookup[queuePair](&u.objs, h, "QP")
	if err != nil {
		return nil, err
	}
	q := x.queue()
	if q.packets == nil || q.packets.tirn == 0 {
		return nil, fmt.Errorf("QP %#x receives no raw packets: %w", q.qpn, syscall.EINVAL)
	}
	return q, nil
}

// maySteer is what is checked of each rule. EPERM: no CAP_NET_RAW; EOPNOTSUPP: a device without flow tables.
func (u *Ucontext) maySteer() error {
	switch {
	case !u.proc.NetRaw:
		return fmt.Errorf("flow steering needs CAP_NET_RAW: %w", syscall.EPERM)
	case u.dev.caps.packets.MaxWQ == 0:
		return fmt.Errorf("the device steers no packets: %w", syscall.EOPNOTSUPP)
	}
	return nil
}

// DestroyFlow is DESTROY_FLOW.
func (u *Ucontext) DestroyFlow(c Caller, h Handle) error {
	return destroyByHandle[*flowRule](u, c, h, "flow")
}
