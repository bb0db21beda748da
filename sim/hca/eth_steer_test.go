package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// steered sends packets and says which queues they came to.
type steered struct {
	t      *testing.T
	a, b   *netHost
	queues []*tRQ
}

func (s *steered) expect(what string, data []byte, want ...int) {
	s.t.Helper()
	s.a.send.transmit(packetWQE{data: data})
	run(s.t, s.a.e, 30*usec)
	var got []int
	for i, q := range s.queues {
		for {
			p, e := q.next()
			if e == nil {
				break
			}
			if !bytes.Equal(p, data) {
				s.t.Errorf("%s: % x", what, p)
			}
			got = append(got, i)
			q.post(1)
		}
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] || len(got) > 1 && got[1] != want[1] {
		s.t.Errorf("%s: to %v, want %v", what, got, want)
	}
}

// newSteered makes n queues besides the first, each with a TIR of its own.
func newSteered(t *testing.T, n int) (s *steered, tirs []uint32) {
	a, b, _ := netPair(t)
	s = &steered{t: t, a: a, b: b, queues: []*tRQ{b.recv}}
	tirs = []uint32{b.tir}
	for range n {
		q := b.newRQ(nil)
		q.become(prm.PacketQueueRST, prm.PacketQueueRDY)
		s.queues, tirs = append(s.queues, q), append(tirs, b.newTIR(q.n))
	}
	for _, q := range s.queues {
		q.post(tPackets)
	}
	return s, tirs
}

// TestSteering walks tables as a driver of Linux lays them: addresses, then kinds of packets, with
// what misses going on.
func TestSteering(t *testing.T) {
	s, tirs := newSteered(t, 3)
	b := s.b
	// Level 1: UDP over IPv4, ARP, everything else.
	kinds := b.newTable(1, 0)
	udp4 := b.newGroup(kinds, 0, 0, func(k prm.FlowHeaders) { k.SetIPVersion(0xf); k.SetIPProtocol(0xff) })
	b.setEntry(kinds, udp4, 0, func(k prm.FlowHeaders) { k.SetIPVersion(4); k.SetIPProtocol(roce.ProtoUDP) }, toTIR(tirs[1]))
	arp := b.newGroup(kinds, 1, 1, func(k prm.FlowHeaders) { k.SetEtherType(0xffff) })
	b.setEntry(kinds, arp, 1, func(k prm.FlowHeaders) { k.SetEtherType(0x806) }, toTIR(tirs[2]))
	rest := b.newGroup(kinds, 2, 2, nil)
	b.setEntry(kinds, rest, 2, nil, toTIR(tirs[3]))
	// Level 0: the own address leads there, all groups too, one host's packets are dropped; the
	// rest is dropped as nothing matches.
	del := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	prm.DeleteFlowEntryIn(del).SetTableID(b.table)
	b.cmd(del)
	b.setEntry(b.table, b.group, 0, b.toMAC(b.id.MAC), toTable(kinds))
	groups := b.newGroup(b.table, 8, 8, func(k prm.FlowHeaders) { k.SetDMACHigh(1 << 24) })
	b.setEntry(b.table, groups, 8, func(k prm.FlowHeaders) { k.SetDMACHigh(1 << 24) }, toTable(kinds))

	data := checked(udp(s.a, b, 7, patterned(60)))
	s.expect("UDP to the own address", data, 1)
	other := bytes.Clone(data)
	other[5] ^= 0x40
	s.expect("UDP to another address", other)
	copy(other, []byte{1, 0, 0x5e, 0, 0, 1})
	s.expect("to a group", other, 1)
	tcp := bytes.Clone(data)
	roce.IPv4(tcp[14:]).SetProtocol(ether.ProtoTCP)
	s.expect("TCP", tcp, 3)
	who := make([]byte, 60)
	copy(who, bytes.Repeat([]byte{0xff}, 6))
	roce.Ethernet(who).SetType(0x806)
	s.expect("ARP", who, 2)
	roce.Ethernet(who).SetType(0x88cc)
	s.expect("LLDP", who, 3)
	roce.Ethernet(who).SetType(roce.EtherTypeIPv4) // not whole
	s.expect("half a packet", who, 3)
	if b.d.nic.c.rxDropped != 1 {
		t.Errorf("%+v", b.d.nic.c)
	}

	// A table in front, whose misses go on to the former root.
	front := prm.NewIn(prm.OpCreateFlowTable, 0)
	prm.CreateFlowTableIn(front).Context().SetLogSize(2)
	first := prm.CreateFlowTableOut(b.cmd(front)).TableID()
	mod := prm.NewIn(prm.OpModifyFlowTable, 0)
	m := prm.ModifyFlowTableIn(mod)
	m.SetTableID(first)
	m.SetFieldSelect(prm.FlowTableMissID)
	m.Context().SetMissAction(prm.FlowMissForward)
	m.Context().SetMissID(kinds)
	b.cmd(mod)
	ports := b.newGroup(first, 0, 3, func(k prm.FlowHeaders) { k.SetUDPDport(0xffff); copy(k.SrcIP()[12:], []byte{255, 255, 255, 255}) })
	b.setEntry(first, ports, 3, func(k prm.FlowHeaders) { k.SetUDPDport(7); copy(k.SrcIP()[12:], s.a.id.IPv4[:]) }, toTIR(tirs[0], tirs[2]))
	b.setEntry(first, ports, 1, func(k prm.FlowHeaders) { k.SetUDPDport(8); copy(k.SrcIP()[12:], s.a.id.IPv4[:]) }, drop)
	root := prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(root).SetTableID(first)
	b.cmd(root)
	s.expect("to two TIRs", data, 0, 2)
	s.expect("dropped by an entry", checked(udp(s.a, b, 8, patterned(60))))
	s.expect("missed in the front", checked(udp(s.a, b, 9, patterned(60))), 1)
	// The entry is changed to lead elsewhere.
	in := entryIn(first, ports, 3, nil, toTIR(tirs[3]))
	prm.CmdIn(in).SetOpMod(prm.FlowEntryChange)
	prm.SetFlowEntryIn(in).SetModifyEnableMask(prm.FlowChangeDestinations)
	b.cmd(in)
	s.expect("changed", data, 3)
	prm.CmdIn(root).SetOpMod(prm.FlowRootTake)
	b.cmd(root)
	s.expect("without a root", data)
}

// TestFlowCounters: entries count, and a tag comes with the packet.
func TestFlowCounters(t *testing.T) {
	s, tirs := newSteered(t, 0)
	b := s.b
	id := prm.AllocFlowCounterOut(b.cmd(prm.NewIn(prm.OpAllocFlowCounter, 0))).ID()
	in := entryIn(b.table, b.group, 0, nil, toTIR(tirs[0]), count(id))
	prm.CmdIn(in).SetOpMod(prm.FlowEntryChange)
	prm.SetFlowEntryIn(in).SetModifyEnableMask(prm.FlowChangeAction | prm.FlowChangeTag | prm.FlowChangeCounters | prm.FlowChangeDestinations)
	prm.SetFlowEntryIn(in).Context().SetFlowTag(0x1234)
	b.cmd(in)
	data := checked(udp(s.a, b, 7, patterned(60)))
	for range 3 {
		s.a.send.transmit(packetWQE{data: data})
		run(t, s.a.e, 20*usec)
		if _, e := b.recv.next(); e == nil || e.FlowTag() != 0x1234 {
			t.Fatalf("CQE % x", []byte(e))
		}
	}
	query := prm.NewIn(prm.OpQueryFlowCounter, 0)
	prm.QueryFlowCounterIn(query).SetID(id)
	prm.QueryFlowCounterIn(query).SetClear(true)
	for _, want := range []uint64{3, 0} {
		out := make([]byte, prm.QueryFlowCounterOutSize+16)
		b.d.Command(query, out)
		if l := prm.QueryFlowCounterOut(out).Statistics(); prm.CmdOut(out).Status() != prm.StatusOK || l.Packets(0) != want || l.Octets(0) != want*uint64(len(data)) {
			t.Errorf("%v: %d packets, %d octets", prm.CmdOut(out).Status(), l.Packets(0), l.Octets(0))
		}
	}
	free := prm.NewIn(prm.OpDeallocFlowCounter, 0)
	prm.DeallocFlowCounterIn(free).SetID(id)
	if _, st := b.try(free); st != prm.StatusBadResState {
		t.Errorf("a counter in use: %v", st)
	}
}

// TestHashKeepsConnectionsTogether: a TIR with a table of queues spreads connections, and keeps the
// packets of one together.
func TestHashKeepsConnectionsTogether(t *testing.T) {
	s, tirs := newSteered(t, 3)
	b := s.b
	in := prm.NewIn(prm.OpCreateRQT, 16)
	m := prm.CreateRQTIn(in)
	m.Context().SetMaxSize(4)
	m.Context().SetActualSize(4)
	for i, q := range s.queues {
		m.List().Set(i, q.n)
	}
	rqt := prm.CreateRQTOut(b.cmd(in)).RQTN()
	in = prm.NewIn(prm.OpCreateTIR, 0)
	c := prm.CreateTIRIn(in).Context()
	c.SetTransportDomain(b.td)
	c.SetDispType(prm.TIRIndirect)
	c.SetIndirectTable(rqt)
	c.SetRxHashFn(prm.RxHashToeplitz)
	c.SetOuterSelectedFields(prm.RxHashSrcIP | prm.RxHashDstIP | prm.RxHashSport | prm.RxHashDport)
	copy(c.RxHashToeplitzKey(), patterned(40))
	tir := prm.CreateTIROut(b.cmd(in)).TIRN()
	change := entryIn(b.table, b.group, 0, nil, toTIR(tir))
	prm.CmdIn(change).SetOpMod(prm.FlowEntryChange)
	prm.SetFlowEntryIn(change).SetModifyEnableMask(prm.FlowChangeDestinations)
	b.cmd(change)
	_ = tirs
	used := map[int]int{}
	for port := range uint16(40) {
		data := checked(udp(s.a, b, 100+port, patterned(60)))
		h := ether.Parse(data)
		all := ether.Fields{SrcIP: true, DstIP: true, SrcPort: true, DstPort: true}
		hash := ether.Toeplitz(patterned(40), all.Tuple(&h, data, nil))
		at := int(hash & 3)
		used[at]++
		s.a.send.transmit(packetWQE{data: data})
		run(t, s.a.e, 20*usec)
		got, e := s.queues[at].next()
		if !bytes.Equal(got, data) || e.RSSHash() != hash || e.RSSHashType() != prm.CQERSSIPv4|prm.CQERSSUDP {
			t.Fatalf("port %d: CQE % x", 100+port, []byte(e))
		}
		s.queues[at].post(1)
	}
	if len(used) != 4 {
		t.Errorf("queues %v", used)
	}
	// A table of one, and a hash of nothing.
	in = prm.NewIn(prm.OpModifyRQT, 4)
	prm.ModifyRQTIn(in).SetRQTN(rqt)
	prm.ModifyRQTIn(in).SetSelectList(true)
	prm.ModifyRQTIn(in).Context().SetActualSize(1)
	prm.ModifyRQTIn(in).List().Set(0, s.queues[2].n)
	b.cmd(in)
	in = prm.NewIn(prm.OpModifyTIR, 0)
	prm.ModifyTIRIn(in).SetTIRN(tir)
	prm.ModifyTIRIn(in).SetSelectHash(true)
	prm.ModifyTIRIn(in).Context().SetRxHashFn(prm.RxHashInvertedXOR8)
	b.cmd(in)
	data := checked(udp(s.a, b, 7, patterned(60)))
	s.a.send.transmit(packetWQE{data: data})
	run(t, s.a.e, 20*usec)
	if got, e := s.queues[2].next(); !bytes.Equal(got, data) || e.RSSHash() != 0xff || e.RSSHashType() != 0 {
		t.Errorf("CQE % x", []byte(e))
	}
}

// TestManyLookups: entries that lead to two tables each, level by level, end.
func TestManyLookups(t *testing.T) {
	s, tirs := newSteered(t, 0)
	b := s.b
	last := b.newTable(40, 0)
	g := b.newGroup(last, 0, 0, nil)
	b.setEntry(last, g, 0, nil, toTIR(tirs[0]))
	for level := uint32(39); level > 0; level-- {
		table := b.newTable(level, 0)
		g := b.newGroup(table, 0, 0, nil)
		b.setEntry(table, g, 0, nil, toTable(last, last))
		last = table
	}
	root := prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(root).SetTableID(last)
	b.cmd(root)
	s.a.send.transmit(packetWQE{data: checked(udp(s.a, b, 7, nil))})
	run(t, s.a.e, 100*usec)
	if got, _ := b.recv.next(); got == nil {
		t.Error("nothing")
	}
}

// TestNetdevGoesAway: TEARDOWN and a reset with packets under way leave nothing behind.
func TestNetdevGoesAway(t *testing.T) {
	for _, reset := range []bool{false, true} {
		a, b, _ := netPair(t)
		data := checked(udp(a, b, 7, patterned(1000)))
		b.recv.post(tPackets)
		for range 4 {
			a.send.post(packetWQE{data: data})
		}
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 1*usec)
		for _, h := range []*netHost{a, b} {
			if reset {
				h.d.Reset()
			} else {
				h.cmd(prm.NewIn(prm.OpTeardownHCA, 0))
			}
		}
		before := b.readAll(b.recv.buf, tPackets*4096)
		run(t, a.e, 100*usec)
		if !bytes.Equal(before, b.readAll(b.recv.buf, tPackets*4096)) {
			t.Error("written to after the end")
		}
		if n := a.d.Frames().Live + b.d.Frames().Live; n != 0 {
			t.Errorf("%d frames are left over", n)
		}
	}
}

// readAll reads memory.
func (h *host) readAll(pa mem.PA, n int) []byte {
	b := make([]byte, n)
	h.m.Read(pa, b)
	return b
}
