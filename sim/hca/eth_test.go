package hca

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

const usec = sim.Microsecond

// TestPackets: packets of all lengths arrive as they were sent, in order, with whatever of them in
// the WQE.
func TestPackets(t *testing.T) {
	a, b, _ := netPair(t)
	for i := range 60 { // around all rings
		b.recv.post(1)
		sent := udp(a, b, 7, patterned(i*24))
		inline := []int{0, 14, 18, 42}[i%4]
		idx := a.send.post(packetWQE{headers: sent[:inline], data: sent[inline:]})
		if i%5 == 0 {
			idx = a.send.post(packetWQE{op: prm.WQEOpTagMatching}) // one doorbell for both
		}
		a.send.rung(idx)
		run(t, a.e, 20*usec)
		for range 1 + (5-i%5)/5 {
			e := a.send.cq.expect(prm.CQEReq)
			if e.QPN() != a.send.n || e.SRQNUIdx() != 0x123 || e.Timestamp() == 0 {
				t.Fatalf("packet %d: CQE % x", i, []byte(e))
			}
		}
		got, e := b.recv.next()
		want := append(slices.Clone(sent), make([]byte, max(0, ether.MinFrame-len(sent)))...)
		if !bytes.Equal(got, want) || e.WQECounter() != uint16(i) || e.SRQNUIdx() != 0x321 || e.FlowTag() != 0 {
			t.Fatalf("packet %d: CQE % x\n% x, want\n% x", i, []byte(e), got, want)
		}
	}
	a.send.cq.expectNone()
	if n := a.d.Frames().Live + b.d.Frames().Live; n != 0 {
		t.Errorf("%d frames are left over", n)
	}
	if c := a.d.nic.c; c.tx[unicast].packets != 60 || b.d.nic.c.rx[unicast] != c.tx[unicast] || c.txOversize != 0 {
		t.Errorf("%+v, %+v", c, b.d.nic.c)
	}
}

// TestChecksums: the device fills in checksums that are asked for, and says of what it receives
// whether they are right.
func TestChecksums(t *testing.T) {
	a, b, _ := netPair(t)
	for flags, want := range map[uint8]uint8{
		prm.EthL3Checksum | prm.EthL4Checksum: prm.CQEL2OK | prm.CQEL3OK | prm.CQEL4OK,
		prm.EthL3Checksum:                     prm.CQEL2OK | prm.CQEL3OK,
		prm.EthL4Checksum:                     prm.CQEL2OK | prm.CQEL4OK,
		0:                                     prm.CQEL2OK,
	} {
		sent := udp(a, b, 7, patterned(99))
		sent[len(sent)-99-1], sent[len(sent)-99-2] = 0x12, 0x34 // what the stack leaves where the checksum goes
		b.recv.post(1)
		a.send.transmit(packetWQE{flags: flags, data: sent})
		run(t, a.e, 20*usec)
		got, e := b.recv.next()
		if e == nil || e.HDSIPExt() != want || e.L4L3HdrType() != prm.CQEL3IPv4|prm.CQEL4UDP {
			t.Fatalf("flags %#x: CQE % x", flags, []byte(e))
		}
		h := ether.Parse(got)
		if h.NetworkOK(got) != (want&prm.CQEL3OK != 0) || h.TransportOK(got) != (want&prm.CQEL4OK != 0) || e.Checksum() != h.Sum(got) {
			t.Errorf("flags %#x: % x, sum %#x", flags, got, e.Checksum())
		}
	}
}

// TestLongSend: one WQE becomes packets with right checksums, as many as the payload needs.
func TestLongSend(t *testing.T) {
	a, b, ab := netPair(t)
	payload := patterned(6*1400 + 1)
	sent := udp(a, b, 7, nil)
	b.recv.post(tPackets)
	a.send.transmit(packetWQE{op: prm.WQEOpTSO, flags: prm.EthL3Checksum | prm.EthL4Checksum, mss: 1400, headers: sent, data: payload})
	run(t, a.e, 100*usec)
	a.send.cq.expect(prm.CQEReq)
	var got []byte
	for range 7 {
		p, e := b.recv.next()
		if e == nil || e.HDSIPExt() != prm.CQEL2OK|prm.CQEL3OK|prm.CQEL4OK {
			t.Fatalf("CQE % x", []byte(e))
		}
		h := ether.Parse(p)
		got = append(got, p[h.Payload:h.End]...)
	}
	if !bytes.Equal(got, payload) || ab.n != 7 {
		t.Errorf("%d bytes in %d packets", len(got), ab.n)
	}
	// What cannot be cut ends in an error.
	a.send.transmit(packetWQE{op: prm.WQEOpTSO, mss: 0, headers: sent, data: payload})
	run(t, a.e, 20*usec)
	a.send.cq.expectError(prm.CQEReqErr, prm.SyndromeLocalLength)
}

// TestVLAN: a tag is taken out, unless the queue keeps it.
func TestVLAN(t *testing.T) {
	a, b, _ := netPair(t)
	plain := udp(a, b, 7, patterned(60))
	tagged := slices.Concat(plain[:12], []byte{0x81, 0, 0x60, 5}, plain[12:])
	for _, keep := range []bool{false, true} {
		in := b.recv.modify(prm.PacketQueueRDY, prm.PacketQueueRDY)
		prm.ModifyRQIn(in).SetSelect(prm.ModifyRQVSD)
		prm.ModifyRQIn(in).Context().SetVSD(keep)
		b.cmd(in)
		b.recv.post(1)
		a.send.transmit(packetWQE{headers: tagged[:18], data: tagged[18:]})
		run(t, a.e, 20*usec)
		got, e := b.recv.next()
		if e == nil {
			t.Fatal("nothing")
		}
		want, types := plain, uint8(prm.CQEL3IPv4|prm.CQEL4UDP|prm.CQEVLAN)
		if keep {
			want, types = tagged, types&^prm.CQEVLAN
		}
		if !bytes.Equal(got, want) || e.L4L3HdrType() != types || !keep && e.VLANInfo() != 0x6005 {
			t.Errorf("keep %v: CQE % x, % x", keep, []byte(e), got)
		}
	}
}

// TestFCS: a queue that asks for it gets the frame check sequence behind a packet, also behind one
// whose tag was taken out.
func TestFCS(t *testing.T) {
	a, b, _ := netPair(t)
	plain := udp(a, b, 7, patterned(60))
	tagged := slices.Concat(plain[:12], []byte{0x81, 0, 0x60, 5}, plain[12:])
	for _, sent := range [][]byte{plain, tagged} {
		in := b.recv.modify(prm.PacketQueueRDY, prm.PacketQueueRDY)
		prm.ModifyRQIn(in).SetSelect(prm.ModifyRQScatterFCS)
		prm.ModifyRQIn(in).Context().SetScatterFCS(true)
		b.cmd(in)
		b.recv.post(1)
		a.send.transmit(packetWQE{headers: sent[:18], data: sent[18:]})
		run(t, a.e, 20*usec)
		got, e := b.recv.next()
		if e == nil {
			t.Fatal("nothing")
		}
		want := binary.LittleEndian.AppendUint32(slices.Clone(plain), crc32.ChecksumIEEE(sent))
		if !bytes.Equal(got, want) {
			t.Errorf("CQE % x, % x, want % x", []byte(e), got, want)
		}
	}
}

// TestPacketsOfPrograms: a port without a network interface looks for Ethernet packets, and
// foresees none, just while a queue takes them.
func TestPacketsOfPrograms(t *testing.T) {
	e := sim.New(sim.Options{MaxEvents: 1 << 24})
	h := newHostOf(t, e, testParams(), Identity{GUID: 0x1001, MAC: [6]byte{2, 0, 0, 0, 0, 1}, IPv4: [4]byte{10, 0, 0, 1}, Packets: true})
	x := &netHost{host: h, td: prm.AllocTransportDomainOut(h.cmd(prm.NewIn(prm.OpAllocTransportDomain, 0))).TransportDomain()}
	looks := func(want bool) {
		t.Helper()
		if got := h.d.receiveEngine.nic != nil; got != want {
			t.Errorf("it looks for packets: %v", got)
		}
	}
	looks(false)
	tir := x.newTIR(x.newRQ(nil).n)
	looks(true)
	in := prm.NewIn(prm.OpDestroyTIR, 0)
	prm.DestroyTIRIn(in).SetTIRN(tir)
	h.cmd(in)
	looks(false)
}

// TestNoBuffer: a packet for which no WQE is posted is lost, counted, and the next one is not.
func TestNoBuffer(t *testing.T) {
	a, b, _ := netPair(t)
	data := checked(udp(a, b, 7, patterned(60)))
	for range 3 {
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 20*usec)
	}
	b.recv.cq.expectNone()
	b.recv.post(1)
	a.send.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	if got, _ := b.recv.next(); !bytes.Equal(got, data) {
		t.Errorf("% x", got)
	}
	if n := b.d.QCounter(prm.QCOutOfBuffer); n != 3 || b.d.nic.c.rxNoBuffer != 3 {
		t.Errorf("out_of_buffer %d, %+v", n, b.d.nic.c)
	}
	// A WQE that is too short for the packet ends the queue.
	seg := make([]byte, 32)
	prm.DataSegment(seg).Set(64, b.key, uint64(b.recv.buf))
	prm.DataSegment(seg[16:]).Set(0, prm.InvalidLKey, 0)
	b.recv.post(1)
	b.m.Write(b.recv.ring+mem.PA((b.recv.pi-1)%tPackets)*32, seg)
	a.send.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	b.recv.cq.expectError(prm.CQERespErr, prm.SyndromeLocalLength)
	if b.recv.state() != prm.PacketQueueERR {
		t.Error("the queue goes on")
	}
}

// TestMTU: the port neither sends nor takes frames that are longer than it is set to.
func TestMTU(t *testing.T) {
	a, b, _ := netPair(t)
	set := func(h *netHost, mtu uint32) {
		in := prm.NewIn(prm.OpAccessReg, prm.PMTURegSize)
		m := prm.AccessRegIn(in)
		m.SetRegisterID(prm.RegPMTU)
		prm.CmdIn(in).SetOpMod(prm.AccessRegWrite)
		prm.PMTUReg(m.Data()).SetLocalPort(1)
		prm.PMTUReg(m.Data()).SetAdminMTU(mtu)
		out := make([]byte, len(in))
		if h.d.Command(in, out); prm.CmdOut(out).Status() != prm.StatusOK {
			t.Fatal(prm.CmdOut(out).Status())
		}
	}
	data := udp(a, b, 7, patterned(1000))
	b.recv.post(4)
	for i, mtu := range [][2]uint32{{1522, 1522}, {uint32(len(data)) + 4, uint32(len(data)) + 4}, {uint32(len(data)) + 3, 1522}, {1522, uint32(len(data)) + 3}} {
		set(a, mtu[0])
		set(b, mtu[1])
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 20*usec)
		a.send.cq.expect(prm.CQEReq)
		if got, _ := b.recv.next(); (got != nil) != (i < 2) {
			t.Errorf("%d: %v", i, got != nil)
		}
	}
	if a.d.nic.c.txOversize != 1 || b.d.nic.c.rxOversize != 1 {
		t.Errorf("%+v, %+v", a.d.nic.c, b.d.nic.c)
	}
}

// TestSendErrors: a WQE that is wrong completes with an error, what is behind it is flushed, and
// the queue can begin again.
func TestSendErrors(t *testing.T) {
	a, b, _ := netPair(t)
	data := udp(a, b, 7, patterned(60))
	bad := map[string]struct {
		post func()
		s    prm.Syndrome
	}{
		"key":       {func() { a.send.post(packetWQE{data: data, key: 0x1234500}) }, prm.SyndromeLocalProt},
		"opcode":    {func() { a.send.post(packetWQE{op: prm.WQEOpRDMAWrite, data: data}) }, prm.SyndromeLocalQPOp},
		"too short": {func() { a.send.post(packetWQE{data: data[:13]}) }, prm.SyndromeLocalLength},
		"segments":  {func() { a.send.put(make([]byte, 16), prm.WQEOpSend, prm.CtrlCQUpdate) }, prm.SyndromeLocalQPOp},
		"inline": {func() {
			w := make([]byte, 64)
			prm.EthSegment(w[16:]).SetInlineSize(1000)
			a.send.put(w, prm.WQEOpSend, 0)
		}, prm.SyndromeLocalQPOp},
	}
	for name, x := range bad {
		t.Run(name, func(t *testing.T) {
			x.post()
			a.send.post(packetWQE{data: data})
			a.send.rung(a.send.post(packetWQE{data: data, quiet: true}))
			run(t, a.e, 20*usec)
			a.send.cq.expectError(prm.CQEReqErr, x.s)
			a.send.cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
			if e := a.send.cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush); a.send.state() != prm.PacketQueueERR || e.QPN() != a.send.n {
				t.Errorf("state %d, CQE % x", a.send.state(), []byte(e))
			}
			a.send.transmit(packetWQE{data: data}) // nor does it send now
			run(t, a.e, 20*usec)
			a.send.cq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
			a.send.become(prm.PacketQueueERR, prm.PacketQueueRST)
			a.send.become(prm.PacketQueueRST, prm.PacketQueueRDY)
			b.recv.post(1)
			a.send.transmit(packetWQE{data: data})
			run(t, a.e, 20*usec)
			a.send.cq.expect(prm.CQEReq)
			if got, _ := b.recv.next(); !bytes.Equal(got, append(slices.Clone(data), make([]byte, max(0, 60-len(data)))...)) {
				t.Errorf("% x", got)
			}
		})
	}
	a.send.become(prm.PacketQueueRDY, prm.PacketQueueRST)
	a.send.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	a.send.cq.expectNone()
	if a.d.Counters().DoorbellsState != 1 {
		t.Error("a doorbell of a queue in RST is not counted")
	}
	// A queue without a TIS has NOPs only.
	q := a.newSQ(func(c prm.SQC) { c.SetTISLstSz(0) })
	q.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	q.post(packetWQE{op: prm.WQEOpTagMatching})
	q.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	q.cq.expect(prm.CQEReq)
	q.cq.expectError(prm.CQEReqErr, prm.SyndromeLocalQPOp)
}

// TestPushedPacket: a WQE that comes by BlueFlame is taken as it was pushed, not as the ring has
// it.
func TestPushedPacket(t *testing.T) {
	a, b, _ := netPair(t)
	data := checked(udp(a, b, 7, patterned(60)))
	b.recv.post(1)
	idx := a.send.post(packetWQE{headers: data[:18], data: data[18:], quiet: true})
	wqe := a.readAll(a.send.ring, 128) // two blocks
	prm.CtrlSegment(wqe).SetFMCESE(prm.CtrlCQUpdate)
	a.d.MMIOWrite(uint64(a.uar)*4096+prm.UARBFOffset, wqe)
	run(t, a.e, 20*usec)
	if e := a.send.cq.expect(prm.CQEReq); e.WQECounter() != idx || a.d.Counters().WQEsPushed != 1 {
		t.Errorf("CQE % x, %d pushed", []byte(e), a.d.Counters().WQEsPushed)
	}
	if got, _ := b.recv.next(); !bytes.Equal(got, data) {
		t.Errorf("% x", got)
	}
}

// TestReceiveStates: a queue takes packets in RDY only; in ERR, what is posted is flushed if it was
// made so.
func TestReceiveStates(t *testing.T) {
	a, b, _ := netPair(t)
	data := checked(udp(a, b, 7, patterned(60)))
	b.recv.post(4)
	b.recv.become(prm.PacketQueueRDY, prm.PacketQueueERR)
	a.send.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	b.recv.cq.expectNone()
	b.recv.become(prm.PacketQueueERR, prm.PacketQueueRST)
	b.recv.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	b.recv.post(1)
	a.send.transmit(packetWQE{data: data})
	run(t, a.e, 20*usec)
	if got, e := b.recv.next(); !bytes.Equal(got, data) || e.WQECounter() != 0 {
		t.Errorf("CQE % x, % x", []byte(e), got)
	}
	q := b.newRQ(func(c prm.RQC) { c.SetFlushInErrorEn(true) })
	q.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	q.post(3)
	q.become(prm.PacketQueueRDY, prm.PacketQueueERR)
	run(t, a.e, 20*usec)
	for range 3 {
		q.cq.expectError(prm.CQERespErr, prm.SyndromeWRFlush)
	}
	q.cq.expectNone()
}

// TestRoCEBesidePackets: packets of RoCE go to QPs while RoCE is on, and to the network interface
// while it is off, and only then; other packets always go there. All share one wire in order.
func TestRoCEBesidePackets(t *testing.T) {
	a, b, _ := netPair(t)
	qa, qb := a.newQP(a.newCQ(7, 64), a.newCQ(7, 64)), b.newQP(b.newCQ(7, 64), b.newCQ(7, 64))
	o := defaults()
	o.timeout, o.retry = 8, 0
	qa.connect(qb, o)
	qb.connect(qa, o)
	src, dst := a.newMR(4096, rightsAll), b.newMR(4096, rightsAll)
	src.fill(pattern)
	write := wr{op: prm.WQEOpRDMAWrite, sges: []sge{src.sge(0, 256)}, raddr: dst.va, rkey: dst.rkey}
	b.setRoCE(true)
	a.setRoCE(true)
	b.recv.post(4)
	qa.post(write)
	a.send.transmit(packetWQE{data: checked(udp(a, b, 7, patterned(60)))})
	notRoCE := checked(udp(a, b, roce.UDPPort+1, patterned(60)))
	a.send.transmit(packetWQE{data: notRoCE})
	run(t, a.e, 50*usec)
	qa.scq.expect(prm.CQEReq)
	if !bytes.Equal(dst.bytes(0, 256), src.bytes(0, 256)) {
		t.Error("the WRITE does not arrive")
	}
	b.recv.next()
	if got, _ := b.recv.next(); !bytes.Equal(got, notRoCE) {
		t.Errorf("% x", got)
	}
	// A packet to port 4791 that is no packet of RoCE is the RDMA engine's to drop.
	broken := checked(udp(a, b, roce.UDPPort, patterned(61)))
	a.send.transmit(packetWQE{data: broken})
	run(t, a.e, 50*usec)
	b.recv.cq.expectNone()
	if b.d.Counters().RxDropped[roce.DropUDPLength] != 1 {
		t.Errorf("%v", b.d.Counters().RxDropped)
	}
	b.setRoCE(false)
	a.send.transmit(packetWQE{data: broken})
	run(t, a.e, 50*usec)
	if got, _ := b.recv.next(); !bytes.Equal(got, broken) {
		t.Errorf("with RoCE off: % x", got)
	}
	rx := b.d.nic.c.rx[unicast].packets
	qa.post(write)
	run(t, a.e, 50*usec)
	if p, _ := b.recv.next(); p == nil || ether.Parse(p).DstPort != roce.UDPPort || b.d.nic.c.rx[unicast].packets != rx+1 {
		t.Errorf("with RoCE off: % x, %d packets", p, b.d.nic.c.rx[unicast].packets-rx)
	} else if whole, err := roce.Parse(p); err != nil || !whole.ICRCOK() {
		t.Errorf("with RoCE off the ICRC of % x is wrong (%v)", p, err)
	}
	run(t, a.e, 5*sim.Millisecond)
	qa.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
}

// TestVportCounters: RoCE and the network interface are counted apart.
func TestVportCounters(t *testing.T) {
	a, b, _ := netPair(t)
	b.recv.post(1)
	data := checked(udp(a, b, 7, patterned(60)))
	for _, dst := range [][]byte{b.id.MAC[:], {1, 0, 0x5e, 0, 0, 1}, slices.Repeat([]byte{0xff}, 6)} {
		copy(data, dst)
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 20*usec)
	}
	of := func(h *netHost, c prm.VportCounter) string {
		o := prm.QueryVportCounterOut(h.cmd(prm.NewIn(prm.OpQueryVportCounter, 0)))
		return fmt.Sprint(o.Packets(c), o.Octets(c))
	}
	one := fmt.Sprint(1, len(data))
	for _, c := range [][2]prm.VportCounter{{prm.VCTxEthUnicast, prm.VCRxEthUnicast}, {prm.VCTxEthMulticast, prm.VCRxEthMulticast}, {prm.VCTxEthBroadcast, prm.VCRxEthBroadcast}} {
		if of(a, c[0]) != one || of(b, c[1]) != one {
			t.Errorf("%#x: %s, %s", c, of(a, c[0]), of(b, c[1]))
		}
	}
	if of(a, prm.VCTxIBUnicast) != "0 0" || of(b, prm.VCRxIBUnicast) != "0 0" {
		t.Error(of(a, prm.VCTxIBUnicast), of(b, prm.VCRxIBUnicast))
	}
}

// TestGroupAndOwnFramesReachLocalReceivers: groups that a function sends to, and its own address,
// lead back to those who listen in another transport domain, and in the same one if they ask for
// it.
func TestGroupAndOwnFramesReachLocalReceivers(t *testing.T) {
	a, b, _ := netPair(t)
	group := [6]byte{1, 0x50, 0x56, 0x19, 0x20, 0xa7}
	near, td := a.tir, a.td
	a.td = prm.AllocTransportDomainOut(a.cmd(prm.NewIn(prm.OpAllocTransportDomain, 0))).TransportDomain()
	far := a.newRQ(nil)
	far.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	other := a.newTIR(far.n)
	remove := prm.NewIn(prm.OpDeleteFlowEntry, 0)
	prm.DeleteFlowEntryIn(remove).SetTableID(a.table)
	a.cmd(remove)
	a.setEntry(a.table, a.group, 0, a.toMAC(a.id.MAC), toTIR(near, other))
	a.setEntry(a.table, a.group, 1, a.toMAC(group), toTIR(near, other))
	b.setEntry(b.table, b.group, 1, b.toMAC(group), toTIR(b.tir))
	lb := func(bits uint32) func() {
		return func() {
			in := prm.NewIn(prm.OpModifyTIR, 0)
			prm.ModifyTIRIn(in).SetTIRN(near)
			prm.ModifyTIRIn(in).SetSelectSelfLB(true)
			prm.ModifyTIRIn(in).Context().SetSelfLBBlock(bits)
			a.cmd(in)
		}
	}
	vport := func(off bool) func() {
		return func() {
			in := prm.NewIn(prm.OpModifyNICVportContext, 0)
			m := prm.ModifyNICVportContextIn(in)
			m.SetFieldSelect(vportLBMC | vportLBUC)
			m.Context().SetDisableMCLocalLB(off)
			m.Context().SetDisableUCLocalLB(off)
			a.cmd(in)
		}
	}
	for i, tc := range []struct {
		set             func()
		dst             [6]byte
		near, far, wire int
	}{
		{vport(false), group, 0, 1, 1}, {vport(false), a.id.MAC, 0, 1, 0}, {vport(false), b.id.MAC, 0, 0, 1},
		{lb(prm.TIRSelfLBMulticast), group, 1, 1, 1}, {lb(prm.TIRSelfLBMulticast), a.id.MAC, 0, 1, 0},
		{lb(prm.TIRSelfLBUnicast), group, 0, 1, 1}, {lb(prm.TIRSelfLBUnicast), a.id.MAC, 1, 1, 0},
		{vport(true), group, 0, 0, 1}, {vport(true), a.id.MAC, 0, 0, 0},
	} {
		tc.set()
		data := checked(udp(a, b, 7, patterned(100+i)))
		copy(data, tc.dst[:])
		for _, q := range []*tRQ{a.recv, far, b.recv} {
			q.post(1)
		}
		a.send.transmit(packetWQE{data: data})
		run(t, a.e, 20*usec)
		a.send.cq.expect(prm.CQEReq)
		for k, want := range []int{tc.near, tc.far, tc.wire} {
			q := []*tRQ{a.recv, far, b.recv}[k]
			if got, e := q.next(); (e != nil) != (want == 1) || e != nil && !bytes.Equal(got, data) {
				t.Errorf("case %d, queue %d: % x, want %d packets", i, k, got, want)
			}
			if want == 0 {
				q.pi-- // its buffer is posted still
			}
		}
	}
	if n := a.d.Frames().Live + b.d.Frames().Live; n != 0 || td == a.td {
		t.Errorf("%d frames are left over", n)
	}
}
