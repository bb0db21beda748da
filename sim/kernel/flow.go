package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Flow steering is the driver's flow tables (hw/mlx5/fs.c over core/fs_core.c): for each priority a
// table, in which the rules with the same mask are a group. The misses of a table go to that of the
// next priority, and the first one is the root. Tables, groups and entries are there as long as a
// rule needs them.

// Sizes of a table (MLX5_FS_MAX_ENTRIES, MLX5_FS_MAX_TYPES): the groups that are made first share
// it but for a part in which those made later have room for one rule.
const (
	maxLogFlowTable = 16
	flowGroups      = 6
)

// Priorities of the driver. Those of programs are up to flowLastPriority (MLX5_IB_FLOW_LAST_PRIO),
// each with a place before it for rules that let packets continue. Rules of multicast packets
// (MLX5_IB_FLOW_MCAST_PRIO) come after all others, and the default rules last.
const (
	flowLastPriority = 15
	flowMulticast    = 2 * (flowLastPriority + 1)
	flowDefaults     = flowMulticast + 1
	flowTables       = flowDefaults + 1

	flowEgress = flowTables // the only one of packets that are sent, in a chain of its own
)

// flowMask is the headers that a rule looks at, or their values (prm.FlowHeaders).
type flowMask [prm.FlowHeadersSize]byte

// flowTable is the table of a priority.
type flowTable struct {
	kind   uint32 // prm.FlowTableNICReceive or FlowTableNICTransmit
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

// flowEntry is what rules with the same value share: packets go where all lead.
type flowEntry struct {
	index uint32
	value flowMask
	flowActs
	goals []flowGoal // of all rules, as often as they ask for it
	rules int
}

// conflicts says whether a rule cannot share the entry (check_conflicting_ftes).
func (e *flowEntry) conflicts(w *flowWish) bool {
	a, b := e.flowActs, w.flowActs
	a.tag, b.tag, a.tagged, b.tagged = 0, 0, false, false
	return a != b || w.tagged && e.tag != w.tag
}

// flowActs is what is done with packets besides sending them on.
type flowActs struct {
	tag             uint32
	tagged          bool // a rule asks for the tag
	drop, decap     bool
	rewrite, tunnel uint32 // header changes and headers, by number; 0: none
}

// flowGoal is where packets go: a TIR or a table (prm.FlowToTIR, FlowToTable), or a counter that
// counts them.
type flowGoal struct{ kind, id uint32 }

// flowToCounter is the kind of a goal that is none in commands.
const flowToCounter = 1 << 8

// flowWish is an entry that a rule needs.
type flowWish struct {
	prio        int
	mask, value flowMask
	flowActs
	goals []flowGoal
}

// defaultFlowTag is the tag of packets for which no rule gives one (MLX5_FS_DEFAULT_FLOW_TAG).
const defaultFlowTag = 0

// add adds the entry of a rule.
func (d *Device) addFlow(k *call, w flowWish) (p flowPart, err error) {
	if d.breaks(rule.FlowsMatchByTheirMask) {
		prm.FlowHeaders(w.mask[:]).DstIP()[15] = 0
	}
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
	case e.conflicts(&w):
		return p, fmt.Errorf("a rule with the same value has another tag or does something else: %w", syscall.EEXIST)
	default:
		goals := append(slices.Clone(e.goals), w.goals...)
		if d.breaks(rule.FlowsShareTheirEntry) {
			goals = w.goals
		}
		if err := t.set(k, g, e, goals, prm.FlowEntryChange); err != nil {
			return p, err
		}
		e.goals = goals
	}
	e.rules++
	return flowPart{t, g, e, w.goals}, nil
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
	e := &flowEntry{index: g.start, value: w.value, flowActs: w.flowActs, goals: slices.Clone(w.goals)}
	at := 0
	for at < len(g.entries) && g.entries[at].index == e.index { // the first free place
		e.index++
		at++
	}
	if err := t.set(k, g, e, e.goals, prm.FlowEntrySet); err != nil {
		return nil, nil, t.tidyGroup(k, g, err)
	}
	g.entries = slices.Insert(g.entries, at, e)
	return g, e, nil
}

// set writes an entry with its goals.
func (t *flowTable) set(k *call, g *flowGroup, e *flowEntry, goals []flowGoal, mod uint16) error {
	// Several rules may lead to one. Counters are last in the list.
	goals = slices.Compact(slices.SortedFunc(slices.Values(goals), func(a, b flowGoal) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	}))
	in := prm.NewIn(prm.OpSetFlowEntry, prm.FlowDestinationSize*len(goals))
	prm.CmdIn(in).SetOpMod(mod)
	m := prm.SetFlowEntryIn(in)
	m.SetTableType(t.kind)
	m.SetTableID(t.id)
	m.SetFlowIndex(e.index)
	if mod == prm.FlowEntryChange {
		m.SetModifyEnableMask(prm.FlowChangeAction | prm.FlowChangeDestinations | prm.FlowChangeCounters)
	}
	c := m.Context()
	c.SetGroupID(g.id)
	c.SetFlowTag(e.tag)
	copy(c.MatchValue(), e.value[:])
	act := e.fill(c)
	for i, n := range goals {
		if n.kind == flowToCounter {
			m.List().SetCounter(i, n.id)
			c.SetCounters(c.Counters() + 1)
			act |= prm.FlowActionCount
			continue
		}
		m.List().At(i).SetType(n.kind)
		m.List().At(i).SetID(n.id)
		c.SetDestinations(c.Destinations() + 1)
		act |= prm.FlowActionForward
	}
	if act&(prm.FlowActionForward|prm.FlowActionDrop) == 0 {
		if act |= prm.FlowActionDrop; t.kind == prm.FlowTableNICTransmit {
			act ^= prm.FlowActionDrop | prm.FlowActionAllow
		}
	}
	c.SetAction(act)
	return k.exec(in, prm.NewOut(prm.OpSetFlowEntry, 0))
}

// fill describes what is done with packets.
func (a *flowActs) fill(c prm.FlowContext) (act uint32) {
	if a.drop {
		act |= prm.FlowActionDrop
	}
	if a.decap {
		act |= prm.FlowActionDecap
	}
	if a.rewrite != 0 {
		act |= prm.FlowActionModifyHeader
		c.SetModifyHeaderID(a.rewrite)
	}
	if a.tunnel != 0 {
		act |= prm.FlowActionReformat
		c.SetReformatID(a.tunnel)
	}
	return act
}

// newGroup makes a group at the first place that is free (mlx5_core's groups by itself,
// alloc_auto_flow_group).
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
	m.SetTableType(t.kind)
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
	if prio == flowEgress {
		t.kind = prm.FlowTableNICTransmit
	}
	before, after := d.flowNeighbours(prio)
	in, out := prm.NewIn(prm.OpCreateFlowTable, 0), prm.NewOut(prm.OpCreateFlowTable, 0)
	m := prm.CreateFlowTableIn(in)
	m.SetTableType(t.kind)
	c := m.Context()
	c.SetReformatEn(d.caps.steering.reformat) // _get_prio asks for what the device can do
	c.SetDecapEn(d.caps.steering.reformat && t.kind == prm.FlowTableNICReceive)
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
	if err := d.leadTo(k, t.kind, before, t); err != nil {
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
		case t == nil || i == prio || (i == flowEgress) != (prio == flowEgress):
		case i < prio:
			before = t
		case after == nil:
			after = t
		}
	}
	return before, after
}

// leadTo has the misses of a table go to another one, or makes that the root where there is no
// table before it. No table to lead to is the end of the chain.
func (d *Device) leadTo(k *call, kind uint32, before, to *flowTable) error {
	if before == nil {
		in := prm.NewIn(prm.OpSetFlowTableRoot, 0)
		m := prm.SetFlowTableRootIn(in)
		m.SetTableType(kind)
		if to != nil {
			m.SetTableID(to.id)
		} else {
			prm.CmdIn(in).SetOpMod(prm.FlowRootTake)
		}
		return k.exec(in, prm.NewOut(prm.OpSetFlowTableRoot, 0))
	}
	in := prm.NewIn(prm.OpModifyFlowTable, 0)
	m := prm.ModifyFlowTableIn(in)
	m.SetTableType(kind)
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
	m.SetTableType(t.kind)
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
	m.SetTableType(t.kind)
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
	if e := d.leadTo(k, t.kind, before, after); e != nil {
		return e
	}
	t.destroy(k)
	d.flows[t.prio] = nil
	return err
}
