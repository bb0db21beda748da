package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// flowRule is a rule of a program (ib_flow).
type flowRule struct {
	parts   []flowPart
	qp      *qp          // of the rule; nil: none
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
		// The QP's last rule leaves nothing of the QP on the device: that would refuse to let it
		// go.
		if k.d.breaks(rule.DestroyedFlowsAreGone) && p.e.rules > 1 && r.qp != nil && r.qp.packets.flows > 1 {
			p.goals = nil
		}
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

// addRule makes a rule that a QP has, if there is one, of entries that lead to dest, too, if there
// is one.
func (u *Ucontext) addRule(k *call, q, dest *qp, m *flowMatcher, wishes ...flowWish) (Handle, *flowRule, error) {
	r := &flowRule{qp: q, matcher: m}
	for _, w := range wishes {
		if dest != nil {
			w.goals = append(slices.Clone(w.goals), flowGoal{prm.FlowToTIR, dest.packets.tirn})
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

// maySteer is what is checked of each rule. EPERM: no CAP_NET_RAW; EOPNOTSUPP: a device without
// flow tables.
func (u *Ucontext) maySteer() error {
	switch {
	case !u.proc.NetRaw && !u.dev.breaks(rule.FlowsNeedTheRight):
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

// removeFlow takes the entry of a rule away, or what of it is the rule's.
func (d *Device) removeFlow(k *call, p flowPart) error {
	goals := slices.Clone(p.e.goals)
	for _, x := range p.goals {
		if i := slices.Index(goals, x); i >= 0 {
			goals = slices.Delete(goals, i, i+1)
		}
	}
	if p.e.rules > 1 {
		if err := p.t.set(k, p.g, p.e, goals, prm.FlowEntryChange); err != nil {
			return err
		}
		p.e.goals = goals
		p.e.rules--
		return nil
	}
	in := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	m := prm.DeleteFlowEntryIn(in)
	m.SetTableType(p.t.kind)
	m.SetTableID(p.t.id)
	m.SetFlowIndex(p.e.index)
	if err := k.destroy(in); err != nil {
		return err
	}
	p.g.entries = slices.DeleteFunc(p.g.entries, func(x *flowEntry) bool { return x == p.e })
	return d.tidyFlows(k, p.t, p.g, nil)
}
