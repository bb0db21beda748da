package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// The kit below is what a driver of Ethernet adds: packet queues, TIRs and flow tables.

// netHost is a host whose device carries a network interface.
type netHost struct {
	*host
	td, tis uint32
	key     uint32 // all of memory by physical addresses
	send    *tSQ
	recv    *tRQ
	tir     uint32
	table   uint32
	group   uint32 // matches destinations
}

func newNetHost(t testing.TB, e *sim.Engine, n byte) *netHost {
	return newNetHostOf(t, e, n, testParams())
}

func newNetHostOf(t testing.TB, e *sim.Engine, n byte, p Params) *netHost {
	h := &netHost{host: newHostOf(t, e, p, Identity{GUID: 0x1000 + uint64(n), MAC: [6]byte{2, 0, 0, 0, 0, n}, IPv4: [4]byte{10, 0, 0, n}, Netdev: true})}
	h.td = prm.AllocTransportDomainOut(h.cmd(prm.NewIn(prm.OpAllocTransportDomain, 0))).TransportDomain()
	in := prm.NewIn(prm.OpCreateTIS, 0)
	prm.CreateTISIn(in).Context().SetTransportDomain(h.td)
	h.tis = prm.CreateTISOut(h.cmd(in)).TISN()
	in = prm.NewIn(prm.OpCreateMKey, 0)
	c := prm.CreateMKeyIn(in).MKC()
	c.SetLW(true)
	c.SetLR(true)
	c.SetLength64(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetPD(h.pd)
	h.key = prm.MKeyOf(prm.CreateMKeyOut(h.cmd(in)).MKeyIndex(), 0)
	return h
}

// netPair is two hosts on a wire, each with an SQ, and an RQ for what is sent to its address.
func netPair(t testing.TB) (a, b *netHost, ab *badWire) { return netPairOf(t, testParams()) }

func netPairOf(t testing.TB, p Params) (a, b *netHost, ab *badWire) {
	e := sim.New(sim.Options{MaxEvents: 1 << 24})
	a, b = newNetHostOf(t, e, 1, p), newNetHostOf(t, e, 2, p)
	ab = newWire(e, b.d, 1, "ab")
	a.d.SetWire(ab)
	b.d.SetWire(newWire(e, a.d, 1, "ba"))
	for _, h := range []*netHost{a, b} {
		h.open()
	}
	return a, b, ab
}

// open makes the queues of a network interface.
func (h *netHost) open() {
	h.send, h.recv = h.newSQ(nil), h.newRQ(nil)
	h.send.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	h.recv.become(prm.PacketQueueRST, prm.PacketQueueRDY)
	h.tir = h.newTIR(h.recv.n)
	h.table = h.newTable(0, 0)
	h.group = h.newGroup(h.table, 0, 7, func(k prm.FlowHeaders) { k.SetDMACHigh(^uint32(0)); k.SetDMACLow(0xffff) })
	h.setEntry(h.table, h.group, 0, h.toMAC(h.id.MAC), toTIR(h.tir))
	in := prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(in).SetTableID(h.table)
	h.cmd(in)
}

func (h *netHost) toMAC(m [6]byte) func(k prm.FlowHeaders) {
	return func(k prm.FlowHeaders) {
		k.SetMACs(append(m[:], make([]byte, 6)...))
		k.SetSMACHigh(0)
		k.SetSMACLow(0)
	}
}

const tPackets = 8 // WQEs of an RQ, and four times as many blocks of an SQ

// tSQ is a send queue of the driver, tRQ a receive queue with buffers of 2048 bytes.
type tSQ struct {
	h        *netHost
	n        uint32
	cq       *tCQ
	ring, db mem.PA
	pi       uint16
	buf      mem.PA
}

type tRQ struct {
	h        *netHost
	n        uint32
	cq       *tCQ
	ring, db mem.PA
	buf      mem.PA // each has 64 bytes, and 2048 behind it the rest
	pi       uint16
}

func (h *netHost) createSQ(q *tSQ, edit func(c prm.SQC)) []byte {
	in := prm.NewIn(prm.OpCreateSQ, 8)
	m := prm.CreateSQIn(in)
	c := m.Context()
	c.SetCQN(q.cq.n)
	c.SetUserIndex(0x123)
	c.SetFlushInErrorEn(true)
	c.SetTISLstSz(1)
	c.SetTISNum0(h.tis)
	w := c.WQ()
	w.SetWQType(prm.WQTypeCyclic)
	w.SetPD(h.pd)
	w.SetUARPage(h.uar)
	w.SetLogWQStride(6)
	w.SetLogWQSz(5)
	w.SetDBRAddr(uint64(q.db))
	m.PAS().Set(0, uint64(q.ring))
	if edit != nil {
		edit(c)
	}
	return in
}

func (h *netHost) newSQ(edit func(c prm.SQC)) *tSQ {
	q := &tSQ{h: h, cq: h.newCQ(6, 64), ring: h.alloc(4096), db: h.alloc(8), buf: h.alloc(1 << 17)}
	q.n = prm.CreateSQOut(h.cmd(h.createSQ(q, edit))).SQN()
	return q
}

func (h *netHost) createRQ(q *tRQ, edit func(c prm.RQC)) []byte {
	in := prm.NewIn(prm.OpCreateRQ, 8)
	m := prm.CreateRQIn(in)
	c := m.Context()
	c.SetCQN(q.cq.n)
	c.SetUserIndex(0x321)
	c.SetCounterSetID(h.qset)
	w := c.WQ()
	w.SetWQType(prm.WQTypeCyclic)
	w.SetPD(h.pd)
	w.SetLogWQStride(5)
	w.SetLogWQSz(3)
	w.SetDBRAddr(uint64(q.db))
	m.PAS().Set(0, uint64(q.ring))
	if edit != nil {
		edit(c)
	}
	return in
}

func (h *netHost) newRQ(edit func(c prm.RQC)) *tRQ {
	q := &tRQ{h: h, cq: h.newCQ(6, 64), ring: h.alloc(4096), db: h.alloc(8), buf: h.alloc(tPackets * 4096)}
	q.n = prm.CreateRQOut(h.cmd(h.createRQ(q, edit))).RQN()
	return q
}

func (q *tSQ) modify(from, to uint32) []byte {
	in := prm.NewIn(prm.OpModifySQ, 0)
	m := prm.ModifySQIn(in)
	m.SetSQN(q.n)
	m.SetSQState(from)
	m.Context().SetState(to)
	return in
}

func (q *tSQ) become(from, to uint32) {
	q.h.t.Helper()
	q.h.cmd(q.modify(from, to))
	if to == prm.PacketQueueRST {
		q.pi = 0
	}
}

func (q *tSQ) state() uint32 {
	in := prm.NewIn(prm.OpQuerySQ, 0)
	prm.QuerySQIn(in).SetSQN(q.n)
	return prm.QuerySQOut(q.h.cmd(in)).Context().State()
}

func (q *tRQ) modify(from, to uint32) []byte {
	in := prm.NewIn(prm.OpModifyRQ, 0)
	m := prm.ModifyRQIn(in)
	m.SetRQN(q.n)
	m.SetRQState(from)
	m.Context().SetState(to)
	return in
}

func (q *tRQ) become(from, to uint32) {
	q.h.t.Helper()
	q.h.cmd(q.modify(from, to))
	if to == prm.PacketQueueRST {
		q.pi = 0
	}
}

func (q *tRQ) state() uint32 {
	in := prm.NewIn(prm.OpQueryRQ, 0)
	prm.QueryRQIn(in).SetRQN(q.n)
	return prm.QueryRQOut(q.h.cmd(in)).Context().State()
}

// post posts n buffers, each as two data segments, 64 bytes and the rest, whose lengths Linux marks
// (MLX5_HW_START_PADDING).
func (q *tRQ) post(n int) {
	for range n {
		b := make([]byte, 32)
		at := uint64(q.buf) + uint64(q.pi%tPackets)*4096
		prm.DataSegment(b).Set(64|prm.StartPadding, q.h.key, at)
		prm.DataSegment(b[16:]).Set((2048-64)|prm.StartPadding, q.h.key, at+2048)
		q.h.m.Write(q.ring+mem.PA(q.pi%tPackets)*32, b)
		q.pi++
	}
	var db [8]byte
	prm.QPDBRec(db[:]).SetRecv(q.pi)
	q.h.m.Write(q.db, db[:])
}

// next is the next packet that was received, and its completion; nil: none.
func (q *tRQ) next() ([]byte, prm.CQE64) {
	e := q.cq.poll()
	if e == nil || e.Opcode() != prm.CQERespSend {
		return nil, e
	}
	b := make([]byte, e.ByteCnt())
	at := q.buf + mem.PA(e.WQECounter()%tPackets)*4096
	n := min(64, len(b))
	q.h.m.Read(at, b[:n])
	q.h.m.Read(at+2048, b[n:])
	return b, e
}

// packetWQE is a send: headers in the WQE, the rest in memory, in two pieces where it is long.
type packetWQE struct {
	op      prm.WQEOpcode
	flags   uint8
	mss     uint16
	headers []byte
	data    []byte
	key     uint32 // 0: the host's
	quiet   bool
}

// post lays a WQE into the ring and returns its index; ring rings.
func (q *tSQ) post(w packetWQE) uint16 {
	b := make([]byte, 1024)
	at := prm.CtrlSegmentSize
	eth := prm.EthSegment(b[at : at+prm.EthSegmentSize])
	eth.SetCSFlags(w.flags)
	eth.SetMSS(w.mss)
	eth.SetInlineSize(uint16(len(w.headers)))
	copy(b[at+14:], w.headers)
	at += max(16, (14+len(w.headers)+15)&^15)
	key := w.key
	if key == 0 {
		key = q.h.key
	}
	q.h.m.Write(q.buf, w.data)
	first := min(len(w.data), 100)
	for _, part := range [][2]int{{0, first}, {first, len(w.data)}} {
		if part[0] < part[1] {
			prm.DataSegment(b[at:]).Set(uint32(part[1]-part[0]), key, uint64(q.buf)+uint64(part[0]))
			at += 16
		}
	}
	update := uint8(prm.CtrlCQUpdate)
	if w.quiet {
		update = 0
	}
	op := w.op
	if op == 0 {
		op = prm.WQEOpSend
	}
	if op == prm.WQEOpTagMatching { // stands for a NOP here
		op, at = prm.WQEOpNOP, 16
	}
	return q.put(b[:at], op, update)
}

// put lays the bytes of a WQE into the ring, with a control segment.
func (q *tSQ) put(b []byte, op prm.WQEOpcode, update uint8) uint16 {
	idx := q.pi
	prm.CtrlSegment(b).Set(op, 0, idx, q.n, len(b)/16, update, 0)
	for len(b) > 0 {
		n := min(64, len(b))
		q.h.m.Write(q.ring+mem.PA(q.pi%(4*tPackets))*64, b[:n])
		q.pi++
		b = b[n:]
	}
	return idx
}

// ring rings for the WQE at an index, whose control segment is in the ring.
func (q *tSQ) rung(idx uint16) {
	b := make([]byte, 8)
	q.h.m.Read(q.ring+mem.PA(idx%(4*tPackets))*64, b)
	q.h.d.MMIOWrite(uint64(q.h.uar)*4096+prm.UARBFOffset, b)
}

// transmit posts a packet and rings.
func (q *tSQ) transmit(w packetWQE) { q.rung(q.post(w)) }

func (h *netHost) newTIR(rqn uint32) uint32 {
	in := prm.NewIn(prm.OpCreateTIR, 0)
	c := prm.CreateTIRIn(in).Context()
	c.SetTransportDomain(h.td)
	c.SetInlineRQN(rqn)
	return prm.CreateTIROut(h.cmd(in)).TIRN()
}

func (h *netHost) newTable(level, miss uint32) uint32 {
	in := prm.NewIn(prm.OpCreateFlowTable, 0)
	c := prm.CreateFlowTableIn(in).Context()
	c.SetLevel(level)
	c.SetLogSize(4)
	if miss != 0 {
		c.SetMissAction(prm.FlowMissForward)
		c.SetMissID(miss)
	}
	return prm.CreateFlowTableOut(h.cmd(in)).TableID()
}

func groupIn(table, start, end uint32, mask func(k prm.FlowHeaders)) []byte {
	in := prm.NewIn(prm.OpCreateFlowGroup, 0)
	m := prm.CreateFlowGroupIn(in)
	m.SetTableID(table)
	m.SetStart(start)
	m.SetEnd(end)
	if mask != nil {
		m.SetCriteriaEnable(prm.FlowMatchOuter)
		mask(prm.FlowHeaders(m.MatchCriteria()[:prm.FlowHeadersSize]))
	}
	return in
}

func (h *netHost) newGroup(table, start, end uint32, mask func(k prm.FlowHeaders)) uint32 {
	h.t.Helper()
	return prm.CreateFlowGroupOut(h.cmd(groupIn(table, start, end, mask))).GroupID()
}

// goal is where an entry leads.
type goal func(c prm.FlowContext, l prm.FlowDestinations)

func toTIR(n ...uint32) goal { return leadTo(prm.FlowToTIR, n...) }

func toTable(n ...uint32) goal { return leadTo(prm.FlowToTable, n...) }

func leadTo(kind uint32, n ...uint32) goal {
	return func(c prm.FlowContext, l prm.FlowDestinations) {
		c.SetAction(c.Action() | prm.FlowActionForward)
		for _, id := range n {
			d := l.At(int(c.Destinations()))
			d.SetType(kind)
			d.SetID(id)
			c.SetDestinations(c.Destinations() + 1)
		}
	}
}

// count adds a counter behind the destinations.
func count(id uint32) goal {
	return func(c prm.FlowContext, l prm.FlowDestinations) {
		c.SetAction(c.Action() | prm.FlowActionCount)
		l.SetCounter(int(c.Destinations()), id)
		c.SetCounters(1)
	}
}

func drop(c prm.FlowContext, _ prm.FlowDestinations) { c.SetAction(c.Action() | prm.FlowActionDrop) }

func entryIn(table, group, index uint32, value func(k prm.FlowHeaders), goals ...goal) []byte {
	in := prm.NewIn(prm.OpSetFlowEntry, 8*8)
	m := prm.SetFlowEntryIn(in)
	m.SetTableID(table)
	m.SetFlowIndex(index)
	c := m.Context()
	c.SetGroupID(group)
	if value != nil {
		value(prm.FlowHeaders(c.MatchValue()[:prm.FlowHeadersSize]))
	}
	for _, g := range goals {
		g(c, m.List())
	}
	return in
}

func (h *netHost) setEntry(table, group, index uint32, value func(k prm.FlowHeaders), goals ...goal) {
	h.t.Helper()
	h.cmd(entryIn(table, group, index, value, goals...))
}

// setRoCE turns RoCE of the function on or off.
func (h *netHost) setRoCE(on bool) {
	in := prm.NewIn(prm.OpModifyNICVportContext, 0)
	m := prm.ModifyNICVportContextIn(in)
	m.SetFieldSelect(vportRoCEEn)
	m.Context().SetRoCEEn(on)
	h.cmd(in)
}

// udp is a packet from one host to another without checksums.
func udp(from, to *netHost, port uint16, payload []byte) []byte {
	b := make([]byte, roce.EthernetSize+roce.IPv4Size+roce.UDPSize, 2000)
	e := roce.Ethernet(b)
	e.SetDst(to.id.MAC)
	e.SetSrc(from.id.MAC)
	e.SetType(roce.EtherTypeIPv4)
	ip := roce.IPv4(b[roce.EthernetSize:])
	ip[0] = 0x45
	ip.SetTotalLen(uint16(len(b) - roce.EthernetSize + len(payload)))
	ip.SetTTL(64)
	ip.SetProtocol(roce.ProtoUDP)
	ip.SetSrc(from.id.IPv4)
	ip.SetDst(to.id.IPv4)
	u := roce.UDP(b[roce.EthernetSize+roce.IPv4Size:])
	u.SetSrcPort(1000)
	u.SetDstPort(port)
	u.SetLen(uint16(roce.UDPSize + len(payload)))
	return append(b, payload...)
}

// checked is a packet with its checksums.
func checked(b []byte) []byte {
	h := ether.Parse(b)
	h.FillNetwork(b)
	h.FillTransport(b)
	return b
}

func patterned(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = pattern(i)
	}
	return b
}
