package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// Flow steering is the driver's flow tables (hw/mlx5/fs.c over core/fs_core.c): for each priority a table, in which the rules with the same
// mask are a group. The misses of a table go to that of the next priority, and the first one is the root. Tables, groups and entries are
// there as long as a rule needs them.

// Sizes of a table (MLX5_FS_MAX_ENTRIES, MLX5_FS_MAX_TYPES): the groups that are made first share it but for a part in which those made
// later have room for one rule.
const (
	maxLogFlowTable = 16
	flowGroups      = 6
)

// Priorities of the driver (MLX5_IB_FLOW_MCAST_PRIO, MLX5_IB_FLOW_LAST_PRIO): rules of multicast packets come after all others, and the
// default rules last.
const (
	flowMulticast = 15
	flowDefaults  = 16
	flowTables    = 17
)

// flowMask is the headers that a rule looks at, or their values (prm.FlowHeaders).
type flowMask [prm.FlowHeadersSize]byte

// flowTable is the table of a priority.
type flowTable struct {
	prio   int
	id     uint32
	size   uint32
	groups []*flowGroup
}

// flowGroup is the rules of a table with the same mask.
type flowGroup struct {
	id, start, room uint32
	mask            flowMask
	entries         []*flowEntry
}

// flowEntry is what rules with the same value share: packets go to the TIRs of all.
type flowEntry struct {
	index uint32
	value flowMask
	tag   uint32
	drop  bool
	tirs  []uint32
}

// flowRule is a rule of a program (ib_flow).
type flowRule struct {
	parts   []flowPart
	qp      *qp          // nil: the rule drops
	matcher *flowMatcher // nil: of verbs
}

// flowPart is an entry of a rule with the TIR that it leads to.
type flowPart struct {
	t    *flowTable
	g    *flowGroup
	e    *flowEntry
	tirn uint32
}

// flowWish is an entry that a rule needs.
type flowWish struct {
	prio        int
	mask, value flowMask
	tag         uint32
	drop        bool
	tirn        uint32
}

// defaultFlowTag is the tag of packets for which no rule gives one (MLX5_FS_DEFAULT_FLOW_TAG).
const defaultFlowTag = 0

// add adds the entry of a rule.
func (d *Device) addFlow(k *call, w flowWish) (p flowPart, err error) {
	for i := range w.value {
		w.value[i] &= w.mask[i]
	}
	t := d.flows[w.prio]
	if t == nil {
		if t, err = d.newFlowTable(k, w.prio); err != nil {
			return p, err
		}
	}
	g, e := t.find(&w)
	switch {
	case e == nil:
		if g, e, err = t.insert(k, g, &w); err != nil {
			return p, d.tidyFlows(k, t, nil, err)
		}
	case e.tag != w.tag || e.drop || w.drop:
		return p, fmt.Errorf("a rule with the same value has another tag or does something else: %w", syscall.EEXIST)
	default:
		tirs := append(slices.Clone(e.tirs), w.tirn)
		if err := t.set(k, g, e, tirs, prm.FlowEntryChange); err != nil {
			return p, err
		}
		e.tirs = tirs
	}
	return flowPart{t, g, e, w.tirn}, nil
}

// find is the group and the entry of a wish, or nil; the group has room if it has no such entry.
func (t *flowTable) find(w *flowWish) (with *flowGroup, e *flowEntry) {
	for _, g := range t.groups {
		if g.mask != w.mask {
			continue
		}
		for _, e := range g.entries {
			if e.value == w.value {
				return g, e
			}
		}
		if uint32(len(g.entries)) < g.room {
			with = g
		}
	}
	return with, nil
}

// insert makes an entry, and a group for it when there is none.
func (t *flowTable) insert(k *call, g *flowGroup, w *flowWish) (*flowGroup, *flowEntry, error) {
	if g == nil {
		var err error
		if g, err = t.newGroup(k, w.mask); err != nil {
			return nil, nil, err
		}
	}
	e := &flowEntry{index: g.start, value: w.value, tag: w.tag, drop: w.drop}
	at := 0
	for at < len(g.entries) && g.entries[at].index == e.index { // the first free place
		e.index++
		at++
	}
	if !w.drop {
		e.tirs = []uint32{w.tirn}
	}
	if err := t.set(k, g, e, e.tirs, prm.FlowEntrySet); err != nil {
		return nil, nil, t.tidyGroup(k, g, err)
	}
	g.entries = slices.Insert(g.entries, at, e)
	return g, e, nil
}

// set writes an entry with the TIRs that it leads to.
func (t *flowTable) set(k *call, g *flowGroup, e *flowEntry, tirs []uint32, mod uint16) error {
	tirs = slices.Compact(slices.Sorted(slices.Values(tirs))) // several rules may lead to one
	in := prm.NewIn(prm.OpSetFlowEntry, prm.FlowDestinationSize*len(tirs))
	prm.CmdIn(in).SetOpMod(mod)
	m := prm.SetFlowEntryIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(t.id)
	m.SetFlowIndex(e.index)
	if mod == prm.FlowEntryChange {
		m.SetModifyEnableMask(prm.FlowChangeAction | prm.FlowChangeDestinations)
	}
	c := m.Context()
	c.SetGroupID(g.id)
	c.SetFlowTag(e.tag)
	c.SetAction(prm.FlowActionForward)
	if len(tirs) == 0 {
		c.SetAction(prm.FlowActionDrop)
	}
	c.SetDestinations(uint32(len(tirs)))
	copy(c.MatchValue(), e.value[:])
	for i, n := range tirs {
		m.List().At(i).SetType(prm.FlowToTIR)
		m.List().At(i).SetID(n)
	}
	return k.exec(in, prm.NewOut(prm.OpSetFlowEntry, 0))
}

// newGroup makes a group at the first place that is free (mlx5_core's groups by itself, alloc_auto_flow_group).
func (t *flowTable) newGroup(k *call, mask flowMask) (*flowGroup, error) {
	share := t.size / (flowGroups + 1)
	g := &flowGroup{mask: mask, room: share}
	at := 0
	for at < len(t.groups) && t.groups[at].start == g.start {
		g.start += t.groups[at].room
		if at++; at >= flowGroups {
			g.room = 1
		}
	}
	if g.start+g.room > t.size {
		return nil, fmt.Errorf("no room for another mask: %w", syscall.ENOSPC)
	}
	in, out := prm.NewIn(prm.OpCreateFlowGroup, 0), prm.NewOut(prm.OpCreateFlowGroup, 0)
	m := prm.CreateFlowGroupIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(t.id)
	m.SetStart(g.start)
	m.SetEnd(g.start + g.room - 1)
	if mask != (flowMask{}) {
		m.SetCriteriaEnable(prm.FlowMatchOuter)
	}
	copy(m.MatchCriteria(), mask[:])
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	g.id = prm.CreateFlowGroupOut(out).GroupID()
	t.groups = slices.Insert(t.groups, at, g)
	return g, nil
}

// newFlowTable makes the table of a priority and puts it in its place in the chain.
func (d *Device) newFlowTable(k *call, prio int) (*flowTable, error) {
	t := &flowTable{prio: prio, size: 1 << d.caps.logFlowTable}
	before, after := d.flowNeighbours(prio)
	in, out := prm.NewIn(prm.OpCreateFlowTable, 0), prm.NewOut(prm.OpCreateFlowTable, 0)
	m := prm.CreateFlowTableIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	c := m.Context()
	c.SetLevel(uint32(prio) + 1)
	c.SetLogSize(d.caps.logFlowTable)
	if after != nil {
		c.SetMissAction(prm.FlowMissForward)
		c.SetMissID(after.id)
	}
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	t.id = prm.CreateFlowTableOut(out).TableID()
	if err := d.leadTo(k, before, t); err != nil {
		t.destroy(k)
		return nil, err
	}
	d.flows[prio] = t
	return t, nil
}

// flowNeighbours are the tables before and after a priority, or nil.
func (d *Device) flowNeighbours(prio int) (before, after *flowTable) {
	for i, t := range d.flows {
		switch {
		case t == nil || i == prio:
		case i < prio:
			before = t
		case after == nil:
			after = t
		}
	}
	return before, after
}

// leadTo has the misses of a table go to another one, or makes that the root where there is no table before it. No table to lead to is the end
// of the chain.
func (d *Device) leadTo(k *call, before, to *flowTable) error {
	if before == nil {
		in := prm.NewIn(prm.OpSetFlowTableRoot, 0)
		m := prm.SetFlowTableRootIn(in)
		m.SetTableType(prm.FlowTableNICReceive)
		if to != nil {
			m.SetTableID(to.id)
		} else {
			prm.CmdIn(in).SetOpMod(prm.FlowRootTake)
		}
		return k.exec(in, prm.NewOut(prm.OpSetFlowTableRoot, 0))
	}
	in := prm.NewIn(prm.OpModifyFlowTable, 0)
	m := prm.ModifyFlowTableIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(before.id)
	m.SetFieldSelect(prm.FlowTableMissID)
	if to != nil {
		m.Context().SetMissAction(prm.FlowMissForward)
		m.Context().SetMissID(to.id)
	}
	return k.exec(in, prm.NewOut(prm.OpModifyFlowTable, 0))
}

func (t *flowTable) destroy(k *call) {
	in := prm.NewIn(prm.OpDestroyFlowTable, 0)
	m := prm.DestroyFlowTableIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(t.id)
	k.mustDestroy(in)
}

// tidyGroup takes a group away that has no rules, and returns err.
func (t *flowTable) tidyGroup(k *call, g *flowGroup, err error) error {
	if len(g.entries) > 0 {
		return err
	}
	in := prm.NewIn(prm.OpDestroyFlowGroup, 0)
	m := prm.DestroyFlowGroupIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(t.id)
	m.SetGroupID(g.id)
	k.mustDestroy(in)
	t.groups = slices.DeleteFunc(t.groups, func(x *flowGroup) bool { return x == g })
	return err
}

// tidyFlows takes a group and a table away that have no rules, and returns err.
func (d *Device) tidyFlows(k *call, t *flowTable, g *flowGroup, err error) error {
	if g != nil {
		_ = t.tidyGroup(k, g, nil)
	}
	if len(t.groups) > 0 {
		return err
	}
	before, after := d.flowNeighbours(t.prio)
	if e := d.leadTo(k, before, after); e != nil {
		return e
	}
	t.destroy(k)
	d.flows[t.prio] = nil
	return err
}

// removeFlow takes the entry of a rule away, or what of it is the rule's.
func (d *Device) removeFlow(k *call, p flowPart) error {
	tirs := slices.Clone(p.e.tirs)
	if i := slices.Index(tirs, p.tirn); i >= 0 {
		tirs = slices.Delete(tirs, i, i+1)
	}
	if len(tirs) > 0 {
		p.e.tirs = tirs
		return p.t.set(k, p.g, p.e, tirs, prm.FlowEntryChange)
	}
	in := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	m := prm.DeleteFlowEntryIn(in)
	m.SetTableType(prm.FlowTableNICReceive)
	m.SetTableID(p.t.id)
	m.SetFlowIndex(p.e.index)
	if err := k.destroy(in); err != nil {
		return err
	}
	p.g.entries = slices.DeleteFunc(p.g.entries, func(x *flowEntry) bool { return x == p.e })
	return d.tidyFlows(k, p.t, p.g, nil)
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
	return nil
}

// addRule makes a rule of entries for a QP; nil: the rule drops.
func (u *Ucontext) addRule(k *call, q *qp, m *flowMatcher, wishes ...flowWish) (Handle, error) {
	r := &flowRule{qp: q, matcher: m}
	for _, w := range wishes {
		if q != nil {
			w.tirn = q.packets.tirn
		} else {
			w.drop = true
		}
		p, err := u.dev.addFlow(k, w)
		if err != nil {
			for _, p := range r.parts {
				if e := u.dev.removeFlow(k, p); e != nil {
					return 0, e
				}
			}
			return 0, fmt.Errorf("create flow: %w", err)
		}
		r.parts = append(r.parts, p)
	}
	if q != nil {
		q.packets.flows++
	}
	if m != nil {
		m.refs++
	}
	return u.objs.add(r), nil
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

// flowMatcher is a mask for rules in the terms of the device (MLX5_IB_OBJECT_FLOW_MATCHER).
type flowMatcher struct {
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

// CreateFlowMatcher is MLX5_IB_METHOD_FLOW_MATCHER_CREATE of received packets. mask is of the device's match parameters, of which those of
// criteria count. EOPNOTSUPP: others than the outer headers, which the device has no tables for.
func (u *Ucontext) CreateFlowMatcher(c Caller, prio uint16, criteria uint8, mask []byte) (h Handle, err error) {
	err = u.do(c, func(*call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		m := &flowMatcher{}
		if criteria&^prm.FlowMatchOuter != 0 {
			return fmt.Errorf("matcher of headers %#x: %w", criteria, syscall.EOPNOTSUPP)
		}
		if criteria != 0 {
			copy(m.mask[:], mask)
		}
		if m.prio, err = flowPriority(prio, m.mask[:], m.mask[:]); err == nil {
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

// CreateMatchedFlow is MLX5_IB_METHOD_CREATE_FLOW: packets with the value of a matcher's fields go to a QP with a tag, or are dropped.
func (u *Ucontext) CreateMatchedFlow(c Caller, matcher Handle, value []byte, to Handle, drop bool, tag uint32) (h Handle, err error) {
	err = u.do(c, func(k *call) error {
		if err := u.maySteer(); err != nil {
			return err
		}
		m, err := lookup[*flowMatcher](&u.objs, matcher, "flow matcher")
		if err != nil {
			return err
		}
		var q *qp
		if !drop {
			if q, err = u.receiver(to); err != nil {
				return err
			}
		}
		w := flowWish{prio: m.prio, mask: m.mask, tag: tag}
		copy(w.value[:], value)
		h, err = u.addRule(k, q, m, w)
		return err
	})
	return h, err
}

// flowPriority is the driver's priority of a program's (ib_prio_to_core_prio; flow_is_multicast_only for rules of multicast addresses).
func flowPriority(prio uint16, mask, value []byte) (int, error) {
	m, v := prm.FlowHeaders(mask), prm.FlowHeaders(value)
	const group = 1 << 24
	if m.DMACHigh()&group != 0 && v.DMACHigh()&group != 0 {
		return flowMulticast, nil
	}
	if p := 2*int(prio) + 1; p < flowMulticast {
		return p, nil
	}
	return 0, fmt.Errorf("priority %d: %w", prio, syscall.ENOSPC)
}
