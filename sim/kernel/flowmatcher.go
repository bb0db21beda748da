package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// flowMatcher is a mask for rules in the terms of the device (MLX5_IB_OBJECT_FLOW_MATCHER).
type flowMatcher struct {
	kind uint32
	prio int
	mask flowMask
	refs int
}

func (m *flowMatcher) destroy(*call) error {
	if m.refs > 0 {
		return fmt.Errorf("%d flows: %w", m.refs, syscall.EBUSY)
	}
	return nil
}

// CreateFlowMatcher is MLX5_IB_METHOD_FLOW_MATCHER_CREATE for received packets or, with sent, for
// sent ones. mask has the form of the device's match parameters, of which criteria selects some.
// EOPNOTSUPP: parameters other than the outer headers, or a kind for which the device has no
// tables; ENOMEM, EINVAL: a priority that does not exist.
func (u *Ucontext) CreateFlowMatcher(c Caller, sent bool, prio uint16, criteria uint8, mask []byte) (h Handle, err error) {
	err = u.do(c, func(*call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		m := &flowMatcher{}
		if sent && !u.dev.caps.steering.sends {
			return fmt.Errorf("matcher of packets that are sent: %w", syscall.EOPNOTSUPP)
		}
		if criteria&^prm.FlowMatchOuter != 0 {
			return fmt.Errorf("matcher of headers %#x: %w", criteria, syscall.EOPNOTSUPP)
		}
		if criteria != 0 {
			copy(m.mask[:], mask)
		}
		switch {
		case !sent:
			m.prio, err = flowPriority(prio, prm.FlowHeaders(m.mask[:]).DMACHigh()&groupBit != 0)
		case prio > 0:
			err = fmt.Errorf("priority %d of packets that are sent: %w", prio, syscall.EINVAL)
		default:
			m.kind, m.prio = prm.FlowTableNICTransmit, flowEgress
		}
		if err == nil {
			h = u.objs.add(m)
		}
		return err
	})
	return h, err
}

// DestroyFlowMatcher is MLX5_IB_METHOD_FLOW_MATCHER_DESTROY: EBUSY while a flow has it.
func (u *Ucontext) DestroyFlowMatcher(c Caller, h Handle) error {
	return destroyByHandle[*flowMatcher](u, c, h, "flow matcher")
}

// MatchedFlow holds the arguments of MLX5_IB_METHOD_CREATE_FLOW: packets that match the value of a
// matcher's fields are counted and changed, and go to a QP, or to a TIR or table that a command has
// created, or are dropped. 0: no such object.
type MatchedFlow struct {
	Matcher, QP, Object Handle
	Value               []byte
	Drop                bool
	Tag                 uint32
	Counters, Actions   []Handle
}

// CreateMatchedFlow is MLX5_IB_METHOD_CREATE_FLOW. EINVAL: sent packets with a QP or TIR as
// destination, received packets without a destination, objects of the wrong kind.
func (u *Ucontext) CreateMatchedFlow(c Caller, r MatchedFlow) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		m, err := lookup[*flowMatcher](&u.objs, r.Matcher, "flow matcher")
		if err != nil {
			return err
		}
		var q *qp
		if r.QP != 0 {
			if q, err = u.receiver(r.QP); err != nil {
				return err
			}
		}
		w := flowWish{prio: m.prio, mask: m.mask, flowActs: flowActs{tag: r.Tag, tagged: r.Tag != 0, drop: r.Drop}}
		copy(w.value[:], r.Value)
		actions, err := u.fillWish(&w, m.kind, &r)
		if err != nil {
			return err
		}
		sent := m.kind == prm.FlowTableNICTransmit
		nowhere := !r.Drop && r.QP == 0 && r.Object == 0
		if sent && (r.QP != 0 || slices.ContainsFunc(w.goals, func(x flowGoal) bool { return x.kind == prm.FlowToTIR })) || !sent && nowhere {
			return fmt.Errorf("flow of packets that are sent: %v, to nowhere: %v: %w", sent, nowhere, syscall.EINVAL)
		}
		var rule *flowRule
		if h, rule, err = u.addRule(k, q, q, m, w); err != nil {
			return err
		}
		for _, a := range actions {
			a.refs++
		}
		rule.actions = actions
		return nil
	})
	return h, err
}

// fillWish finds the objects that a rule names.
func (u *Ucontext) fillWish(w *flowWish, kind uint32, r *MatchedFlow) (actions []*flowAction, err error) {
	if r.Object != 0 {
		o, err := lookup[*devxObject](&u.objs, r.Object, "object of a command")
		if err != nil {
			return nil, err
		}
		to, ok := map[prm.Opcode]uint32{prm.OpCreateFlowTable: prm.FlowToTable, prm.OpCreateTIR: prm.FlowToTIR}[o.made]
		if !ok {
			return nil, fmt.Errorf("a flow to what %v makes: %w", o.made, syscall.EINVAL)
		}
		w.goals = append(w.goals, flowGoal{to, o.num})
	}
	for _, h := range r.Counters {
		o, err := lookup[*devxObject](&u.objs, h, "object of a command")
		if err != nil {
			return nil, err
		}
		if o.made != prm.OpAllocFlowCounter {
			return nil, fmt.Errorf("a flow counted by what %v makes: %w", o.made, syscall.EINVAL)
		}
		w.goals = append(w.goals, flowGoal{flowToCounter, o.num})
	}
	for _, h := range r.Actions {
		a, err := lookup[*flowAction](&u.objs, h, "flow action")
		if err != nil {
			return nil, err
		}
		if err := a.join(&w.flowActs, kind); err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// flowPriority is the driver's priority of a program's (ib_prio_to_core_prio;
// flow_is_multicast_only and raw_fs_is_multicast for rules of multicast addresses).
func flowPriority(prio uint16, multicast bool) (int, error) {
	switch {
	case prio > flowLastPriority:
		return 0, fmt.Errorf("priority %d, above %d: %w", prio, flowLastPriority, syscall.ENOMEM)
	case multicast:
		return flowMulticast, nil
	}
	return 2*int(prio) + 1, nil
}

// groupBit is the bit of an Ethernet address of many, in FlowHeaders.DMACHigh.
const groupBit = 1 << 24
