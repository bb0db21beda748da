package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

func ibParams() Params {
	p := testParams()
	p.LinkLayers, p.LinkLayer = InfiniBandOnly, InfiniBand
	p.WireOverhead = 4
	return p
}

// manage does what a subnet manager does to a port.
func (h *host) manage(lid uint16) {
	h.d.SetPKeys([]uint16{roce.DefaultPKey, 0x8005})
	i := h.d.PortInfo()
	i.LID, i.SMLID, i.GIDPrefix, i.VLs, i.SubnetTimeout = lid, 1, roce.DefaultGIDPrefix, 4, 18
	for i.State = roce.PortArmed; i.State <= roce.PortActive; i.State++ {
		h.d.SetPortInfo(i)
	}
	h.gid = roce.GIDFromGUID(roce.DefaultGIDPrefix, h.id.GUID)
}

func (h *host) lid() uint16 { return h.d.PortInfo().LID }

func ibHosts(t testing.TB) (ha, hb *host, w *seize) {
	e := sim.New(sim.Options{MaxEvents: 1 << 22})
	ha, hb = newHost(t, e, ibParams(), 1), newHost(t, e, ibParams(), 2)
	ha.manage(1)
	hb.manage(2)
	w = &seize{to: hb.d}
	ha.d.SetWire(w)
	hb.d.SetWire(relay{ha.d})
	return
}

// relay delivers and keeps nothing.
type relay struct{ to *Device }

func (r relay) Send(f *roce.Frame) { r.to.Receive(f) }

// over is how a connection goes to the port of p.
func over(p *tQP, global bool) opts {
	o := defaults()
	o.edit = func(c prm.QPC) {
		a := c.PrimaryPath()
		a.SetRLID(uint32(p.h.lid()))
		a.SetSL(3)
		a.SetGRH(global)
	}
	return o
}

func ibConnect(t testing.TB, global bool) (ha, hb *host, a, b *tQP, w *seize) {
	ha, hb, w = ibHosts(t)
	a, b = ha.newQP(ha.newCQ(7, 64), ha.newCQ(7, 64)), hb.newQP(hb.newCQ(7, 64), hb.newCQ(7, 64))
	a.connect(b, over(b, global))
	b.connect(a, over(a, global))
	return
}

func TestIBWrite(t *testing.T) {
	for _, global := range []bool{false, true} {
		ha, hb, a, _, w := ibConnect(t, global)
		src, dst := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
		src.fill(pattern)
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: dst.va, rkey: dst.rkey, sges: []sge{src.sge(0, 3000)}})
		run(t, ha.e, 50*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		if !bytes.Equal(dst.bytes(0, 3000), src.bytes(0, 3000)) {
			t.Error("other bytes arrived")
		}
		if len(w.sent) != 3 {
			t.Fatalf("%d packets", len(w.sent))
		}
		for _, f := range w.sent {
			f.FinishICRC()
			p, err := f.Parse()
			if err != nil || !p.ICRCOK() || !f.LRH {
				t.Fatalf("%v: % x", err, f.B)
			}
			h := p.LRH()
			if h.SLID() != 1 || h.DLID() != 2 || h.SL() != 3 || h.VL() != 3 || p.HasGRH() != global || p.BTH().PKey() != roce.DefaultPKey {
				t.Errorf("LRH % x", []byte(h))
			}
			if global && (p.SrcGID() != ha.gid || p.DstGID() != hb.gid) {
				t.Errorf("GIDs %v and %v", p.SrcGID(), p.DstGID())
			}
		}
		w.free()
		if n := ha.d.frames.Live + hb.d.frames.Live; n != 0 {
			t.Errorf("%d frames leaked", n)
		}
	}
}

// What is not for the port, of another partition, of another path or without an active
// port is dropped and counted.
func TestIBDrops(t *testing.T) {
	ha, hb, a, b, w := ibConnect(t, false)
	src, dst := ha.newMR(64, rightsAll), hb.newMR(64, rightsAll)
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: dst.va, rkey: dst.rkey, sges: []sge{src.sge(0, 8)}})
	run(t, ha.e, 20*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	good := w.sent[0]
	good.FinishICRC()
	send := func(change func(b []byte)) {
		f := hb.d.frames.Get(len(good.B))
		copy(f.B, good.B)
		f.LRH = true
		change(f.B)
		roce.PutICRC(f.B[len(f.B)-4:], roce.ICRCInfiniBand(f.B[:len(f.B)-4]))
		hb.d.Receive(f)
		run(t, ha.e, 20*sim.Microsecond)
	}
	c := hb.d.Counters()
	was := *c
	send(func(b []byte) { roce.LRH(b).SetDLID(9) })
	send(func(b []byte) { roce.LRH(b).SetDLID(0xC001) })
	send(func(b []byte) { roce.BTH(b[roce.LRHSize:]).SetDestQP(multicastQPN) })
	if c.RxAddress != was.RxAddress+3 {
		t.Errorf("%d packets to other ports are counted", c.RxAddress-was.RxAddress)
	}
	send(func(b []byte) { roce.LRH(b).SetSLID(7) })
	send(func(b []byte) { roce.BTH(b[roce.LRHSize:]).SetPKey(0x8005) })
	send(func(b []byte) { roce.BTH(b[roce.LRHSize:]).SetPKey(0x7FFF) }) // a limited member may
	if c.RxAddress != was.RxAddress+4 || c.RxPKey != was.RxPKey+1 || hb.d.ib.badPKeys != 1 {
		t.Errorf("addresses %d, P_Keys %d, violations %d", c.RxAddress-was.RxAddress, c.RxPKey-was.RxPKey, hb.d.ib.badPKeys)
	}
	hb.d.LinkChanged(false)
	hb.d.LinkChanged(true)
	if hb.d.PortInfo().State != roce.PortInit || !hb.d.port.mute {
		t.Errorf("state %d after the link came back", hb.d.PortInfo().State)
	}
	before := c.RxAddress
	send(func([]byte) {})
	if c.RxAddress != before+1 {
		t.Error("a port in INIT takes packets")
	}
	if q := hb.d.qpn(b.n); q.state != prm.QPStateRTS {
		t.Errorf("state %d", q.state)
	}
	w.free()
}

func TestIBDatagram(t *testing.T) {
	ha, hb, w := ibHosts(t)
	a, b := ha.newUD(tQKey), hb.newUD(tQKey)
	src, dst := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	src.fill(pattern)
	way := func(global bool) func(v prm.AVSegment) {
		return func(v prm.AVSegment) {
			v.SetQKey(tQKey)
			v.SetDestQPN(b.n)
			v.SetRLID(hb.lid())
			v.SetStatRateSL(5)
			v.SetGRHPresent(global)
			v.SetHopLimit(8)
			copy(v.RGID(), hb.gid[:])
		}
	}
	for _, global := range []bool{false, true} {
		b.recv(dst.sge(0, 30), dst.sge(1000, 300))
		before := dst.bytes(0, 30)
		a.post(wr{op: prm.WQEOpSend, av: way(global), sges: []sge{src.sge(0, 50)}})
		run(t, ha.e, 50*sim.Microsecond)
		a.scq.expect(prm.CQEReq)
		e := b.rcq.expect(prm.CQERespSend)
		if e.ByteCnt() != 90 || e.RQPN() != a.n || (e.GRH() != 0) != global || e.SLID() != 1 || e.SL() != 5 || e.MLPath() != 0 || e.ImmInvalPKey() != 0 {
			t.Errorf("global %v: CQE % x", global, []byte(e))
		}
		if !bytes.Equal(dst.bytes(1010, 50), src.bytes(0, 50)) || !global && !bytes.Equal(dst.bytes(0, 30), before) {
			t.Errorf("global %v: received % x", global, dst.bytes(0, 30))
		}
	}
	w.free()
}

func TestIBCommands(t *testing.T) {
	ha, _, _ := ibHosts(t)
	v := prm.QueryHCAVportContextOut(ha.cmd(prm.NewIn(prm.OpQueryHCAVportContext, 0))).Context()
	if v.LID() != 1 || v.SMLID() != 1 || v.VportState() != uint32(roce.PortActive) || v.PortPhysicalState() != physLinkUp || v.PortGUID() != ha.id.GUID || v.SubnetTimeout() != 18 {
		t.Errorf("context % x", []byte(v)[:0x70])
	}
	table := func(op prm.Opcode, index uint32, room int) ([]byte, prm.Status) {
		in, out := prm.NewIn(op, 0), prm.NewOut(op, room)
		prm.QueryHCAVportGIDIn(in).SetGIDIndex(index) // at one place in both
		ha.d.Command(in, out)
		return out, prm.CmdOut(out).Status()
	}
	out, st := table(prm.OpQueryHCAVportGID, prm.AllVportEntries, 16*ibGIDs)
	if g := prm.QueryHCAVportGIDOut(out); st != prm.StatusOK || g.GIDsNum() != ibGIDs || roce.GID(g.GID(0)) != ha.gid || roce.GID(g.GID(1)) != (roce.GID{}) {
		t.Errorf("GIDs: %v", st)
	}
	out, st = table(prm.OpQueryHCAVportPKey, 1, 4)
	if k := prm.QueryHCAVportPKeyOut(out); st != prm.StatusOK || k.PKey(0) != 0x8005 {
		t.Errorf("P_Key: %v", st)
	}
	for _, c := range []struct {
		op    prm.Opcode
		index uint32
		room  int
		want  prm.Status
	}{
		{prm.OpQueryHCAVportGID, ibGIDs, 16, prm.StatusIX}, {prm.OpQueryHCAVportPKey, ibPKeys, 4, prm.StatusIX},
		{prm.OpQueryHCAVportGID, prm.AllVportEntries, 16, prm.StatusBadOutpLen}, {prm.OpQueryHCAVportPKey, prm.AllVportEntries, 4, prm.StatusBadOutpLen},
	} {
		if _, st := table(c.op, c.index, c.room); st != c.want {
			t.Errorf("%v of %d: status %v, want %v", c.op, c.index, st, c.want)
		}
	}
	for _, op := range []prm.Opcode{prm.OpSetRoCEAddress, prm.OpQueryRoCEAddress, prm.OpQueryNICVportContext, prm.OpModifyNICVportContext} {
		ha.status(prm.NewIn(op, 0), prm.StatusBadOp)
	}
	eth := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	for _, op := range []prm.Opcode{prm.OpQueryHCAVportContext, prm.OpQueryHCAVportGID} {
		eth.status(prm.NewIn(op, 0), prm.StatusBadOp)
	}
}

// A subnet manager's changes reach connections that are up.
func TestIBChangesOfThePort(t *testing.T) {
	ha, hb, a, b, w := ibConnect(t, false)
	src, dst := ha.newMR(64, rightsAll), hb.newMR(64, rightsAll)
	write := func() roce.Packet {
		w.free()
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: dst.va, rkey: dst.rkey, sges: []sge{src.sge(0, 8)}})
		run(t, ha.e, 20*sim.Microsecond)
		p, err := w.sent[0].Parse()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, h := range []*host{ha, hb} {
		h.d.SetPKeys([]uint16{0x8123})
	}
	if p := write(); p.BTH().PKey() != 0x8123 {
		t.Errorf("P_Key %#x", p.BTH().PKey())
	}
	a.scq.expect(prm.CQEReq)
	i := ha.d.PortInfo()
	i.LID = 0x31
	ha.d.SetPortInfo(i)
	if p := write(); p.LRH().SLID() != 0x31 {
		t.Errorf("SLID %#x", p.LRH().SLID())
	}
	if q := hb.d.qpn(b.n); q.responder.epsn != roce.AddPSN(a.psn, 1) {
		t.Error("a packet of another port than the peer's was executed")
	}
	w.free()
}

// FuzzInfiniBand gives a port packets of any bytes, and such as its peers could send.
func FuzzInfiniBand(f *testing.F) {
	for _, global := range []bool{false, true} {
		ha, _, a, _, w := ibConnect(f, global)
		src := ha.newMR(64, rightsAll)
		a.post(wr{op: prm.WQEOpSend, sges: []sge{src.sge(0, 8)}})
		run(f, ha.e, 5*sim.Microsecond)
		for _, fr := range w.sent {
			fr.FinishICRC()
			f.Add(bytes.Clone(fr.B), global)
		}
		w.free()
	}
	f.Fuzz(func(t *testing.T, packet []byte, global bool) {
		_, hb, _, b, _ := ibConnect(t, global)
		u := hb.newUD(tQKey)
		r := hb.newMR(4096, rightsAll)
		b.recv(r.sge(0, 600))
		u.recv(r.sge(1000, 20), r.sge(2000, 100))
		run(t, hb.e, sim.Microsecond)
		for _, right := range []bool{false, true} {
			fr := hb.d.frames.Get(len(packet))
			copy(fr.B, packet)
			fr.LRH = true
			if p, err := fr.Parse(); right && err == nil {
				roce.LRH(fr.B).SetDLID(hb.lid())
				roce.PutICRC(fr.B[p.Len()-roce.ICRCSize:], p.ComputeICRC())
			}
			hb.d.Receive(fr)
		}
		settle(t, hb.e)
		if n := hb.d.frames.Live; n != 0 {
			t.Fatalf("%d frames leaked", n)
		}
	})
}
