package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
)

// cmdSetFlowEntry makes an entry, or changes what one does.
func cmdSetFlowEntry(d *Device, in, _ []byte) prm.Status {
	m := prm.SetFlowEntryIn(in)
	t, st := d.nicTable(m.OtherVport(), m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	c, index := m.Context(), m.FlowIndex()
	g, old := t.entry(index)
	switch mod := prm.CmdIn(in).OpMod(); {
	case mod != prm.FlowEntrySet && mod != prm.FlowEntryChange:
		return prm.StatusBadOp
	case g == nil, g != d.nic.steering.group(c.GroupID()), mod == prm.FlowEntryChange && old == nil, mod == prm.FlowEntrySet && old != nil:
		return prm.StatusBadResState
	}
	e, st := d.flowEntry(m, t)
	if st != prm.StatusOK {
		return st
	}
	if old == nil {
		var value flowKey
		copy(value[:], c.MatchValue())
		e.index, e.value = index, g.mask.and(&value)
		i, _ := g.find(index)
		g.entries = slices.Insert(g.entries, i, e)
		e.use(1)
		return prm.StatusOK
	}
	old.change(e, m.ModifyEnableMask())
	return prm.StatusOK
}

// flowEntry is what an entry of a table is to do.
func (d *Device) flowEntry(m prm.SetFlowEntryIn, t *flowTable) (*flowEntry, prm.Status) {
	const (
		plain  = prm.FlowActionAllow | prm.FlowActionDrop | prm.FlowActionForward | prm.FlowActionCount
		change = prm.FlowActionReformat | prm.FlowActionDecap | prm.FlowActionModifyHeader
	)
	actions := uint32(plain)
	if d.p.SWSteering {
		actions |= change
	}
	c, list := m.Context(), m.List()
	act, to, counters := c.Action(), int(c.Destinations()), int(c.Counters())
	forward, drop := act&prm.FlowActionForward != 0, act&prm.FlowActionDrop != 0
	leaves := t.kind == prm.FlowTableNICTransmit && act&(prm.FlowActionAllow|prm.FlowActionForward|prm.FlowActionDrop) == prm.FlowActionAllow
	if act&^actions != 0 || forward == drop && !leaves || forward != (to > 0) || (act&prm.FlowActionCount != 0) != (counters > 0) ||
		to > 1<<logFlowDestinations || counters > 1<<1 || to+counters > list.Count() || c.ExtendedDestination() || m.IgnoreFlowLevel() {
		return nil, prm.StatusBadParam
	}
	e := &flowEntry{tag: c.FlowTag(), drop: drop, allow: leaves}
	if st := d.addChanges(e, c, t); st != prm.StatusOK {
		return nil, st
	}
	for i := range to {
		if st := d.addDestination(e, list.At(i), t); st != prm.StatusOK {
			return nil, st
		}
	}
	for i := range counters {
		x := d.nic.steering.counter(list.Counter(to + i))
		if x == nil {
			return nil, prm.StatusBadResState
		}
		e.counters = append(e.counters, x)
	}
	return e, prm.StatusOK
}

// addChanges has an entry of a table change packets.
func (d *Device) addChanges(e *flowEntry, c prm.FlowContext, t *flowTable) prm.Status {
	s, act := &d.nic.steering, c.Action()
	if act&prm.FlowActionModifyHeader != 0 {
		if e.rewrite = numbered(s.rewrites, c.ModifyHeaderID()); e.rewrite == nil {
			return prm.StatusBadResState
		}
		if e.rewrite.kind != t.kind {
			return prm.StatusBadParam
		}
	}
	if act&(prm.FlowActionReformat|prm.FlowActionDecap) == 0 {
		return prm.StatusOK
	}
	if !t.reformats || act&prm.FlowActionDecap != 0 && t.kind != prm.FlowTableNICReceive {
		return prm.StatusBadParam
	}
	e.decap = act&prm.FlowActionDecap != 0
	if act&prm.FlowActionReformat != 0 {
		if e.tunnel = numbered(s.tunnels, c.ReformatID()); e.tunnel == nil {
			return prm.StatusBadResState
		}
	}
	return prm.StatusOK
}

// addDestination adds a destination to an entry of a table.
func (d *Device) addDestination(e *flowEntry, x prm.FlowDestination, t *flowTable) prm.Status {
	switch x.Type() {
	case prm.FlowToTable:
		next := d.nic.steering.table(x.ID())
		switch {
		case next == nil:
			return prm.StatusBadResState
		case next.kind != t.kind || next.level <= t.level:
			return prm.StatusBadParam
		}
		e.tables = append(e.tables, next)
	case prm.FlowToTIR:
		r := numbered(d.nic.tirs, x.ID())
		switch {
		case r == nil:
			return prm.StatusBadResState
		case t.kind != prm.FlowTableNICReceive:
			return prm.StatusBadParam
		}
		e.tirs = append(e.tirs, r)
	default:
		return prm.StatusBadParam
	}
	return prm.StatusOK
}

// change takes over what of another entry is selected.
func (e *flowEntry) change(to *flowEntry, sel uint32) {
	e.use(-1)
	if sel&prm.FlowChangeTag != 0 {
		e.tag = to.tag
	}
	if sel&(prm.FlowChangeAction|prm.FlowChangeDestinations) != 0 {
		e.drop, e.allow, e.tables, e.tirs = to.drop, to.allow, to.tables, to.tirs
	}
	if sel&prm.FlowChangeAction != 0 {
		e.decap, e.rewrite, e.tunnel = to.decap, to.rewrite, to.tunnel
	}
	if sel&(prm.FlowChangeAction|prm.FlowChangeCounters) != 0 {
		e.counters = to.counters
	}
	e.use(1)
}

func cmdDeleteFlowEntry(d *Device, in, _ []byte) prm.Status {
	m := prm.DeleteFlowEntryIn(in)
	t, st := d.nicTable(m.OtherVport(), m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	g, e := t.entry(m.FlowIndex())
	if e == nil {
		return prm.StatusBadResState
	}
	e.use(-1)
	i, _ := g.find(e.index)
	g.entries = slices.Delete(g.entries, i, i+1)
	return prm.StatusOK
}
