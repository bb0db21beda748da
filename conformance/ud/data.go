package ud

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

const header = verbs.GRHSize

// udPair is two datagram QPs of one device and an address handle from one to the other.
type udPair struct {
	*kit.Env
	a, b *kit.QP
	ah   verbs.AH
}

func newUDPair(c *spec.C) *udPair {
	e := kit.Open(c)
	return &udPair{e, e.NewUD(c), e.NewUD(c), e.CreateAH(c, e.AHTo(e.LocalAddr))}
}

// datagram is a datagram from a to b.
func (d *udPair) datagram(id uint64, sges ...verbs.SGE) verbs.SendWR {
	return kit.Datagram(id, d.ah, d.b.QPN(), sges...)
}

func routingHeader(c *spec.C) {
	d := newUDPair(c)
	src, dst := d.Buffer(c, 4096, kit.AllAccess), d.Buffer(c, 8192, kit.AllAccess)
	all := src.FillRandom(c)
	for i, n := range []int{1, 50, 255, 1024, 4000} {
		dst.FillByte(c, 0)
		d.b.RecvInto(c, uint64(i), dst.SGE(0, header+n))
		c.Status("send", d.a.PostAndPoll(c, d.datagram(uint64(i), src.SGE(0, n))), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0]
		c.Equal("byte_len", wc.ByteLen, uint32(header+n))
		c.Equal("opcode", wc.Opcode, verbs.WCOpRecv)
		c.Equal("flag", wc.Flags&verbs.WCGRH, verbs.WCGRH)
		c.Equal(fmt.Sprintf("%d bytes", n), dst.Get(c, header, n), all[:n])
		c.Equal("behind them", dst.Get(c, header+n, 64), bytes.Repeat([]byte{0}, 64))
	}
	// The header and the payload go through the scatter list like one message.
	d.b.RecvInto(c, 9, dst.SGE(0, 30), dst.SGE(1000, 30), dst.SGE(2000, 100))
	c.Status("send", d.a.PostAndPoll(c, d.datagram(9, src.SGE(0, 100))), verbs.WCSuccess)
	kit.ExpectSuccess(c, d.b.RecvCQ, 1)
	c.Equal("scattered", append(dst.Get(c, 1010, 20), dst.Get(c, 2000, 80)...), all[:100])
}

func ipv4Header(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	d.b.RecvInto(c, 1, mem.All())
	a := d.AHTo(d.LocalAddr)
	a.GRH.TrafficClass, a.GRH.HopLimit = 0x68, 17
	wr := d.datagram(1, mem.SGE(0, 21))
	wr.AH = d.CreateAH(c, a)
	c.Status("send", d.a.PostAndPoll(c, wr), verbs.WCSuccess)
	kit.ExpectSuccess(c, d.b.RecvCQ, 1)
	h := roce.IPv4(mem.Get(c, header-roce.IPv4Size, roce.IPv4Size))
	c.Equal("version", h.Version(), uint8(4))
	c.Equal("header length", h.HeaderLen(), roce.IPv4Size)
	c.True("checksum", h.ChecksumOK(), "%#04x, want %#04x", h.Checksum(), h.ComputeChecksum())
	c.Equal("protocol", h.Protocol(), uint8(roce.ProtoUDP))
	c.Equal("type of service", h.TOS(), uint8(0x68))
	c.True("time to live", h.TTL() == 17, "%d, want 17", h.TTL())
	// UDP, BTH, DETH, 21 bytes and 3 of padding, ICRC.
	c.Equal("length", h.TotalLen(), uint16(roce.IPv4Size+roce.UDPSize+roce.BTHSize+roce.DETHSize+24+roce.ICRCSize))
	own := roce.GID(d.GID.GID).IPv4()
	c.True("addresses", h.Src() == own && h.Dst() == own, "from %v to %v, want %v twice", h.Src(), h.Dst(), own)
}

func reply(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 1024, kit.AllAccess)
	want := mem.FillRandom(c)
	d.b.RecvInto(c, 1, mem.SGE(256, 256))
	c.Status("send", d.a.PostAndPoll(c, d.datagram(1, mem.SGE(0, 32))), verbs.WCSuccess)
	wc := kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0]
	c.True("src_qp", wc.SrcQP == d.a.QPN(), "%#x, want %#x", wc.SrcQP, d.a.QPN())
	a, err := d.Ctx.InitAHFromWC(c.T, int(d.Port), &wc, mem.Get(c, 256, header))
	c.NoErr("init_ah_from_wc", err)
	c.True("route", a.IsGlobal && a.GRH.DGID == d.GID.GID, "global %t, to %v", a.IsGlobal, a.GRH.DGID)
	c.Equal("port", a.Port, d.Port)
	d.a.RecvInto(c, 2, mem.SGE(512, 256))
	c.Status("reply", d.b.PostAndPoll(c, kit.Datagram(2, d.CreateAH(c, a), wc.SrcQP, mem.SGE(64, 32))), verbs.WCSuccess)
	back := kit.ExpectSuccess(c, d.a.RecvCQ, 1)[0]
	c.True("src_qp of the reply", back.SrcQP == d.b.QPN(), "%#x, want %#x", back.SrcQP, d.b.QPN())
	c.Equal("bytes of the reply", mem.Get(c, 512+header, 32), want[64:96])
}

func wrongQKey(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	want := mem.FillRandom(c)
	d.b.RecvInto(c, 1, mem.SGE(64, 128))
	for _, key := range []uint32{0, kit.QKey ^ 1, kit.QKey ^ 1<<30} {
		wr := d.datagram(2, mem.SGE(0, 8))
		wr.RemoteQKey = key
		c.Status(fmt.Sprintf("Q_Key %#x", key), d.a.PostAndPoll(c, wr), verbs.WCSuccess)
	}
	kit.ExpectNoCompletion(c, d.b.RecvCQ, kit.QuietPeriod)
	mem.ExpectContents(c, "memory", want)
	c.Status("right Q_Key", d.a.PostAndPoll(c, d.datagram(3, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("receive that waited", kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0].ID, uint64(1))
}

// toRemoteHost is a datagram QP of a process on the remote host, with an address handle to it.
func toRemoteHost(c *spec.C, e *kit.Env) (*kit.OtherQP, verbs.AHAttr) {
	o := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	q := o.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
	q.Connect(c, kit.Peer{Addr: e.LocalAddr}, kit.DefaultFor(verbs.QPTUD), verbs.QPSRTS)
	return q, e.AHTo(o.Addr)
}

func aboveMTU(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port", err)
	most := attr.ActiveMTU.Bytes()
	c.Observe("active MTU", most)
	peer, way := toRemoteHost(c, e)
	mem := e.Buffer(c, 16384, kit.AllAccess)
	ah := e.CreateAH(c, way)
	for _, n := range []int{most + 1, 2 * most} {
		q := e.NewUD(c)
		packets := kit.Tap(c, func() {
			_, err := q.PostSend(c.T, []verbs.SendWR{kit.Datagram(1, ah, peer.QPN, mem.SGE(0, n))})
			step := fmt.Sprintf("%d bytes above", n-most)
			if c.ErrnoIn(step, err, 0, syscall.EINVAL) == 0 {
				c.StatusIn(step, kit.PollOne(c, q.SendCQ), verbs.WCSuccess, verbs.WCLocLenErr)
			}
			c.T.Sleep(kit.QuietPeriod)
		})
		c.Equal("packets", len(kit.PacketsTo(packets, peer.QPN)), 0)
	}
	q := e.NewUD(c)
	packets := tapArriving(c, peer, func() {
		c.Status("as long as the MTU", q.PostAndPoll(c, kit.Datagram(2, ah, peer.QPN, mem.SGE(0, most))), verbs.WCSuccess)
	})
	c.Equal("packets of a datagram as long as the MTU", len(kit.PacketsTo(packets, peer.QPN)), 1)
}

func shortReceive(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	d.b.RecvInto(c, 1, mem.SGE(128, header+7))
	c.Status("send", d.a.PostAndPoll(c, d.datagram(2, mem.SGE(0, 8))), verbs.WCSuccess)
	got := kit.PollWithin(c, d.b.RecvCQ, 1, kit.QuietPeriod)
	if len(got) == 0 {
		c.Observe("receiver", "dropped")
		return
	}
	c.StatusIn("receiver", got[0], verbs.WCLocLenErr)
}

func noReceive(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	want := mem.FillRandom(c)
	c.Status("send with no receive", d.a.PostAndPoll(c, d.datagram(1, mem.SGE(0, 8))), verbs.WCSuccess)
	kit.ExpectNoCompletion(c, d.b.RecvCQ, kit.QuietPeriod) // it is gone before there is a receive
	d.b.RecvInto(c, 1, mem.SGE(64, 128))
	kit.ExpectNoCompletion(c, d.b.RecvCQ, kit.QuietPeriod)
	mem.ExpectContents(c, "memory", want)
	c.Status("send with one", d.a.PostAndPoll(c, d.datagram(2, mem.SGE(0, 8))), verbs.WCSuccess)
	kit.ExpectSuccess(c, d.b.RecvCQ, 1)
	c.Equal("bytes", mem.Get(c, 64+header, 8), want[:8])
}

func manyPeers(c *spec.C) {
	const n = 16
	e := kit.Open(c)
	a := e.NewUD(c)
	src, dst := e.Buffer(c, n*8, kit.AllAccess), e.Buffer(c, n*64, kit.AllAccess)
	all := src.FillRandom(c)
	var peers [n]*kit.QP
	var ahs [n]verbs.AH
	for i := range n {
		peers[i], ahs[i] = e.NewUD(c), e.CreateAH(c, e.AHTo(e.LocalAddr))
		peers[i].RecvInto(c, uint64(i), dst.SGE(64*i, 64))
		peers[i].RecvInto(c, 100, dst.SGE(64*i, 64))
	}
	for i := range n {
		k := 5 * i % n
		a.Post(c, kit.Datagram(uint64(k), ahs[k], peers[k].QPN(), src.SGE(8*k, 8)))
	}
	kit.ExpectSuccess(c, a.SendCQ, n)
	for i, p := range peers {
		wc := kit.ExpectSuccess(c, p.RecvCQ, 1)[0]
		c.Equal("wr_id", wc.ID, uint64(i))
		c.Equal(fmt.Sprintf("bytes of peer %d", i), dst.Get(c, 64*i+header, 8), all[8*i:8*i+8])
	}
	for _, p := range peers {
		kit.ExpectNoCompletion(c, p.RecvCQ, kit.QuietPeriod/n)
	}
}

func zeroBytes(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 64, kit.AllAccess)
	d.b.RecvInto(c, 1, mem.SGE(0, header))
	c.Status("send of no SGE", d.a.PostAndPoll(c, d.datagram(1)), verbs.WCSuccess)
	c.Equal("byte_len", kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0].ByteLen, uint32(header))
	d.b.RecvInto(c, 2, mem.SGE(0, header))
	c.Status("send of an SGE of 0 bytes", d.a.PostAndPoll(c, d.datagram(2, mem.SGE(0, 0))), verbs.WCSuccess)
	c.Equal("byte_len", kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0].ByteLen, uint32(header))
}

func immediate(c *spec.C) {
	d := newUDPair(c)
	mem := d.Buffer(c, 256, kit.AllAccess)
	for i, imm := range []uint32{0, 1, 0x01020304, 0xffffffff} {
		d.b.RecvInto(c, uint64(i), mem.SGE(64, 100))
		wr := d.datagram(uint64(i), mem.SGE(0, 8*i))
		wr.Opcode, wr.Imm = verbs.WRSendImm, imm
		c.Status("send", d.a.PostAndPoll(c, wr), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, d.b.RecvCQ, 1)[0]
		c.Equal("flags", wc.Flags&(verbs.WCWithImm|verbs.WCGRH), verbs.WCWithImm|verbs.WCGRH)
		c.Equal("immediate", wc.Imm, imm)
		c.Equal("byte_len", wc.ByteLen, uint32(header+8*i))
	}
}

func classAndHops(c *spec.C) {
	e := kit.Open(c)
	peer, way := toRemoteHost(c, e)
	q := e.NewUD(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, tc := range []struct{ class, hops uint8 }{{0, 64}, {0x20, 1}, {0xb8, 255}, {0xfc, 33}} {
		way.GRH.TrafficClass, way.GRH.HopLimit = tc.class, tc.hops
		ah := e.CreateAH(c, way)
		packets := tapArriving(c, peer, func() {
			c.Status("send", q.PostAndPoll(c, kit.Datagram(1, ah, peer.QPN, mem.SGE(0, 8))), verbs.WCSuccess)
		})
		sent := kit.PacketsTo(packets, peer.QPN)
		c.Equal("packets", len(sent), 1)
		hops := uint8(0)
		if sent[0].Framing == roce.RoCEv2IPv4 {
			hops = sent[0].IPv4().TTL()
		} else {
			hops = sent[0].IPv6().HopLimit()
		}
		c.Equal("traffic class", sent[0].TrafficClass(), tc.class)
		c.True(fmt.Sprintf("hop limit %d", tc.hops), hops == tc.hops, "%d, want %d", hops, tc.hops)
	}
}

// tapArriving taps what body sends to the peer, which is one datagram, until it has arrived: its
// completion may come before its frame is on the wire.
func tapArriving(c *spec.C, peer *kit.OtherQP, body func()) []kit.Packet {
	peer.Recv(c, peer.Process.Buffer(c, 8192, kit.AllAccess, 0), 1)
	return kit.Tap(c, func() {
		body()
		peer.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)
	})
}
