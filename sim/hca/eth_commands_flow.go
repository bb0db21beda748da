package hca

import (
	"math/bits"
	"slices"

	"github.com/rdmasim/rdmasim/prm"
)

// hasTables says whether the device has flow tables of a kind.
func (d *Device) hasTables(kind uint32) bool {
	return kind == prm.FlowTableNICReceive || kind == prm.FlowTableNICTransmit && d.p.SWSteering
}

// nicTable is the flow table that a command names, and whether it can name one.
func (d *Device) nicTable(other bool, kind, id uint32) (*flowTable, prm.Status) {
	if other || !d.hasTables(kind) {
		return nil, prm.StatusBadParam
	}
	t := d.nic.steering.table(id)
	if t == nil || t.kind != kind {
		return nil, prm.StatusBadResState
	}
	return t, prm.StatusOK
}

// entriesOf is nicTable of a table whose entries commands write.
func (d *Device) entriesOf(other bool, kind, id uint32) (*flowTable, prm.Status) {
	t, st := d.nicTable(other, kind, id)
	if st == prm.StatusOK && t.sw {
		return nil, prm.StatusBadParam
	}
	return t, st
}

func cmdSetFlowTableRoot(d *Device, in, _ []byte) prm.Status {
	m := prm.SetFlowTableRootIn(in)
	if m.UnderlayQPN() != 0 {
		return prm.StatusBadParam
	}
	switch prm.CmdIn(in).OpMod() {
	case prm.FlowRootSet:
		t, st := d.nicTable(m.OtherVport(), m.TableType(), m.TableID())
		if st == prm.StatusOK {
			d.nic.steering.roots[t.kind] = t
		}
		return st
	case prm.FlowRootTake:
		if m.OtherVport() || !d.hasTables(m.TableType()) {
			return prm.StatusBadParam
		}
		d.nic.steering.roots[m.TableType()] = nil
		return prm.StatusOK
	}
	return prm.StatusBadOp
}

// missOf is where a table's misses go, by its context: to a table of its kind with a higher level,
// or nowhere.
func (d *Device) missOf(c prm.FlowTableContext, kind, level uint32) (*flowTable, prm.Status) {
	switch c.MissAction() {
	case prm.FlowMissDefault:
		return nil, prm.StatusOK
	case prm.FlowMissForward:
		t := d.nic.steering.table(c.MissID())
		switch {
		case t == nil:
			return nil, prm.StatusBadResState
		case t.kind != kind || t.level <= level:
			return nil, prm.StatusBadParam
		}
		return t, prm.StatusOK
	}
	return nil, prm.StatusBadParam
}

func cmdCreateFlowTable(d *Device, in, out []byte) prm.Status {
	m := prm.CreateFlowTableIn(in)
	c, s, sw := m.Context(), &d.nic.steering, d.p.SWSteering
	if m.OtherVport() || !d.hasTables(m.TableType()) || prm.CmdIn(in).OpMod() != 0 || c.Level() > maxFlowLevel || c.LogSize() > logFlowTableSize ||
		!sw && (c.ReformatEn() || c.DecapEn() || c.SWOwner() || c.TerminationTable()) ||
		c.SWOwner() && (c.ReformatEn() || c.DecapEn() || c.MissAction() != prm.FlowMissDefault || !d.memory.icm.holds(c.ICMRoot0(), prm.STESize) || c.ICMRoot0()%prm.STESize != 0) {
		return prm.StatusBadParam
	}
	miss, st := d.missOf(c, m.TableType(), c.Level())
	if st != prm.StatusOK {
		return st
	}
	n, ok := s.tableNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	t := &flowTable{id: n, kind: m.TableType(), level: c.Level(), size: 1 << c.LogSize(), sw: c.SWOwner(), reformats: c.ReformatEn() || c.DecapEn()}
	if t.sw {
		t.at = c.ICMRoot0()
	}
	t.setMiss(miss)
	s.tables = put(s.tables, n, t)
	prm.CreateFlowTableOut(out).SetTableID(n)
	if sw {
		prm.CreateFlowTableOut(out).PutICMAddress(t.address())
	}
	return prm.StatusOK
}

// address is where entries of programs find a table.
func (t *flowTable) address() uint64 {
	if t.sw {
		return t.at
	}
	return icmTables + uint64(t.id)*prm.STESize
}

// cmdQueryFlowTable says of a table what was given, and where entries of programs find it.
func cmdQueryFlowTable(d *Device, in, out []byte) prm.Status {
	m := prm.QueryFlowTableIn(in)
	t, st := d.nicTable(false, m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	c := prm.QueryFlowTableOut(out).Context()
	c.SetLevel(t.level)
	c.SetSWOwner(t.sw)
	c.SetReformatEn(t.reformats)
	c.SetLogSize(uint32(bits.Len32(t.size) - 1))
	if t.miss != nil {
		c.SetMissAction(prm.FlowMissForward)
		c.SetMissID(t.miss.id)
	}
	if d.p.SWSteering {
		c.SetICMRoot0(t.address())
		c.SetICMRoot1(t.address())
	}
	return prm.StatusOK
}

// setMiss has a table's misses go to another one; nil: nowhere.
func (t *flowTable) setMiss(to *flowTable) {
	if to != nil {
		to.users++
	}
	if t.miss != nil {
		t.miss.users--
	}
	t.miss = to
}

func cmdModifyFlowTable(d *Device, in, _ []byte) prm.Status {
	m := prm.ModifyFlowTableIn(in)
	t, st := d.entriesOf(m.OtherVport(), m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	if m.FieldSelect() != prm.FlowTableMissID {
		return prm.StatusBadParam
	}
	miss, st := d.missOf(m.Context(), t.kind, t.level)
	if st == prm.StatusOK {
		t.setMiss(miss)
	}
	return st
}

// cmdDestroyFlowTable may destroy the root: then there is none.
func cmdDestroyFlowTable(d *Device, in, _ []byte) prm.Status {
	m, s := prm.DestroyFlowTableIn(in), &d.nic.steering
	t, st := d.nicTable(m.OtherVport(), m.TableType(), m.TableID())
	switch {
	case st != prm.StatusOK:
		return st
	case t.users > 0 || len(t.group) > 0:
		return prm.StatusBadResState
	case s.roots[t.kind] == t:
		s.roots[t.kind] = nil
	}
	t.setMiss(nil)
	s.tables[t.id] = nil
	s.tableNums.release(t.id)
	return prm.StatusOK
}

func cmdCreateFlowGroup(d *Device, in, out []byte) prm.Status {
	m, s := prm.CreateFlowGroupIn(in), &d.nic.steering
	t, st := d.entriesOf(m.OtherVport(), m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	g := &flowGroup{table: t, start: m.Start(), end: m.End()}
	if m.CriteriaEnable()&prm.FlowMatchOuter != 0 {
		copy(g.mask[:], m.MatchCriteria())
	}
	if m.GroupType() != 0 || m.CriteriaEnable()&^prm.FlowMatchOuter != 0 || g.start > g.end || g.end >= t.size || !matchable.covers(&g.mask) {
		return prm.StatusBadParam
	}
	n, ok := s.groupNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	if !t.insert(g) {
		s.groupNums.release(n)
		return prm.StatusBadParam
	}
	s.groups = put(s.groups, n, g)
	prm.CreateFlowGroupOut(out).SetGroupID(n)
	return prm.StatusOK
}

func cmdDestroyFlowGroup(d *Device, in, _ []byte) prm.Status {
	m, s := prm.DestroyFlowGroupIn(in), &d.nic.steering
	t, st := d.nicTable(m.OtherVport(), m.TableType(), m.TableID())
	if st != prm.StatusOK {
		return st
	}
	n := m.GroupID()
	g := s.group(n)
	if g == nil || g.table != t || len(g.entries) > 0 {
		return prm.StatusBadResState
	}
	t.group = slices.DeleteFunc(t.group, func(x *flowGroup) bool { return x == g })
	s.groups[n] = nil
	s.groupNums.release(n)
	return prm.StatusOK
}

func cmdAllocFlowCounter(d *Device, in, out []byte) prm.Status {
	if prm.AllocFlowCounterIn(in).Bulk() != 0 {
		return prm.StatusBadParam
	}
	s := &d.nic.steering
	n, ok := s.counterNums.alloc()
	if !ok {
		return prm.StatusLimErr
	}
	s.counters = put(s.counters, n, new(flowCounter))
	prm.AllocFlowCounterOut(out).SetID(n)
	return prm.StatusOK
}

func cmdDeallocFlowCounter(d *Device, in, _ []byte) prm.Status {
	n, s := prm.DeallocFlowCounterIn(in).ID(), &d.nic.steering
	c := s.counter(n)
	if c == nil {
		return prm.StatusBadResState
	}
	return destroyed(s.counters, n, c.users, &s.counterNums)
}

// cmdQueryFlowCounter reads one counter, or as many that follow one another as are asked for.
func cmdQueryFlowCounter(d *Device, in, out []byte) prm.Status {
	m, l := prm.QueryFlowCounterIn(in), prm.QueryFlowCounterOut(out).Statistics()
	n := max(1, int(m.Number()))
	if n > l.Count() {
		return prm.StatusBadOutpLen
	}
	for i := range n {
		if d.nic.steering.counter(m.ID()+uint32(i)) == nil {
			return prm.StatusBadResState
		}
	}
	for i := range n {
		c := d.nic.steering.counter(m.ID() + uint32(i))
		l.Set(i, c.packets, c.octets)
		if m.Clear() {
			c.traffic = traffic{}
		}
	}
	return prm.StatusOK
}
