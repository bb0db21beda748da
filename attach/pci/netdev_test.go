//go:build linux && amd64

package pci

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/uapi"
)

// guestNet is the network interface of a function as mlx5e makes it: an SQ, an RQ of 8 buffers, and
// flow tables that bring what is sent to its address, or to all, to the RQ.
type guestNet struct {
	g          *guest
	key        uint32
	scq, rcq   *guestCQ
	sq, rq     uint32
	sring, sdb uint64
	rring, rdb uint64
	buf        uint64
	pi, rqPI   uint16
}

const netBuffers = 8

func (g *guest) newNet(k int) *guestNet {
	g.t.Helper()
	n := &guestNet{g: g, scq: g.newCQ(), rcq: g.newCQ(), sring: g.alloc(4096), rring: g.alloc(4096), sdb: g.alloc(8), rdb: g.alloc(8), buf: g.alloc((netBuffers + 1) * 2048)}
	td := prm.AllocTransportDomainOut(g.cmd(prm.NewIn(prm.OpAllocTransportDomain, 0))).TransportDomain()
	in := prm.NewIn(prm.OpCreateMKey, 0)
	c := prm.CreateMKeyIn(in).MKC()
	c.SetLW(true)
	c.SetLR(true)
	c.SetLength64(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetPD(g.pd)
	n.key = prm.MKeyOf(prm.CreateMKeyOut(g.cmd(in)).MKeyIndex(), 0)
	in = prm.NewIn(prm.OpCreateTIS, 0)
	prm.CreateTISIn(in).Context().SetTransportDomain(td)
	tis := prm.CreateTISOut(g.cmd(in)).TISN()
	in = prm.NewIn(prm.OpCreateSQ, 8)
	s := prm.CreateSQIn(in)
	s.Context().SetCQN(n.scq.n)
	s.Context().SetTISLstSz(1)
	s.Context().SetTISNum0(tis)
	n.setWQ(s.Context().WQ(), n.sdb, 6, 4)
	s.PAS().Set(0, n.sring)
	n.sq = prm.CreateSQOut(g.cmd(in)).SQN()
	in = prm.NewIn(prm.OpCreateRQ, 8)
	r := prm.CreateRQIn(in)
	r.Context().SetCQN(n.rcq.n)
	n.setWQ(r.Context().WQ(), n.rdb, 4, 3)
	r.PAS().Set(0, n.rring)
	n.rq = prm.CreateRQOut(g.cmd(in)).RQN()
	for _, op := range []prm.Opcode{prm.OpModifySQ, prm.OpModifyRQ} {
		in = prm.NewIn(op, 0)
		number, state := n.sq, prm.ModifySQIn(in).Context().SetState
		if op == prm.OpModifyRQ {
			number, state = n.rq, prm.ModifyRQIn(in).Context().SetState
		}
		prm.ModifySQIn(in).SetSQN(number) // the same place in both
		state(prm.PacketQueueRDY)
		g.cmd(in)
	}
	in = prm.NewIn(prm.OpCreateTIR, 0)
	prm.CreateTIRIn(in).Context().SetTransportDomain(td)
	prm.CreateTIRIn(in).Context().SetInlineRQN(n.rq)
	n.steer(network.Identity(k).MAC, prm.CreateTIROut(g.cmd(in)).TIRN())
	n.post(netBuffers)
	return n
}

func (n *guestNet) setWQ(w prm.WQ, db uint64, logStride, logSize uint32) {
	w.SetWQType(prm.WQTypeCyclic)
	w.SetPD(n.g.pd)
	w.SetUARPage(n.g.uar)
	w.SetDBRAddr(db)
	w.SetLogWQStride(logStride)
	w.SetLogWQSz(logSize)
}

// steer makes a table with entries for an address and for all.
func (n *guestNet) steer(mac [6]byte, tir uint32) {
	n.g.t.Helper()
	in := prm.NewIn(prm.OpCreateFlowTable, 0)
	prm.CreateFlowTableIn(in).Context().SetLogSize(1)
	table := prm.CreateFlowTableOut(n.g.cmd(in)).TableID()
	in = prm.NewIn(prm.OpCreateFlowGroup, 0)
	m := prm.CreateFlowGroupIn(in)
	m.SetTableID(table)
	m.SetEnd(1)
	m.SetCriteriaEnable(prm.FlowMatchOuter)
	prm.FlowHeaders(m.MatchCriteria()[:prm.FlowHeadersSize]).SetDMACHigh(^uint32(0))
	prm.FlowHeaders(m.MatchCriteria()[:prm.FlowHeadersSize]).SetDMACLow(0xffff)
	group := prm.CreateFlowGroupOut(n.g.cmd(in)).GroupID()
	for i, to := range [][6]byte{mac, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		in = prm.NewIn(prm.OpSetFlowEntry, prm.FlowDestinationSize)
		e := prm.SetFlowEntryIn(in)
		e.SetTableID(table)
		e.SetFlowIndex(uint32(i))
		c := e.Context()
		c.SetGroupID(group)
		c.SetAction(prm.FlowActionForward)
		c.SetDestinations(1)
		prm.FlowHeaders(c.MatchValue()[:prm.FlowHeadersSize]).SetMACs(append(to[:], make([]byte, 6)...))
		e.List().At(0).SetType(prm.FlowToTIR)
		e.List().At(0).SetID(tir)
		n.g.cmd(in)
	}
	in = prm.NewIn(prm.OpSetFlowTableRoot, 0)
	prm.SetFlowTableRootIn(in).SetTableID(table)
	n.g.cmd(in)
}

// post gives the RQ buffers again.
func (n *guestNet) post(k int) {
	for range k {
		i := uint64(n.rqPI % netBuffers)
		prm.DataSegment(n.g.at(n.rring+i*16, 16)).Set(2048|prm.StartPadding, n.key, n.buf+i*2048)
		n.rqPI++
	}
	prm.QPDBRec(n.g.at(n.rdb, 8)).SetRecv(n.rqPI)
}

// send sends a packet, of which headers bytes, at most 18, are in the WQE, and waits until it has
// left.
func (n *guestNet) send(p []byte, headers int) {
	n.g.t.Helper()
	out := n.buf + netBuffers*2048
	copy(n.g.at(out, 2048), p[headers:])
	w := n.g.at(n.sring+uint64(n.pi%16)*64, 64)
	clear(w)
	e := prm.EthSegment(w[16:32])
	e.SetCSFlags(prm.EthL3Checksum | prm.EthL4Checksum)
	e.SetInlineSize(uint16(headers))
	copy(w[30:], p[:headers])
	at := max(32, (30+headers+15)&^15)
	prm.DataSegment(w[at:at+16]).Set(uint32(len(p)-headers), n.key, out)
	prm.CtrlSegment(w).Set(prm.WQEOpSend, 0, n.pi, n.sq, at/16+1, prm.CtrlCQUpdate, 0)
	n.pi++
	n.g.check(n.g.c.Write(uapi.VFIORegionBAR0, uint64(n.g.uar)*4096+prm.UARBFOffset, w[:8]))
	if c := n.scq.wait(); c.Opcode() != prm.CQEReq || c.WQECounter() != n.pi-1 {
		n.g.t.Fatalf("send: %x", []byte(c))
	}
}

// receive waits for a packet.
func (n *guestNet) receive() []byte {
	n.g.t.Helper()
	c := n.rcq.wait()
	if c.Opcode() != prm.CQERespSend {
		n.g.t.Fatalf("receive: %x", []byte(c))
	}
	b := bytes.Clone(n.g.at(n.buf+uint64(c.WQECounter()%netBuffers)*2048, int(c.ByteCnt())))
	n.post(1)
	return b
}

// datagram is a UDP packet from function 0 to function 1.
func datagram(port uint16, payload []byte) []byte {
	from, to := network.Identity(0), network.Identity(1)
	b := make([]byte, roce.EthernetSize+roce.IPv4Size+roce.UDPSize)
	e := roce.Ethernet(b)
	e.SetDst(to.MAC)
	e.SetSrc(from.MAC)
	e.SetType(roce.EtherTypeIPv4)
	ip := roce.IPv4(b[roce.EthernetSize:])
	ip[0] = 0x45
	ip.SetTotalLen(uint16(len(b) - roce.EthernetSize + len(payload)))
	ip.SetTTL(64)
	ip.SetProtocol(roce.ProtoUDP)
	ip.SetSrc(from.IPv4)
	ip.SetDst(to.IPv4)
	u := roce.UDP(b[roce.EthernetSize+roce.IPv4Size:])
	u.SetDstPort(port)
	u.SetLen(uint16(roce.UDPSize + len(payload)))
	return append(b, payload...)
}

// setRoCE turns RoCE on, as mlx5_ib does when it comes, or off, as when it goes.
func (g *guest) setRoCE(on bool) {
	g.t.Helper()
	in := prm.NewIn(prm.OpModifyNICVportContext, 0)
	m := prm.ModifyNICVportContextIn(in)
	m.SetFieldSelect(1 << 1)
	m.Context().SetRoCEEn(on)
	g.cmd(in)
}

// TestPacketsBetweenTwoFunctions sends packets between the network interfaces of two virtual
// machines, beside RoCE on the same wire. A packet to the port of RoCE is for the interface while
// RoCE is off, and only then. The capture has them all.
func TestPacketsBetweenTwoFunctions(t *testing.T) {
	cfg := config(t, 2, "connectx-5")
	cfg.Pcap = filepath.Join(t.TempDir(), "p.pcapng")
	s := start(t, cfg)
	a, b := pairOf(t, s)
	na, nb := a.g.newNet(0), b.g.newNet(1)
	ra, rb := a.g.newMR(4096), b.g.newMR(4096)
	fill(a.g.at(ra.pa, 4096), 5)
	for i := range 20 { // around the rings
		payload := make([]byte, 40+i*60)
		fill(payload, i)
		p := datagram(7, payload)
		na.send(p, []int{0, 14, 18}[i%3])
		got := nb.receive()
		if h := ether.Parse(got); !bytes.Equal(got[h.Payload:], payload) || !h.NetworkOK(got) || !h.TransportOK(got) {
			t.Fatalf("packet %d arrives as % x", i, got)
		}
		a.post(prm.WQEOpRDMAWrite, ra, 0, 1000, rb.pa, rb.key)
		if e := a.cq.wait(); e.Opcode() != prm.CQEReq || !bytes.Equal(b.g.at(rb.pa, 1000), a.g.at(ra.pa, 1000)) {
			t.Fatalf("write: %x", []byte(e))
		}
	}
	roceOff := datagram(roce.UDPPort, bytes.Repeat([]byte("off"), 20))
	na.send(datagram(roce.UDPPort, bytes.Repeat([]byte("on!"), 20)), 0) // not whole: the RDMA engine drops it
	na.send(datagram(8, bytes.Repeat([]byte("next"), 20)), 0)
	if p := nb.receive(); ether.Parse(p).DstPort != 8 {
		t.Errorf("with RoCE on the interface gets % x", p)
	}
	b.g.setRoCE(false)
	na.send(roceOff, 0)
	if p := nb.receive(); ether.Parse(p).DstPort != roce.UDPPort {
		t.Errorf("with RoCE off the interface gets % x", p)
	}
	a.g.kill()
	b.g.kill()
	closed(t, s)
	file, err := os.ReadFile(cfg.Pcap)
	if err != nil || bytes.Count(file, []byte("offoffoff")) == 0 || bytes.Count(file, []byte("nextnext")) == 0 {
		t.Errorf("the capture lacks packets: %v", err)
	}
}
