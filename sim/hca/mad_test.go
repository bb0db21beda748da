package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// newMAD is a request to an agent.
func newMAD(class, version, method uint8, attribute uint16, modifier uint32) mad.MAD {
	m := make(mad.MAD, mad.Size)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(class)
	m.SetClassVersion(version)
	m.SetMethod(method)
	m.SetAttribute(attribute)
	m.SetModifier(modifier)
	m.SetTID(0x1234)
	return m
}

// madIFC gives a datagram to the device's agents by the command.
func (h *host) madIFC(m mad.MAD) (mad.MAD, prm.Status) {
	in := prm.NewIn(prm.OpMADIFC, 0)
	prm.MADIFCIn(in).SetPort(1)
	copy(prm.MADIFCIn(in).MAD(), m)
	out, st := h.try(in)
	return prm.MADIFCOut(out).MAD(), st
}

// TestMADIFC: the agents of the port answer what the driver hands on, and a subnet manager that
// comes by them brings the port up.
func TestMADIFC(t *testing.T) {
	e := sim.New(sim.Options{MaxEvents: 1 << 20})
	h := newHost(t, e, ibParams(), 7)
	smp := func(method uint8, attribute uint16, modifier uint32, fill func(b []byte)) mad.MAD {
		t.Helper()
		m := newMAD(mad.ClassSubnLID, mad.SubnVersion, method, attribute, modifier)
		fill(m.SMPData())
		a, st := h.madIFC(m)
		if st != prm.StatusOK || a.Method() != mad.GetResp || a.TID() != m.TID() {
			t.Fatalf("attribute %#x: %v, method %#x", attribute, st, a.Method())
		}
		return a
	}
	none := func([]byte) {}
	a := smp(mad.Get, mad.AttrNodeInfo, 0, none)
	if b := a.SMPData(); attr.NodeGUID.Get(b) != h.id.GUID || attr.NodeType.Get(b) != 1 || attr.NodePorts.Get(b) != 1 || attr.NodeLocalPort.Get(b) != 1 || attr.NodePartitions.Get(b) != ibPKeys {
		t.Errorf("NodeInfo % x", b)
	}
	if b := smp(mad.Get, mad.AttrPortInfo, 1, none).SMPData(); attr.PortState.Get(b) != uint64(roce.PortInit) || attr.PortLID.Get(b) != 0 || attr.PortGIDPrefix.Get(b) != roce.DefaultGIDPrefix {
		t.Errorf("PortInfo at first: % x", b)
	}
	set := func(state roce.PortState) mad.MAD {
		return smp(mad.Set, mad.AttrPortInfo, 1, func(b []byte) {
			attr.PortLID.Set(b, 5)
			attr.PortSMLID.Set(b, 3)
			attr.PortGIDPrefix.Set(b, 0xfec0<<48)
			attr.PortNeighborMTU.Set(b, uint64(roce.MTU2048))
			attr.PortOperationalVLs.Set(b, 2)
			attr.PortState.Set(b, uint64(state))
		})
	}
	if m := set(roce.PortActive); m.Status() != mad.StatusBadField || h.d.PortInfo().LID != 0 {
		t.Errorf("from INIT to ACTIVE: status %#x", m.Status())
	}
	if m := set(roce.PortArmed); m.Status() != mad.StatusOK || attr.PortState.Get(m.SMPData()) != uint64(roce.PortArmed) {
		t.Errorf("to ARMED: status %#x", m.Status())
	}
	set(roce.PortActive)
	if i := h.d.PortInfo(); i.State != roce.PortActive || i.LID != 5 || i.SMLID != 3 || i.MTU != roce.MTU2048 || i.VLs != 2 || i.GIDPrefix != 0xfec0<<48 {
		t.Errorf("port %+v", i)
	}
	if b := smp(mad.Set, mad.AttrPKeyTable, 1, func(b []byte) { b[0], b[1] = 0x80, 0x11 }).SMPData(); b[0] != 0x80 || h.d.ib.pkeys[32] != 0x8011 || h.d.ib.pkeys[0] != roce.DefaultPKey {
		t.Errorf("P_Keys % x", h.d.ib.pkeys[:40])
	}
	for what, m := range map[string]mad.MAD{
		"a port that is not there":   smp(mad.Get, mad.AttrPortInfo, 2, none),
		"a block that is not there":  smp(mad.Get, mad.AttrPKeyTable, 4, none),
		"an attribute of a switch":   smp(mad.Get, mad.AttrSwitchInfo, 0, none),
		"an attribute to read only":  smp(mad.Set, mad.AttrNodeInfo, 0, none),
		"a LID that is a group's":    smp(mad.Set, mad.AttrPortInfo, 1, func(b []byte) { attr.PortLID.Set(b, 0xc000); attr.PortSMLID.Set(b, 1) }),
		"more lanes than there are":  smp(mad.Set, mad.AttrPortInfo, 1, func(b []byte) { attr.PortLID.Set(b, 5); attr.PortSMLID.Set(b, 1); attr.PortOperationalVLs.Set(b, 5) }),
		"an MTU that does not exist": smp(mad.Set, mad.AttrPortInfo, 1, func(b []byte) { attr.PortLID.Set(b, 5); attr.PortSMLID.Set(b, 1); attr.PortNeighborMTU.Set(b, 9) }),
	} {
		if m.Status() == mad.StatusOK {
			t.Errorf("%s: status 0", what)
		}
	}
	if m, st := h.madIFC(newMAD(0x0a, 1, mad.Get, 0x10, 0)); st != prm.StatusOK || m.Status() != mad.StatusBadVersion {
		t.Errorf("a class without agent: %v, status %#x", st, m.Status())
	}
	if _, st := h.madIFC(newMAD(mad.ClassSubnLID, 1, mad.GetResp, mad.AttrNodeInfo, 0)); st != prm.StatusBadPkt {
		t.Errorf("an answer: %v", st)
	}
	if _, st := h.madIFC(make(mad.MAD, mad.Size)); st != prm.StatusBadPkt {
		t.Errorf("no datagram: %v", st)
	}
}

// counting is a wire with counters.
type counting struct {
	relay
	n uint64
}

// TestPerformanceAgent: counters of the wire, and their reset, which leaves the wire's own alone.
func TestPerformanceAgent(t *testing.T) {
	e := sim.New(sim.Options{MaxEvents: 1 << 20})
	h := newHost(t, e, ibParams(), 7)
	w := &counting{n: 1 << 33}
	h.d.SetWire(w)
	ask := func(method uint8, attribute uint16, chosen uint64) []byte {
		t.Helper()
		m := newMAD(mad.ClassPerf, mad.PerfVersion, method, attribute, 0)
		attr.CountersPort.Set(m.PerfData(), 1)
		attr.CountersSelect.Set(m.PerfData(), chosen)
		a, st := h.madIFC(m)
		if st != prm.StatusOK || a.Status() != mad.StatusOK {
			t.Fatalf("attribute %#x: %v, status %#x", attribute, st, a.Status())
		}
		return a.PerfData()
	}
	if b := ask(mad.Get, mad.AttrClassPortInfo, 0); attr.ClassCapMask.Get(b) != mad.PerfExtendedWidth {
		t.Errorf("ClassPortInfo % x", b[:8])
	}
	if b := ask(mad.Get, mad.AttrPortCounters, 0); attr.CounterXmitPackets.Get(b) != 1<<32-1 || attr.CounterDowned.Get(b) != 0xff {
		t.Errorf("PortCounters % x", b[:48])
	}
	if b := ask(mad.Get, mad.AttrPortCountersExt, 0); attr.CounterXmitPackets64.Get(b) != w.n {
		t.Errorf("PortCountersExtended % x", b[:72])
	}
	ask(mad.Set, mad.AttrPortCounters, 1<<14) // of the packets that were sent
	w.n += 7
	if b := ask(mad.Get, mad.AttrPortCounters, 0); attr.CounterXmitPackets.Get(b) != 7 || attr.CounterRcvPackets.Get(b) != 1<<32-1 {
		t.Errorf("after the reset: % x", b[:48])
	}
	if out := h.cmd(prm.NewIn(prm.OpQueryVportCounter, 0)); len(out) == 0 {
		t.Error("no counters of the vport")
	}
}

// TestQP0: packets to QP0 pass before there is a subnet manager, on the lane of their own; packets
// of other queues to it do not.
func TestQP0(t *testing.T) {
	e := sim.New(sim.Options{MaxEvents: 1 << 22})
	ha, hb := newHost(t, e, ibParams(), 1), newHost(t, e, ibParams(), 2)
	w := &seize{to: hb.d}
	ha.d.SetWire(w)
	hb.d.SetWire(relay{ha.d})
	smi := func(h *host) *tQP {
		q := h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar, func(c prm.QPC) { c.SetST(prm.STQP0) })
		for _, op := range []prm.Opcode{prm.OpRst2InitQP, prm.OpInit2RTRQP, prm.OpRTR2RTSQP} {
			q.modify(op, func(c prm.QPC) {
				c.SetST(prm.STQP0)
				c.PrimaryPath().SetVHCAPortNum(1)
				c.SetMTU(uint32(roce.MTU256))
				c.SetLogMsgMax(8)
			})
		}
		return q
	}
	a, b := smi(ha), smi(hb)
	src, dst := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	src.fill(pattern)
	permissive := func(v prm.AVSegment) {
		v.SetExtended(true)
		v.SetRLID(roce.PermissiveLID)
		v.SetDestQPN(0)
	}
	b.recv(dst.sge(0, 40), dst.sge(1000, 256))
	a.post(wr{op: prm.WQEOpSend, av: permissive, sges: []sge{src.sge(0, 256)}})
	run(t, e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	if c := b.rcq.expect(prm.CQERespSend); c.SLID() != roce.PermissiveLID || c.RQPN() != 0 || c.ByteCnt() != 296 {
		t.Errorf("CQE % x", []byte(c))
	}
	w.sent[0].FinishICRC()
	p, err := w.sent[0].Parse()
	if err != nil || p.LRH().VL() != roce.ManagementVL || p.LRH().DLID() != roce.PermissiveLID || p.BTH().DestQP() != 0 {
		t.Fatalf("%v: % x", err, w.sent[0].B)
	}
	// A datagram of a program does not reach QP0, whatever number it names.
	ha.manage(1)
	hb.manage(2)
	u := ha.newUD(0)
	b.recv(dst.sge(0, 40), dst.sge(1000, 256))
	u.post(wr{op: prm.WQEOpSend, av: func(v prm.AVSegment) { permissive(v); v.SetRLID(2) }, sges: []sge{src.sge(0, 256)}})
	run(t, e, 50*sim.Microsecond)
	b.rcq.expectNone()
	w.free()
}

func (w *counting) PerformanceCounters() mgmt.Counters {
	return mgmt.Counters{XmitPackets: w.n, RcvPackets: w.n, Downed: w.n}
}
