package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// refused expects a command to end with a status, and to have changed nothing that the test sees.
func (h *host) refused(what string, in []byte, want prm.Status) {
	h.t.Helper()
	if _, st := h.try(in); st != want {
		h.t.Errorf("%s: %v is answered %v, want %v", what, prm.CmdIn(in).Opcode(), st, want)
	}
}

// of is a command with the number of an object where op has it.
func of(op prm.Opcode, n uint32) []byte {
	in := prm.NewIn(op, 0)
	prm.DestroySQIn(in).SetSQN(n)
	return in
}

// TestOneNumberSpace: SQs, RQs and QPs never share a number, and a number is not given out again at
// once.
func TestOneNumberSpace(t *testing.T) {
	a, _, _ := netPair(t)
	seen := map[uint32]bool{a.send.n: true, a.recv.n: true}
	for range 20 {
		sq, rq, qp := a.newSQ(nil), a.newRQ(nil), a.newQP(a.newCQ(5, 64), a.newCQ(5, 64))
		for _, n := range []uint32{sq.n, rq.n, qp.n} {
			if seen[n] {
				t.Fatalf("number %#x is given out twice", n)
			}
			seen[n] = true
		}
		a.refused("an SQ as an RQ", of(prm.OpDestroyRQ, sq.n), prm.StatusBadResState)
		a.refused("an RQ as an SQ", of(prm.OpQuerySQ, rq.n), prm.StatusBadResState)
		a.refused("a QP as an SQ", of(prm.OpDestroySQ, qp.n), prm.StatusBadResState)
		a.refused("an SQ as a QP", number(prm.OpDestroyQP, sq.n), prm.StatusBadResState)
		a.cmd(of(prm.OpDestroySQ, sq.n))
		a.cmd(of(prm.OpDestroyRQ, rq.n))
		a.refused("a destroyed SQ", of(prm.OpQuerySQ, sq.n), prm.StatusBadResState)
		a.refused("a destroyed RQ", of(prm.OpQueryRQ, rq.n), prm.StatusBadResState)
	}
}

// TestPacketQueueChecks: contexts that a queue cannot have.
func TestPacketQueueChecks(t *testing.T) {
	a, _, _ := netPair(t)
	for what, edit := range map[string]func(c prm.SQC){
		"no CQ":             func(c prm.SQC) { c.SetCQN(999) },
		"a state":           func(c prm.SQC) { c.SetState(prm.PacketQueueRDY) },
		"no TIS":            func(c prm.SQC) { c.SetTISNum0(77) },
		"two TISs":          func(c prm.SQC) { c.SetTISLstSz(2) },
		"no PD":             func(c prm.SQC) { c.WQ().SetPD(0) },
		"no UAR":            func(c prm.SQC) { c.WQ().SetUARPage(500) },
		"a linked list":     func(c prm.SQC) { c.WQ().SetWQType(prm.WQTypeLinkedList) },
		"a stride":          func(c prm.SQC) { c.WQ().SetLogWQStride(5) },
		"too long":          func(c prm.SQC) { c.WQ().SetLogWQSz(logMaxPacketQueue + 1) },
		"few pages":         func(c prm.SQC) { c.WQ().SetLogWQSz(10) },
		"a crooked record":  func(c prm.SQC) { c.WQ().SetDBRAddr(4) },
		"multi-packet WQEs": func(c prm.SQC) { c.SetAllowMultiPktSendWQE(true) },
		"UMR":               func(c prm.SQC) { c.SetRegUMR(true) },
		"hairpin":           func(c prm.SQC) { c.SetHairpin(true) },
	} {
		a.refused(what, a.createSQ(a.send, edit), prm.StatusBadParam)
	}
	for what, edit := range map[string]func(c prm.RQC){
		"no CQ":            func(c prm.RQC) { c.SetCQN(999) },
		"a state":          func(c prm.RQC) { c.SetState(prm.PacketQueueERR) },
		"an RMP":           func(c prm.RQC) { c.SetMemRQType(1) },
		"no such counters": func(c prm.RQC) { c.SetCounterSetID(99) },
		"no such PD":       func(c prm.RQC) { c.WQ().SetPD(99) },
		"striding":         func(c prm.RQC) { c.WQ().SetWQType(3) },
		"a stride":         func(c prm.RQC) { c.WQ().SetLogWQStride(3) },
	} {
		a.refused(what, a.createRQ(a.recv, edit), prm.StatusBadParam)
	}
	// Transitions.
	const rst, rdy, bad = prm.PacketQueueRST, prm.PacketQueueRDY, prm.PacketQueueERR
	a.refused("not that state", a.send.modify(rst, rdy), prm.StatusBadResState)
	a.refused("not that state", a.recv.modify(bad, rdy), prm.StatusBadResState)
	a.send.become(rdy, bad)
	a.recv.become(rdy, bad)
	a.refused("ERR to RDY", a.send.modify(bad, rdy), prm.StatusBadResState)
	a.refused("ERR to RDY", a.recv.modify(bad, rdy), prm.StatusBadResState)
	a.refused("no such state", a.send.modify(bad, 2), prm.StatusBadResState)
	in := a.recv.modify(bad, bad)
	prm.ModifyRQIn(in).SetSelect(1 << 7)
	a.refused("a field", in, prm.StatusBadParam)
	if a.send.state() != bad || a.recv.state() != bad {
		t.Error("a refused transition has happened")
	}
}

// TestNetdevInUse: nothing is destroyed that something else needs, and everything in the right
// order.
func TestNetdevInUse(t *testing.T) {
	a, _, _ := netPair(t)
	group := prm.NewIn(prm.OpDestroyFlowGroup, 0)
	prm.DestroyFlowGroupIn(group).SetTableID(a.table)
	prm.DestroyFlowGroupIn(group).SetGroupID(a.group)
	table := prm.NewIn(prm.OpDestroyFlowTable, 0)
	prm.DestroyFlowTableIn(table).SetTableID(a.table)
	entry := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	prm.DeleteFlowEntryIn(entry).SetTableID(a.table)
	in := prm.NewIn(prm.OpCreateRQT, 4)
	prm.CreateRQTIn(in).Context().SetMaxSize(1)
	prm.CreateRQTIn(in).Context().SetActualSize(1)
	prm.CreateRQTIn(in).List().Set(0, a.recv.n)
	rqt := prm.CreateRQTOut(a.cmd(in)).RQTN()
	in = prm.NewIn(prm.OpCreateTIR, 0)
	prm.CreateTIRIn(in).Context().SetTransportDomain(a.td)
	prm.CreateTIRIn(in).Context().SetDispType(prm.TIRIndirect)
	prm.CreateTIRIn(in).Context().SetIndirectTable(rqt)
	tir := prm.CreateTIROut(a.cmd(in)).TIRN()
	td := prm.NewIn(prm.OpDeallocTransportDomain, 0)
	prm.DeallocTransportDomainIn(td).SetTransportDomain(a.td)
	for _, step := range []struct {
		what string
		in   []byte
	}{
		{"the domain of TIRs and TISs", td},
		{"a table with groups", table},
		{"a group with entries", group},
		{"a TIR that an entry leads to", of(prm.OpDestroyTIR, a.tir)},
		{"an RQT that a TIR has", of(prm.OpDestroyRQT, rqt)},
		{"an RQ that a TIR has", of(prm.OpDestroyRQ, a.recv.n)},
		{"a TIS that an SQ has", of(prm.OpDestroyTIS, a.tis)},
		{"the CQ of an SQ", of(prm.OpDestroyCQ, a.send.cq.n)},
		{"the CQ of an RQ", of(prm.OpDestroyCQ, a.recv.cq.n)},
		{"the PD of queues", of(prm.OpDeallocPD, a.pd)},
		{"the counters of an RQ", of(prm.OpDeallocQCounter, a.qset)},
	} {
		a.refused(step.what, step.in, prm.StatusBadResState)
	}
	for _, in := range [][]byte{
		entry, group, table, of(prm.OpDestroyTIR, a.tir), of(prm.OpDestroyTIR, tir), of(prm.OpDestroyRQT, rqt), of(prm.OpDestroyRQ, a.recv.n),
		of(prm.OpDestroySQ, a.send.n), of(prm.OpDestroyTIS, a.tis), of(prm.OpDestroyCQ, a.send.cq.n), of(prm.OpDestroyCQ, a.recv.cq.n), td,
		of(prm.OpDeallocQCounter, a.qset),
	} {
		a.cmd(in)
		a.refused("what is gone", in, prm.StatusBadResState)
	}
}

// TestFlowChecks: tables, groups and entries that cannot be.
func TestFlowChecks(t *testing.T) {
	a, _, _ := netPair(t)
	upper := a.newTable(3, 0)
	same := a.newTable(3, 0)
	table := func(edit func(m prm.CreateFlowTableIn)) []byte {
		in := prm.NewIn(prm.OpCreateFlowTable, 0)
		edit(prm.CreateFlowTableIn(in))
		return in
	}
	for what, edit := range map[string]func(m prm.CreateFlowTableIn){
		"of transmit": func(m prm.CreateFlowTableIn) { m.SetTableType(1) },
		"too large":   func(m prm.CreateFlowTableIn) { m.Context().SetLogSize(30) },
		"too high":    func(m prm.CreateFlowTableIn) { m.Context().SetLevel(200) },
		"miss downwards": func(m prm.CreateFlowTableIn) {
			m.Context().SetLevel(3)
			m.Context().SetMissAction(1)
			m.Context().SetMissID(upper)
		},
		"other domain": func(m prm.CreateFlowTableIn) { m.Context().SetMissAction(2) },
		"termination":  func(m prm.CreateFlowTableIn) { m.Context().SetTerminationTable(true) },
	} {
		a.refused(what, table(edit), prm.StatusBadParam)
	}
	a.refused("miss to nowhere", table(func(m prm.CreateFlowTableIn) { m.Context().SetMissAction(1); m.Context().SetMissID(99) }), prm.StatusBadResState)

	a.refused("a group that overlaps", groupIn(a.table, 7, 9, nil), prm.StatusBadParam)
	a.refused("a group outside", groupIn(a.table, 10, 16, nil), prm.StatusBadParam)
	a.refused("a group backwards", groupIn(a.table, 11, 10, nil), prm.StatusBadParam)
	a.refused("no table", groupIn(99, 0, 0, nil), prm.StatusBadResState)
	a.refused("a field that is not looked at", groupIn(a.table, 9, 9, func(k prm.FlowHeaders) { k[0x18] = 0xff }), prm.StatusBadParam)
	in := groupIn(a.table, 9, 9, nil)
	prm.CreateFlowGroupIn(in).SetCriteriaEnable(2)
	a.refused("other criteria", in, prm.StatusBadParam)

	here, up := a.group, a.newGroup(upper, 0, 3, nil)
	a.refused("an entry that is there", entryIn(a.table, here, 0, nil, drop), prm.StatusBadResState)
	a.refused("an index of no group", entryIn(a.table, here, 12, nil, drop), prm.StatusBadResState)
	a.refused("another table's group", entryIn(a.table, up, 1, nil, drop), prm.StatusBadResState)
	a.refused("nothing to do", entryIn(a.table, here, 1, nil), prm.StatusBadParam)
	a.refused("forwarded and dropped", entryIn(a.table, here, 1, nil, drop, toTIR(a.tir)), prm.StatusBadParam)
	a.refused("no TIR", entryIn(a.table, here, 1, nil, toTIR(99)), prm.StatusBadResState)
	a.refused("no table", entryIn(a.table, here, 1, nil, toTable(99)), prm.StatusBadResState)
	a.refused("a table of the same level", entryIn(upper, up, 1, nil, toTable(same)), prm.StatusBadParam)
	a.refused("itself", entryIn(a.table, here, 1, nil, toTable(a.table)), prm.StatusBadParam)
	a.refused("no counter", entryIn(a.table, here, 1, nil, toTIR(a.tir), count(99)), prm.StatusBadResState)
	long := entryIn(a.table, here, 1, nil, toTIR(a.tir))
	prm.SetFlowEntryIn(long).Context().SetDestinations(9)
	a.refused("more destinations than the mailbox has", long, prm.StatusBadParam)
	change := entryIn(a.table, here, 2, nil, drop)
	prm.CmdIn(change).SetOpMod(prm.FlowEntryChange)
	a.refused("a change of nothing", change, prm.StatusBadResState)
	mod := prm.NewIn(prm.OpModifyFlowTable, 0)
	prm.ModifyFlowTableIn(mod).SetTableID(upper)
	a.refused("no field", mod, prm.StatusBadParam)
	root := prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(root).SetTableID(99)
	a.refused("no such root", root, prm.StatusBadResState)
}

// TestTIRChecks: contexts that a TIR, a TIS or an RQT cannot have.
func TestTIRChecks(t *testing.T) {
	a, _, _ := netPair(t)
	for what, edit := range map[string]func(c prm.TIRC){
		"no domain":   func(c prm.TIRC) { c.SetTransportDomain(99) },
		"no RQ":       func(c prm.TIRC) { c.SetInlineRQN(99) },
		"an SQ":       func(c prm.TIRC) { c.SetInlineRQN(a.send.n) },
		"no RQT":      func(c prm.TIRC) { c.SetDispType(prm.TIRIndirect) },
		"LRO":         func(c prm.TIRC) { c.SetPacketMergeMask(1) },
		"TLS":         func(c prm.TIRC) { c.SetTLSEn(true) },
		"tunnels":     func(c prm.TIRC) { c.SetTunneledOffloadEn(true) },
		"other hash":  func(c prm.TIRC) { c.SetRxHashFn(3) },
		"other kinds": func(c prm.TIRC) { c.SetDispType(2) },
	} {
		in := prm.NewIn(prm.OpCreateTIR, 0)
		c := prm.CreateTIRIn(in).Context()
		c.SetTransportDomain(a.td)
		c.SetInlineRQN(a.recv.n)
		edit(c)
		a.refused(what, in, prm.StatusBadParam)
	}
	for what, size := range map[string]uint32{"empty": 0, "no power of two": 3, "longer than its mailbox": 8, "longer than its maximum": 16} {
		in := prm.NewIn(prm.OpCreateRQT, 16)
		m := prm.CreateRQTIn(in)
		m.Context().SetMaxSize(8)
		m.Context().SetActualSize(size)
		for i := range 4 {
			m.List().Set(i, a.recv.n)
		}
		a.refused(what, in, prm.StatusBadParam)
	}
	in := prm.NewIn(prm.OpCreateTIS, 0)
	a.refused("no domain", in, prm.StatusBadParam)
	in = prm.NewIn(prm.OpModifyTIR, 0)
	prm.ModifyTIRIn(in).SetTIRN(a.tir)
	prm.ModifyTIRIn(in).SetSelectHash(true)
	a.refused("a hash without a table", in, prm.StatusBadParam)
	// What is queried is what was made.
	in = prm.NewIn(prm.OpModifyTIS, 0)
	prm.ModifyTISIn(in).SetTISN(a.tis)
	prm.ModifyTISIn(in).SetSelectPrio(true)
	prm.ModifyTISIn(in).Context().SetPrio(5)
	a.cmd(in)
	if c := prm.QueryTISOut(a.cmd(of(prm.OpQueryTIS, a.tis))).Context(); c.Prio() != 5 || c.TransportDomain() != a.td {
		t.Errorf("% x", []byte(c))
	}
	if c := prm.QueryTIROut(a.cmd(of(prm.OpQueryTIR, a.tir))).Context(); c.InlineRQN() != a.recv.n {
		t.Errorf("% x", []byte(c))
	}
	in = prm.NewIn(prm.OpModifyVportState, 0)
	prm.ModifyVportStateIn(in).SetAdminState(prm.VportStateFollow)
	a.cmd(in)
	if o := prm.QueryVportStateOut(a.cmd(prm.NewIn(prm.OpQueryVportState, 0))); o.AdminState() != prm.VportStateFollow || o.State() != prm.VportStateUp {
		t.Errorf("% x", []byte(o))
	}
	prm.ModifyVportStateIn(in).SetAdminState(9)
	a.refused("no such state", in, prm.StatusBadParam)
}

// TestNoNetdev: a function without a network interface knows none of it, as before.
func TestNoNetdev(t *testing.T) {
	h := newHost(t, sim.New(sim.Options{}), testParams(), 1)
	for op := range nicCommands {
		h.refused("not here", prm.NewIn(op, 0), prm.StatusBadOp)
	}
	for _, page := range []uint16{prm.CapEth, prm.CapNICFlowTable} {
		in := prm.NewIn(prm.OpQueryHCACap, 0)
		prm.CmdIn(in).SetOpMod(page << 1)
		h.refused("not here", in, prm.StatusBadParam)
	}
	in := prm.NewIn(prm.OpQueryHCACap, 0)
	if c := prm.HCACap(prm.QueryHCACapOut(h.cmd(in)).Capability()); c.EthNetOffloads() || c.NICFlowTable() || c.LogMaxSQ() != 0 {
		t.Error("the general page offers a network interface")
	}
	p := testParams()
	p.LinkLayers, p.LinkLayer = EitherLinkLayer, InfiniBand
	if newHostOf(t, sim.New(sim.Options{}), p, Identity{Netdev: true}).d.nic != nil {
		t.Error("a network interface of Ethernet on InfiniBand")
	}
}

// TestPacketCQOverflow: queues whose CQ has failed stand still.
func TestPacketCQOverflow(t *testing.T) {
	a, b, _ := netPair(t)
	data := udp(a, b, 7, patterned(60))
	for range 80 {
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 5*usec)
	}
	if a.send.state() != prm.PacketQueueERR || a.d.Counters().CQOverruns != 1 {
		t.Errorf("state %d, %d overruns", a.send.state(), a.d.Counters().CQOverruns)
	}
}
