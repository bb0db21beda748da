package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// TestProgramsChangePackets: tags and tunnels begin at the sender and end at the receiver, and
// headers change, by entries of programs and by those of the driver.
func TestProgramsChangePackets(t *testing.T) {
	p := newProgram(t)
	a, b, data := p.a, p.b, p.packet()
	for _, h := range []*netHost{a, b} {
		h.icmAt(icmEntries)
		h.icmAt(icmChanges)
	}
	_, tir := b.tirAddress()
	out := prm.CreateFlowTableOut(a.cmd(swTable(prm.FlowTableNICTransmit, 100, icmEntries))).TableID()
	in := prm.CreateFlowTableOut(b.cmd(swTable(prm.FlowTableNICReceive, 100, icmEntries))).TableID()
	a.root(prm.FlowTableNICTransmit, out)
	b.root(prm.FlowTableNICReceive, in)
	send := func(edit func(e prm.STE)) []byte {
		return ste(prm.STETransmit, func(e prm.STE) { e.PutNext(icmAllowTx, 1); edit(e) })
	}
	receive := func(edit func(e prm.STE)) []byte {
		return ste(prm.STEReceive, func(e prm.STE) { e.PutNext(tir, 1); edit(e) })
	}
	as := func(prm.STE) {}
	a.write(icmEntries, send(as))
	b.write(icmEntries, receive(as))
	p.arrives("as it is", data, data)
	a.write(icmEntries, send(func(e prm.STE) { e.PutNext(icmDropTx, 1) }))
	p.arrives("dropped", data, nil)

	tagged := make([]byte, len(data)+roce.VLANSize)
	ether.PutTag(tagged, data, 0x8100_6005)
	a.write(icmEntries, send(func(e prm.STE) { e.SetActionType(prm.STEPushVLAN); e.SetActionData(0x8100_6005) }))
	b.recv.h.d.nic.receivers.at(b.recv.n).ctx[0] |= 0x10 // the tag stays (VSD)
	p.arrives("with a tag", data, tagged)
	b.write(icmEntries, receive(func(e prm.STE) { e.SetTunnelAction(prm.STEPopVLAN) }))
	p.arrives("with a tag that is taken", data, data)

	headers := checked(udp(a, b, ether.VXLANPort, []byte{8, 0, 0, 0, 0, 0, 9, 0}))
	req := prm.NewIn(prm.OpAllocPacketReformat, len(headers))
	m := prm.AllocPacketReformatIn(req)
	m.SetType(prm.ReformatL2ToL2Tunnel)
	m.SetDataSize(uint32(len(headers)))
	copy(m.Data(), headers)
	tunnel := prm.AllocPacketReformatOut(a.cmd(req)).ID()
	a.write(icmEntries, send(func(e prm.STE) { e.SetActionType(prm.STEEncap); e.SetActionData(tunnel) }))
	outer := make([]byte, len(headers)+len(data))
	ether.Encapsulate(outer, headers, data)
	b.write(icmEntries, receive(as))
	p.arrives("in a tunnel", data, outer)
	b.write(icmEntries, receive(func(e prm.STE) { e.SetTunnelAction(prm.STEDecap); e.SetFailOnError(true) }))
	p.arrives("out of a tunnel", data, data)
	// What a packet in a tunnel is for.
	b.write(icmEntries, receive(func(e prm.STE) {
		e.SetLookupType(lookTupleIn)
		v := prm.STE5Tuple(e.Tag())
		v.SetDstPort(7)
		prm.STE5Tuple(e.Mask()).SetDstPort(0xffff)
		e.PutMissAddress(icmDropRx)
	}))
	p.arrives("by a port inside", data, outer)
	a.write(icmEntries, send(as))
	p.arrives("by a port inside of nothing", data, nil)

	// Changes that an entry points at: an address, a port of UDP, and that of TCP, which is not
	// there. Checksums stay right.
	change := func(typ uint32, f headerField, shift, bits, v uint32) []byte {
		c := prm.STEHeaderChange(make([]byte, prm.STEHeaderChangeSize))
		c.SetType(typ)
		c.SetField(uint32(f))
		c.SetShift(shift)
		c.SetLength(bits)
		c.SetData(v)
		return c
	}
	list := bytes.Join([][]byte{
		change(prm.STEHeaderSet, headerField(ether.FieldIP0), 0, 0, 0x01020304), change(prm.STEHeaderAdd, headerField(ether.FieldPorts), 0, 16, 1),
		change(prm.STEHeaderSet, fieldReg0, 0, 0, 0x5678), change(prm.STEHeaderSet, headerField(ether.FieldTCP), 0, 0, 7),
	}, nil)
	a.d.memory.icm.write(icmChanges+changesUnit, list)
	a.write(icmEntries, ste(prm.STEModify, func(e prm.STE) {
		e.SetChanges(4)
		e.SetChangesAt(1)
		e.PutNext(icmEntries+prm.STESize, 1)
	}), send(func(e prm.STE) { // by the register
		e.SetLookupType(lookRegisters0)
		prm.STERegisters(e.Tag()).SetFirst(0x5678)
		prm.STERegisters(e.Mask()).SetFirst(0xffffffff)
		e.PutMissAddress(icmDropTx)
	}))
	b.write(icmEntries, receive(as))
	changed := bytes.Clone(data)
	copy(changed[26:], []byte{1, 2, 3, 4})
	roce.UDP(changed[34:]).SetSrcPort(roce.UDP(changed[34:]).SrcPort() + 1)
	p.arrives("changed", data, checked(changed))
	a.write(icmEntries, ste(prm.STEModify, func(e prm.STE) { e.SetChanges(1); e.SetChangesAt(9); e.PutNext(icmAllowTx, 1) }))
	p.arrives("a change of no type", data, nil)
	settle(t, b.e)
	if n := a.d.frames.Live + b.d.frames.Live; n != 0 {
		t.Errorf("%d frames leaked", n)
	}
}

// rewriteIn is a context of header changes.
func rewriteIn(kind uint32, changes ...[]byte) []byte {
	in := prm.NewIn(prm.OpAllocModifyHeader, len(changes)*prm.HeaderChangeSize)
	m := prm.AllocModifyHeaderIn(in)
	m.SetTableType(kind)
	m.SetNumber(uint32(len(changes)))
	copy(m.Actions(), bytes.Join(changes, nil))
	return in
}

func headerSet(field, offset, length, data uint32) []byte {
	c := prm.HeaderChange(make([]byte, prm.HeaderChangeSize))
	c.SetType(prm.HeaderSet)
	c.SetField(field)
	c.SetOffset(offset)
	c.SetLength(length)
	c.SetData(data)
	return c
}

// TestEntriesChangePackets is TestProgramsChangePackets by entries of the driver, which allow,
// drop, change and send on what leaves.
func TestEntriesChangePackets(t *testing.T) {
	p := newProgram(t)
	a, data := p.a, p.packet()
	tin := prm.NewIn(prm.OpCreateFlowTable, 0)
	prm.CreateFlowTableIn(tin).SetTableType(prm.FlowTableNICTransmit)
	prm.CreateFlowTableIn(tin).Context().SetReformatEn(true)
	table := prm.CreateFlowTableOut(a.cmd(tin)).TableID()
	gin := groupIn(table, 0, 0, nil)
	prm.CreateFlowGroupIn(gin).SetTableType(prm.FlowTableNICTransmit)
	group := prm.CreateFlowGroupOut(a.cmd(gin)).GroupID()
	a.root(prm.FlowTableNICTransmit, table)
	p.arrives("a miss leaves", data, data)
	entry := func(edit func(c prm.FlowContext)) []byte {
		in := entryIn(table, group, 0, nil, func(c prm.FlowContext, _ prm.FlowDestinations) { edit(c) })
		prm.SetFlowEntryIn(in).SetTableType(prm.FlowTableNICTransmit)
		return in
	}
	remove := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	prm.DeleteFlowEntryIn(remove).SetTableType(prm.FlowTableNICTransmit)
	prm.DeleteFlowEntryIn(remove).SetTableID(table)
	a.cmd(entry(func(c prm.FlowContext) { c.SetAction(prm.FlowActionDrop) }))
	p.arrives("dropped", data, nil)
	a.cmd(remove)
	copied := prm.HeaderCopy(headerSet(0x05, 0, 16, 0)) // the end of the destination to that of the source
	copied.SetType(prm.HeaderCopied)
	copied.SetDstField(0x02)
	id := prm.AllocModifyHeaderOut(a.cmd(rewriteIn(prm.FlowTableNICTransmit, headerSet(0x01, 8, 8, 0x99), copied))).ID()
	a.cmd(entry(func(c prm.FlowContext) {
		c.SetAction(prm.FlowActionAllow | prm.FlowActionModifyHeader)
		c.SetModifyHeaderID(id)
	}))
	changed := bytes.Clone(data)
	changed[8] = 0x99
	copy(changed[10:12], data[4:6])
	p.arrives("changed", data, changed)
	dealloc := prm.NewIn(prm.OpDeallocModifyHeader, 0)
	prm.DeallocModifyHeaderIn(dealloc).SetID(id)
	a.status(dealloc, prm.StatusBadResState) // an entry has it
	a.cmd(remove)
	a.cmd(dealloc)
	a.status(dealloc, prm.StatusBadResState)
	for what, in := range map[string][]byte{
		"no changes":                 rewriteIn(prm.FlowTableNICTransmit),
		"a field that there is not":  rewriteIn(prm.FlowTableNICTransmit, headerSet(0x5d, 0, 8, 0)),
		"bits behind a field":        rewriteIn(prm.FlowTableNICTransmit, headerSet(0x02, 8, 16, 0)),
		"tables that there are not":  rewriteIn(4, headerSet(0x01, 0, 8, 0)),
		"a type that there is not":   rewriteIn(prm.FlowTableNICTransmit, make([]byte, 8)),
		"more than the list":         rewriteIn(prm.FlowTableNICTransmit, headerSet(0x01, 0, 8, 0))[:prm.AllocModifyHeaderInSize],
		"nowhere, and not to leave":  entry(func(prm.FlowContext) {}),
		"to leave and to be dropped": entry(func(c prm.FlowContext) { c.SetAction(prm.FlowActionAllow | prm.FlowActionForward) }),
		"the end of a tunnel":        entry(func(c prm.FlowContext) { c.SetAction(prm.FlowActionAllow | prm.FlowActionDecap) }),
	} {
		if _, st := a.try(in); st != prm.StatusBadParam {
			t.Errorf("%s: %v", what, st)
		}
	}
	a.status(entry(func(c prm.FlowContext) { c.SetAction(prm.FlowActionAllow | prm.FlowActionReformat); c.SetReformatID(9) }), prm.StatusBadResState)
}

func tcpPacket() []byte {
	b := make([]byte, 60)
	roce.Ethernet(b).SetType(roce.EtherTypeIPv4)
	b[14] = 0x45
	ip := roce.IPv4(b[14:])
	ip.SetTotalLen(46)
	ip.SetProtocol(ether.ProtoTCP)
	b[46] = 0x50
	return b
}
