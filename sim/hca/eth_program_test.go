package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
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

// TestProgramsSteer: packets go through entries that a program has written: by a hash, on misses,
// to a TIR with a tag, counted; what is not an entry drops them.
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

// TestSteeringMemory: the driver takes pieces of two areas, and programs write to them by keys and
// RDMA of queue pairs that lead back to themselves, whatever address they have.
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

// TestProgramTablesAreRefused: what a table of a program's cannot be, and all of it by a device
// without.
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

// TestSteeringAllocatesNothing: a packet that entries of a program tag and send on, and one that
// they look into, cost no memory in steady state.
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
