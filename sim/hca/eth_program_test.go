package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim"
)

// The kit below is what a program adds that writes flow table entries by itself.

func steeringParams() Params {
	p := testParams()
	p.SWSteering = true
	return p
}

// program is a pair of hosts of which both let programs steer.
type program struct {
	t    *testing.T
	a, b *netHost
}

func newProgram(t *testing.T) *program {
	a, b, _ := netPairOf(t, steeringParams())
	b.recv.post(tPackets)
	return &program{t, a, b}
}

func icmIn(addr uint64, log uint32) []byte {
	in := prm.NewIn(prm.OpCreateGeneralObject, prm.SWICMSize)
	m := prm.CreateGeneralObjectIn(in)
	m.SetObjType(prm.ObjTypeSWICM)
	x := prm.SWICM(m.Object()[:prm.SWICMSize])
	x.SetStartAddr(addr)
	x.SetLogSize(log)
	return in
}

func (h *netHost) icmAt(addr uint64) (id uint32) {
	h.t.Helper()
	return prm.CreateGeneralObjectOut(h.cmd(icmIn(addr, 16))).ObjID()
}

func (h *netHost) destroyGeneral(typ, id uint32) []byte {
	in := prm.NewIn(prm.OpDestroyGeneralObject, 0)
	prm.DestroyGeneralObjectIn(in).SetObjType(typ)
	prm.DestroyGeneralObjectIn(in).SetObjID(id)
	return in
}

// ste is an entry that matches everything and leads on.
func ste(typ uint32, edit func(e prm.STE)) []byte {
	e := prm.STE(make([]byte, prm.STESize))
	e.SetEntryType(typ)
	e.SetLookupType(prm.STEDontCare)
	e.SetNextLookupType(prm.STEDontCare)
	if edit != nil {
		edit(e)
	}
	return e
}

// missing is an entry that matches nothing.
func missing(typ uint32, miss uint64) []byte {
	return ste(typ, func(e prm.STE) {
		e.Tag()[0] = 0xdc
		e.PutMissAddress(miss)
	})
}

// write puts entries to where the device looks for them.
func (h *netHost) write(addr uint64, entries ...[]byte) {
	for _, e := range entries {
		h.d.memory.icm.write(addr, e)
		addr += prm.STESize
	}
}

// swTable makes a table of a kind whose entries begin at an address.
func swTable(kind, level uint32, at uint64) []byte {
	in := prm.NewIn(prm.OpCreateFlowTable, 0)
	m := prm.CreateFlowTableIn(in)
	m.SetTableType(kind)
	m.Context().SetSWOwner(true)
	m.Context().SetLevel(level)
	m.Context().SetICMRoot0(at)
	return in
}

// root makes a table the first of its kind.
func (h *netHost) root(kind, id uint32) {
	h.t.Helper()
	in := prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(in).SetTableType(kind)
	prm.SetFlowTableRootIn(in).SetTableID(id)
	h.cmd(in)
}

// tirAddress is where entries find the TIR.
func (h *netHost) tirAddress() (tirn uint32, addr uint64) {
	in := prm.NewIn(prm.OpCreateTIR, 0)
	prm.CreateTIRIn(in).Context().SetInlineRQN(h.recv.n) // of no transport domain
	out := prm.CreateTIROut(h.cmd(in))
	return out.TIRN(), out.ICMAddress()
}

// arrives sends a packet and expects another one, or none, at b.
func (p *program) arrives(what string, sent, want []byte) prm.CQE64 {
	p.t.Helper()
	p.a.send.transmit(packetWQE{data: sent})
	run(p.t, p.a.e, 30*usec)
	got, e := p.b.recv.next()
	if e != nil {
		p.b.recv.post(1)
	}
	if !bytes.Equal(got, want) {
		p.t.Errorf("%s: % x, want % x", what, got, want)
	}
	return e
}

func (p *program) packet() []byte { return checked(udp(p.a, p.b, 7, patterned(80))) }

// TestProgramsSteer: packets go through entries that a program has written: by a hash, on misses, to a TIR with a tag, counted; what is not an
// entry drops them.
func TestProgramsSteer(t *testing.T) {
	p := newProgram(t)
	b := p.b
	b.icmAt(icmEntries)
	_, tir := b.tirAddress()
	table := prm.CreateFlowTableOut(b.cmd(swTable(prm.FlowTableNICReceive, 100, icmEntries))).TableID()
	b.root(prm.FlowTableNICReceive, table)
	counter := prm.AllocFlowCounterOut(b.cmd(prm.NewIn(prm.OpAllocFlowCounter, 0))).ID()
	data := p.packet()
	p.arrives("an entry that was never written", data, nil)
	// The first entry leads to a table of 8, chosen by the source address.
	const rows, n = icmEntries + 8*prm.STESize, 8
	b.write(icmEntries, ste(prm.STEReceive, func(e prm.STE) {
		e.PutNext(rows, n)
		e.SetNextLookupType(lookSrc)
		e.SetByteMask(0xfc00)
	}))
	f := flight{f: b.d.frames.GetPlain(len(data))}
	copy(f.f.B, data)
	f.changed()
	tag, _ := f.tagOf(lookSrc)
	f.f.Release()
	at := rows + tag.place(0xfc00, n)*prm.STESize
	rule := func(edit func(e prm.STE)) []byte {
		return ste(prm.STEReceive, func(e prm.STE) {
			e.SetLookupType(lookSrc)
			copy(e.Tag(), tag[:6])
			copy(e.Mask(), bytes.Repeat([]byte{0xff}, 6))
			e.PutNext(tir, 1)
			e.PutMissAddress(icmDropRx)
			e.PutCounter(counter)
			e.SetFlowTag(prm.STEHasFlowTag | 0x123)
			if edit != nil {
				edit(e)
			}
		})
	}
	for i := range uint64(n) {
		b.write(rows+i*prm.STESize, missing(prm.STEReceive, icmDropRx))
	}
	p.arrives("a miss", data, nil)
	b.write(at, rule(nil))
	if e := p.arrives("a rule", data, data); e.FlowTag() != 0x123 {
		t.Errorf("tag %#x", e.FlowTag())
	}
	other := bytes.Clone(data)
	other[6] ^= 2
	p.arrives("another address", other, nil)
	// Another rule in front, whose misses go to this one.
	b.write(at, rule(func(e prm.STE) { e.Tag()[5] ^= 1; e.PutMissAddress(icmEntries + prm.STESize) }), nil)
	b.write(icmEntries+prm.STESize, rule(nil))
	p.arrives("behind a miss", data, data)
	for what, edit := range map[string]func(e prm.STE){
		"a look-up that the device does not know": func(e prm.STE) { e.SetLookupType(0x22) },
		"an entry for packets that leave":         func(e prm.STE) { e.SetEntryType(prm.STETransmit) },
		"a type that there is not":                func(e prm.STE) { e.SetEntryType(9) },
		"no TIR":                                  func(e prm.STE) { e.PutNext(tir+prm.STESize, 1) },
		"nothing":                                 func(e prm.STE) { e.PutNext(icmObjects, 1) },
		"itself":                                  func(e prm.STE) { e.PutNext(at, 1) },
		"a tunnel that is none":                   func(e prm.STE) { e.SetTunnelAction(prm.STEDecap); e.SetFailOnError(true) },
		"a tunnel of layer 3":                     func(e prm.STE) { e.SetTunnelAction(prm.STEDecapL3) },
	} {
		b.write(at, rule(edit))
		p.arrives(what, data, nil)
	}
	q := prm.NewIn(prm.OpQueryFlowCounter, 0)
	prm.QueryFlowCounterIn(q).SetID(counter)
	out := prm.NewOut(prm.OpQueryFlowCounter, 16)
	b.d.Command(q, out)
	if n := prm.QueryFlowCounterOut(out).Statistics().Packets(0); n < 2 {
		t.Errorf("%d packets counted", n)
	}
	settle(t, b.e)
	if n := b.d.frames.Live; n != 0 {
		t.Errorf("%d frames leaked", n)
	}
}

// TestProgramsChangePackets: tags and tunnels begin at the sender and end at the receiver, and headers change, by entries of programs and by those of the
// driver.
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

	// Changes that an entry points at: an address, a port of UDP, and that of TCP, which is not there. Checksums stay right.
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

// TestEntriesChangePackets is TestProgramsChangePackets by entries of the driver, which allow, drop, change and send on what leaves.
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

// TestSamplers: all packets go to one table, and one of several to another, too.
func TestSamplers(t *testing.T) {
	p := newProgram(t)
	b, data := p.b, p.packet()
	b.icmAt(icmEntries)
	counted := func() (table, counter uint32) {
		table = b.newTable(50, 0)
		counter = prm.AllocFlowCounterOut(b.cmd(prm.NewIn(prm.OpAllocFlowCounter, 0))).ID()
		b.setEntry(table, b.newGroup(table, 0, 0, nil), 0, nil, drop, count(counter))
		return table, counter
	}
	sample, one := counted()
	rest, all := counted()
	make := func(edit func(x prm.FlowSampler)) []byte {
		in := prm.NewIn(prm.OpCreateGeneralObject, prm.FlowSamplerSize)
		m := prm.CreateGeneralObjectIn(in)
		m.SetObjType(prm.ObjTypeFlowSampler)
		x := prm.FlowSampler(m.Object()[:prm.FlowSamplerSize])
		x.SetSampleRatio(4)
		x.SetLevel(50)
		x.SetIgnoreFlowLevel(true)
		x.SetSampleTableID(sample)
		x.SetDefaultTableID(rest)
		if edit != nil {
			edit(x)
		}
		return in
	}
	for what, x := range map[string]struct {
		edit func(x prm.FlowSampler)
		want prm.Status
	}{
		"no ratio":        {func(x prm.FlowSampler) { x.SetSampleRatio(0) }, prm.StatusBadParam},
		"no table":        {func(x prm.FlowSampler) { x.SetSampleTableID(99) }, prm.StatusBadResState},
		"packets sent":    {func(x prm.FlowSampler) { x.SetTableType(prm.FlowTableNICTransmit) }, prm.StatusBadParam},
		"no higher level": {func(x prm.FlowSampler) { x.SetIgnoreFlowLevel(false) }, prm.StatusBadParam},
	} {
		if _, st := b.try(make(x.edit)); st != x.want {
			t.Errorf("%s: %v", what, st)
		}
	}
	id := prm.CreateGeneralObjectOut(b.cmd(make(nil))).ObjID()
	q := prm.NewIn(prm.OpQueryGeneralObject, 0)
	prm.QueryGeneralObjectIn(q).SetObjType(prm.ObjTypeFlowSampler)
	prm.QueryGeneralObjectIn(q).SetObjID(id)
	out := prm.NewOut(prm.OpQueryGeneralObject, prm.FlowSamplerSize)
	b.d.Command(q, out)
	x := prm.FlowSampler(prm.QueryGeneralObjectOut(out).Object())
	if prm.CmdOut(out).Status() != prm.StatusOK || x.SampleRatio() != 4 || x.ICMAddressRx() == 0 {
		t.Fatalf("% x", out)
	}
	table := prm.CreateFlowTableOut(b.cmd(swTable(prm.FlowTableNICReceive, 1, icmEntries))).TableID()
	b.write(icmEntries, ste(prm.STEReceive, func(e prm.STE) { e.PutNext(x.ICMAddressRx(), 1) }))
	b.root(prm.FlowTableNICReceive, table)
	for range 8 {
		p.arrives("sampled", data, nil)
	}
	for c, want := range map[uint32]uint64{one: 2, all: 8} {
		if got := b.d.nic.steering.counter(c).packets; got != want {
			t.Errorf("counter %d: %d packets, want %d", c, got, want)
		}
	}
	del := prm.NewIn(prm.OpDestroyFlowTable, 0)
	prm.DestroyFlowTableIn(del).SetTableID(rest)
	b.status(del, prm.StatusBadResState)
	b.cmd(b.destroyGeneral(prm.ObjTypeFlowSampler, id))
	b.status(b.destroyGeneral(prm.ObjTypeFlowSampler, id), prm.StatusBadResState)
	p.arrives("by a sampler that is gone", data, nil)
}

// TestSteeringMemory: the driver takes pieces of two areas, and programs write to them by keys and RDMA of queue pairs that lead back to themselves,
// whatever address they have.
func TestSteeringMemory(t *testing.T) {
	p := steeringParams()
	e := sim.New(sim.Options{MaxEvents: 1 << 24})
	h := newNetHostOf(t, e, 1, p)
	h.open()
	id := h.icmAt(icmEntries + 1<<16)
	for what, in := range map[string][]byte{
		"before the area":  icmIn(icmEntries-1<<16, 16),
		"behind it":        icmIn(icmEntries+1<<logICMEntries, 16),
		"less than a unit": icmIn(icmEntries, logICMGranularity-1),
		"within a unit":    icmIn(icmEntries+64, 16),
		"more than all":    icmIn(icmEntries, logICMEntries+1),
		"more changes":     icmIn(icmChanges, logICMChanges+1),
	} {
		if _, st := h.try(in); st != prm.StatusBadParam {
			t.Errorf("%s: %v", what, st)
		}
	}
	for _, addr := range []uint64{icmEntries + 1<<16, icmEntries + 1<<16 + 1<<12, icmEntries} {
		h.status(icmIn(addr, 17-uint32(addr>>12&1)*4), prm.StatusNoRes) // what is taken
	}
	h.cmd(icmIn(icmEntries, 16))

	key := func(addr, n uint64) []byte {
		in := prm.NewIn(prm.OpCreateMKey, 0)
		c := prm.CreateMKeyIn(in).MKC()
		c.SetAccessMode(prm.MKeyModeSWICM)
		c.SetStartAddr(addr)
		c.SetLen(n)
		c.SetLR(true)
		c.SetLW(true)
		c.SetRW(true)
		c.SetRR(true)
		c.SetQPN(prm.MKeyQPNAny)
		c.SetPD(h.pd)
		return in
	}
	h.status(key(icmEntries+2<<16, 64), prm.StatusBadParam)
	h.status(key(icmEntries, 1<<17), prm.StatusBadParam) // in two pieces
	rkey := prm.MKeyOf(prm.CreateMKeyOut(h.cmd(key(icmEntries+1<<16, 1<<16))).MKeyIndex(), 0)
	q := h.newQP(h.newCQ(7, 64), h.newCQ(7, 64))
	o := defaults()
	o.edit = func(c prm.QPC) {
		a := c.PrimaryPath()
		a.SetFL(true)
		clear(a.RGID())
		clear(a.RMAC())
	}
	q.connect(q, o)
	from := h.newMR(4096, rightsAll)
	from.fill(func(i int) byte { return byte(i) })
	q.post(wr{op: prm.WQEOpRDMAWrite, raddr: 4096 - 100, rkey: rkey, sges: []sge{from.sge(0, 300)}})
	run(t, e, 100*usec)
	q.scq.expect(prm.CQEReq)
	got := make([]byte, 302)
	h.d.memory.icm.read(icmEntries+1<<16+4096-101, got)
	if !bytes.Equal(got[1:301], from.bytes(0, 300)) || got[0] != 0 || got[301] != 0 {
		t.Errorf("% x", got)
	}
	q.post(wr{op: prm.WQEOpRDMARead, raddr: 4096 - 100, rkey: rkey, sges: []sge{from.sge(1000, 300)}})
	run(t, e, 100*usec)
	q.scq.expect(prm.CQEReq)
	if !bytes.Equal(from.bytes(1000, 300), from.bytes(0, 300)) {
		t.Error("a READ gives other bytes")
	}
	h.cmd(h.destroyGeneral(prm.ObjTypeSWICM, id))
	h.status(h.destroyGeneral(prm.ObjTypeSWICM, id), prm.StatusBadResState)
	h.icmAt(icmEntries + 1<<16)
	h.d.memory.icm.read(icmEntries+1<<16+4096-101, got)
	if !bytes.Equal(got, make([]byte, len(got))) {
		t.Error("new memory has bytes of before")
	}
}

// TestProgramTablesAreRefused: what a table of a program's cannot be, and all of it by a device without.
func TestProgramTablesAreRefused(t *testing.T) {
	p := newProgram(t)
	b := p.b
	b.icmAt(icmEntries)
	b.status(swTable(prm.FlowTableNICReceive, 1, icmEntries+1<<16), prm.StatusBadParam) // no memory
	b.status(swTable(prm.FlowTableNICReceive, 1, icmEntries+1), prm.StatusBadParam)
	b.status(swTable(4, 1, icmEntries), prm.StatusBadParam)
	table := prm.CreateFlowTableOut(b.cmd(swTable(prm.FlowTableNICReceive, 1, icmEntries))).TableID()
	b.status(groupIn(table, 0, 0, nil), prm.StatusBadParam)
	q := prm.NewIn(prm.OpQueryFlowTable, 0)
	prm.QueryFlowTableIn(q).SetTableID(table)
	if c := prm.QueryFlowTableOut(b.cmd(q)).Context(); !c.SWOwner() || c.ICMRoot0() != icmEntries || c.Level() != 1 {
		t.Errorf("% x", []byte(c))
	}
	prm.QueryFlowTableIn(q).SetTableID(b.table)
	if c := prm.QueryFlowTableOut(b.cmd(q)).Context(); c.SWOwner() || c.ICMRoot0() == 0 {
		t.Errorf("% x", []byte(c))
	}
	prm.QueryFlowTableIn(q).SetTableType(prm.FlowTableNICTransmit)
	b.status(q, prm.StatusBadResState)

	_, old, _ := netPair(t)
	for _, x := range []struct {
		in   []byte
		want prm.Status
	}{
		{icmIn(icmEntries, 16), prm.StatusBadParam}, {swTable(prm.FlowTableNICReceive, 1, icmEntries), prm.StatusBadParam}, {rewriteIn(0, headerSet(1, 0, 8, 0)), prm.StatusBadParam},
		{prm.NewIn(prm.OpAllocPacketReformat, 64), prm.StatusBadParam}, {prm.NewIn(prm.OpSyncSteering, 0), prm.StatusBadOp},
		{prm.NewIn(prm.OpCreateTIR, 0), prm.StatusBadParam},
	} {
		if _, st := old.try(x.in); st != x.want {
			t.Errorf("%v of a device without: %v", prm.CmdIn(x.in).Opcode(), st)
		}
	}
}

// FuzzEntries steers a packet through arbitrary entries.
func FuzzEntries(f *testing.F) {
	f.Add(ste(prm.STEReceive, func(e prm.STE) { e.PutNext(icmEntries+64, 2); e.SetNextLookupType(lookTuple); e.SetByteMask(0xffff) }), checked(tcpPacket()))
	f.Add(ste(prm.STEModify, func(e prm.STE) { e.SetChanges(3); e.SetTunnelAction(prm.STEPopVLAN); e.PutNext(icmTIRs+64, 1) }), make([]byte, 60))
	f.Add(ste(prm.STETransmit, func(e prm.STE) { e.SetActionType(prm.STEPushVLAN); e.PutNext(icmEntries, 1) }), make([]byte, 14))
	f.Fuzz(func(t *testing.T, entries, packet []byte) {
		var pool roce.Pool
		m := newICM(&Params{SWSteering: true})
		if _, st := m.alloc(icmEntries, 16); st != prm.StatusOK {
			t.Fatal(st)
		}
		if _, st := m.alloc(icmChanges, 16); st != prm.StatusOK {
			t.Fatal(st)
		}
		m.write(icmEntries, entries[:min(len(entries), 1<<16)])
		m.write(icmChanges, entries[:min(len(entries), 1<<16)])
		var tirs []*tir
		s := newSteering(&tirs, &m)
		tirs = put(tirs, 1, &tir{})
		if len(packet) < roce.EthernetSize || len(packet) > 9000 {
			return
		}
		for kind := range uint32(flowKinds) {
			s.roots[kind] = &flowTable{kind: kind, sw: true, at: icmEntries}
			fr := pool.GetPlain(len(packet))
			copy(fr.B, packet)
			if kind == prm.FlowTableNICReceive {
				h := ether.Parse(fr.B)
				for _, hit := range s.receive(fr, &h) {
					hit.f.Release()
				}
				fr.Release()
				continue
			}
			for _, left := range s.send(fr) {
				left.Release()
			}
		}
		if pool.Live != 0 {
			t.Errorf("%d frames leaked", pool.Live)
		}
	})
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

// TestPlaceOfEntry: the place is that of rdma-core's library, which goes bit by bit here: a CRC of polynomial 0xEDB88320 from 0, its bytes reversed.
func TestPlaceOfEntry(t *testing.T) {
	tag := steTag{0x24, 0x8a, 0x07, 0xa5, 0x28, 0xc8, 0x88, 0xb5, 9, 10, 11, 12, 13, 14, 15, 16}
	for _, mask := range []uint32{0xffff, 0xfc00, 0x8001} {
		crc := uint32(0)
		for i, b := range tag {
			if mask>>(15-i)&1 == 0 {
				b = 0
			}
			crc ^= uint32(b)
			for range 8 {
				low := crc & 1
				if crc >>= 1; low != 0 {
					crc ^= 0xedb88320
				}
			}
		}
		want := uint64(crc>>24 | crc>>8&0xff00 | crc<<8&0xff0000 | crc<<24)
		for _, n := range []uint64{2, 16, 1 << 20} {
			if got := tag.place(mask, n); got != want%n {
				t.Errorf("mask %#x, %d entries: %d, want %d", mask, n, got, want%n)
			}
		}
	}
	if tag.place(0xffff, 1) != 0 || tag.place(0, 8) != 0 {
		t.Error("one entry, or no mask: another place than the first")
	}
}

// TestTags: a tag has the fields of the packet, and those of a header that it lacks are 0.
func TestTags(t *testing.T) {
	tagged := make([]byte, 64)
	ether.PutTag(tagged, tcpPacket(), 0x88a8_b234)
	b := make([]byte, 68)
	ether.PutTag(b, tagged, 0x8100_5321)
	copy(b, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	ip := b[22:]
	ip[1], ip[8] = 0xb9, 77
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	copy(ip[20:], []byte{0x12, 0x34, 0x56, 0x78, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x12, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66})
	p := flight{f: new(roce.Pool).GetPlain(len(b))}
	copy(p.f.B, b)
	p.changed()
	p.regs = [headerRegs]uint64{1, 2, 3, 4, 0x1122334455667788}
	for look, want := range map[uint32]string{
		lookSrc:        "\x07\x08\x09\x0a\x0b\x0c\x08\x00\x00\x05\x83\x21\x45\x0b\x42\x34",
		lookDstOut:     "\x01\x02\x03\x04\x05\x06\x08\x00\x00\x05\x83\x21\x45\x0b\x42\x34",
		lookSrcDst:     "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x04\x05\x83\x21",
		lookTuple:      "\x0a\x00\x00\x02\x0a\x00\x00\x01\x12\x34\x56\x78\x02\x12\xb8\x06",
		lookIPv4:       "\x45\x00\x00\x2e\x00\x00\x00\x00\x4d\x00\x00\x00\x00\x00\x00\x00",
		lookL4:         "\x00\x06\x56\x78\x02\x12\x12\x34\x00\x00\x00\xb8\x00\x00\x00\x00",
		lookTCP:        "\x33\x44\x00\x1a\x01\x02\x03\x04\x05\x06\x07\x08\x55\x66\x11\x22",
		lookDst6:       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		lookRegisters1: "\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04",
		lookMetadata:   "\x55\x66\x77\x88\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if got, ok := p.tagOf(look); !ok || string(got[:]) != want {
			t.Errorf("look-up %#x: % x, want % x (%v)", look, got, want, ok)
		}
	}
	for _, look := range []uint32{0, 0x05, 0x16, 0x22, lookTunnel, lookSrcIn, 0xff} {
		if got, ok := p.tagOf(look); ok || got != (steTag{}) {
			t.Errorf("look-up %#x: % x", look, got)
		}
	}
}

// TestSteeringAllocatesNothing: a packet that entries of a program tag and send on, and one that they look into, cost no memory in steady state.
func TestSteeringAllocatesNothing(t *testing.T) {
	p := newProgram(t)
	p.b.icmAt(icmEntries)
	_, tir := p.b.tirAddress()
	s := &p.b.d.nic.steering
	s.roots[prm.FlowTableNICTransmit] = &flowTable{kind: prm.FlowTableNICTransmit, sw: true, at: icmEntries}
	s.roots[prm.FlowTableNICReceive] = &flowTable{kind: prm.FlowTableNICReceive, sw: true, at: icmEntries + prm.STESize}
	p.b.write(icmEntries, ste(prm.STETransmit, func(e prm.STE) {
		e.SetActionType(prm.STEPushVLAN)
		e.SetActionData(0x8100_0001)
		e.PutNext(icmAllowTx, 1)
	}), ste(prm.STEReceive, func(e prm.STE) {
		e.SetLookupType(lookSrc)
		e.PutNext(tir, 1)
	}))
	data := p.packet()
	n := testing.AllocsPerRun(100, func() {
		f := p.b.d.frames.GetPlain(len(data))
		copy(f.B, data)
		for _, f := range s.send(f) {
			h := ether.Parse(f.B)
			for _, hit := range s.receive(f, &h) {
				hit.f.Release()
			}
			f.Release()
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
