package wire

import (
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

func headers(c *spec.C) {
	l := connect(c, options(c))
	packets := l.tap(c, func() {
		l.postSuccessfully(c, l.write(1, 3000), l.read(2, 3000), l.far.FetchAdd(3, 0, 1, l.mem.SGE(0, 8)))
	})
	c.True("packets", len(packets) >= 8, "only %d packets", len(packets))
	for i := range packets {
		p := &packets[i]
		h := p.BTH()
		c.True("destination QPN", h.DestQP() == l.a.QPN() || h.DestQP() == l.b.QPN, "packet %d is to QPN %#x", i, h.DestQP())
		if h.Version() != 0 || h.Reserved6() != 0 || h.Reserved7() != 0 || h.PKey() != roce.DefaultPKey || p.UDP().DstPort() != roce.UDPPort {
			c.Failf("packet %d: version %d, reserved bits %#x %#x, P_Key %#x, UDP port %d", i, h.Version(), h.Reserved6(),
				h.Reserved7(), h.PKey(), p.UDP().DstPort())
		}
	}
	c.Observe("UDP port", roce.UDPPort)
}

func segmentation(c *spec.C) {
	e, other := open(c)
	for _, n := range []int{0, 1, mtu, mtu + 1, 2 * mtu, 5*mtu + 7} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		ps := l.requests(l.tap(c, func() { l.postSuccessfully(c, l.write(1, n)) }))
		want := max(1, (n+mtu-1)/mtu)
		c.Equal(fmt.Sprintf("packets of %d bytes", n), len(ps), want)
		for i, p := range ps {
			op := roce.RCWriteMiddle
			switch {
			case want == 1:
				op = roce.RCWriteOnly
			case i == 0:
				op = roce.RCWriteFirst
			case i == want-1:
				op = roce.RCWriteLast
			}
			length := mtu
			if i == want-1 {
				length = n - (want-1)*mtu
			}
			if p.Op != op || p.PayloadLen() != length {
				c.Failf("packet %d of %d: %s with %d bytes, want %s with %d", i+1, want, p.Info().Name, p.PayloadLen(), op.Info().Name, length)
			}
		}
	}
}

func requestPSNs(c *spec.C) {
	o := options(c)
	o.PSN = 0xfffffc // over the wrap
	l := connect(c, o)
	ps := l.requests(l.tap(c, func() { l.postSuccessfully(c, l.write(1, 3*mtu), l.write(2, 1), l.write(3, 0), l.write(4, 4*mtu)) }))
	c.Equal("PSNs from the first", l.psns(ps), countUpTo(0, 8))
	c.Equal("last PSN", ps[len(ps)-1].PSN(), uint32(4))
}

func readPSNs(c *spec.C) {
	l := connect(c, options(c))
	packets := l.tap(c, func() { l.postSuccessfully(c, l.read(1, 3*mtu+1), l.read(2, 0), l.read(3, mtu), l.write(4, 8)) })
	c.Equal("PSNs of the requests", l.psns(l.requests(packets)), []int{0, 4, 5, 6})
	c.Equal("PSNs of the responses", l.psns(l.responses(packets))[:6], countUpTo(0, 5))
}

func readResponses(c *spec.C) {
	l := connect(c, options(c))
	packets := l.tap(c, func() { l.postSuccessfully(c, l.read(1, 3*mtu), l.read(2, 2*mtu), l.read(3, 100), l.read(4, 0)) })
	want := []roce.Opcode{roce.RCReadResponseFirst, roce.RCReadResponseMiddle, roce.RCReadResponseLast, roce.RCReadResponseFirst,
		roce.RCReadResponseLast, roce.RCReadResponseOnly, roce.RCReadResponseOnly}
	rs := l.responses(packets)
	var got []roce.Opcode
	for _, r := range rs {
		got = append(got, r.Op)
		if r.Has(roce.HasAETH) {
			c.True("syndrome", r.AETH().Syndrome().Type() == roce.SyndromeTypeAck, "%v in %s", r.AETH().Syndrome(), r.Info().Name)
		}
	}
	c.Equal("opcodes", fmt.Sprint(got), fmt.Sprint(want))
	c.Equal("PSNs", l.psns(rs), countUpTo(0, 6))
}

func reth(c *spec.C) {
	l := connect(c, options(c))
	packets := l.tap(c, func() {
		l.postSuccessfully(c, l.far.WriteTo(1, 64, l.mem.SGE(0, 2500)), l.far.WriteTo(2, 7, l.mem.SGE(0, 5)), l.far.ReadFrom(3, 128, l.mem.SGE(0, 3000)))
	})
	want := []struct {
		op  roce.Opcode
		off uint64
		n   uint32
	}{{roce.RCWriteFirst, 64, 2500}, {roce.RCWriteOnly, 7, 5}, {roce.RCReadRequest, 128, 3000}}
	got := slices.DeleteFunc(l.requests(packets), func(p kit.Packet) bool { return !p.Has(roce.HasRETH) })
	c.Equal("packets with RETH", len(got), len(want))
	for i, w := range want {
		h := got[i].RETH()
		if got[i].Op != w.op || h.VA() != l.far.Addr+w.off || h.RKey() != l.far.RKey || h.Length() != w.n {
			c.Failf("%s at %#x, key %#x, length %d: want %s at %#x, key %#x, length %d", got[i].Info().Name, h.VA(), h.RKey(), h.Length(),
				w.op.Info().Name, l.far.Addr+w.off, l.far.RKey, w.n)
		}
	}
	c.Observe("RETH of writes and reads", len(got))
}

func immediates(c *spec.C) {
	l := connect(c, options(c))
	l.b.Recv(c, l.far, 4)
	const imm = 0xCAFE0001
	one, many := l.write(1, 10), l.write(2, 2*mtu)
	one.Opcode, one.Imm, many.Opcode, many.Imm = verbs.WRRDMAWriteImm, imm, verbs.WRRDMAWriteImm, imm
	s1, s2 := kit.Send(3, l.mem.SGE(0, 10)), kit.Send(4, l.mem.SGE(0, 2*mtu))
	s1.Opcode, s1.Imm, s2.Opcode, s2.Imm = verbs.WRSendImm, imm, verbs.WRSendImm, imm
	var got []roce.Opcode
	for _, p := range l.requests(l.tap(c, func() { l.postSuccessfully(c, one, many, s1, s2) })) {
		if p.Has(roce.HasImmDt) {
			got = append(got, p.Op)
			c.Equal("immediate", p.ImmDt().Value(), uint32(imm))
		}
	}
	c.Equal("packets with an immediate", fmt.Sprint(got), fmt.Sprint([]roce.Opcode{roce.RCWriteOnlyImm, roce.RCWriteLastImm, roce.RCSendOnlyImm, roce.RCSendLastImm}))
}

func atomics(c *spec.C) {
	l := connect(c, options(c))
	const before, add, swap = 0x1122334455667788, 5, 0xA1A2A3A4A5A6A7A8
	l.far.SetWord(c, 8, before)
	packets := l.tap(c, func() {
		l.postSuccessfully(c, l.far.FetchAdd(1, 8, add, l.mem.SGE(0, 8)))
		l.postSuccessfully(c, l.far.CmpSwap(2, 8, before+add, swap, l.mem.SGE(8, 8)))
	})
	requests, answers := l.requests(packets), l.responses(packets, roce.RCAtomicAcknowledge)
	c.Equal("requests and answers", []int{len(requests), len(answers)}, []int{2, 2})
	f, s := requests[0].AtomicETH(), requests[1].AtomicETH()
	c.True("fetch and add", requests[0].Op == roce.RCFetchAdd && f.VA() == l.far.Addr+8 && f.RKey() == l.far.RKey && f.SwapAdd() == add,
		"want RC FetchAdd at %#x, key %#x, add %#x; got %s at %#x, key %#x, add %#x", l.far.Addr+8, l.far.RKey, uint64(add),
		requests[0].Info().Name, f.VA(), f.RKey(), f.SwapAdd())
	c.True("compare and swap", requests[1].Op == roce.RCCmpSwap && s.VA() == l.far.Addr+8 && s.RKey() == l.far.RKey && s.SwapAdd() == swap && s.Compare() == before+add,
		"want RC CmpSwap at %#x, key %#x, compare %#x, swap %#x; got %s at %#x, key %#x, compare %#x, swap %#x", l.far.Addr+8, l.far.RKey, uint64(before+add), uint64(swap),
		requests[1].Info().Name, s.VA(), s.RKey(), s.Compare(), s.SwapAdd())
	c.Equal("original values", []uint64{answers[0].AtomicAckETH().Original(), answers[1].AtomicAckETH().Original()}, []uint64{before, before + add})
}

func padding(c *spec.C) {
	l := connect(c, options(c))
	sent := l.requests(l.tap(c, func() {
		for n := 1; n <= 9; n++ {
			want := l.mem.FillRandom(c)[:n]
			l.postSuccessfully(c, l.write(uint64(n), n))
			c.Equal("bytes", l.far.Get(c, 0, n), want)
		}
	}))
	for i, p := range sent {
		c.Equal(fmt.Sprintf("pad of %d bytes", i+1), p.PadCount(), -(i+1)&3)
	}
	l.mem.FillRandom(c)
	l.far.Set(c, 0, make([]byte, 16))
	l.postSuccessfully(c, l.write(10, 5))
	c.Equal("bytes behind the payload", l.far.Get(c, 5, 3), make([]byte, 3))
}

func icrc(c *spec.C) {
	l := connect(c, options(c))
	l.b.Recv(c, l.far, 1)
	packets := l.tap(c, func() {
		l.postSuccessfully(c, l.write(1, 3001), l.read(2, 3001), kit.Send(3, l.mem.SGE(0, 99)), l.far.FetchAdd(4, 0, 1, l.mem.SGE(0, 8)))
	})
	for i := range packets {
		if !packets[i].ICRCOK() {
			c.Failf("packet %d: ICRC %#08x, want %#08x", i, packets[i].StoredICRC(), packets[i].ComputeICRC())
		}
	}
	c.True("packets", len(packets) >= 10, "only %d packets", len(packets))
	c.Observe("right ICRCs", len(packets))
}

func solicited(c *spec.C) {
	l := connect(c, options(c))
	l.b.Recv(c, l.far, 2)
	yes, no := kit.Send(1, l.mem.SGE(0, 3*mtu)), kit.Send(2, l.mem.SGE(0, 3*mtu))
	yes.Flags |= verbs.SendSolicited
	var got []bool
	for _, p := range l.requests(l.tap(c, func() { l.postSuccessfully(c, yes, no) })) {
		got = append(got, p.BTH().Solicited())
	}
	c.Equal("SE bits", got, []bool{false, false, true, false, false, false})
}

func ackReq(c *spec.C) {
	l := connect(c, options(c))
	ps := l.requests(l.tap(c, func() {
		for i := range 8 {
			l.postSuccessfully(c, l.write(uint64(i), 2*mtu))
		}
	}))
	asked, last := 0, 0
	for _, p := range ps {
		if p.BTH().AckReq() {
			asked++
		}
		if p.Info().Last {
			last++
			c.True("last packet", p.BTH().AckReq(), "AckReq is not set on PSN %#x, the last of a signalled request", p.PSN())
		}
	}
	c.Observe("packets with AckReq", fmt.Sprintf("%d of %d, %d end a message", asked, len(ps), last))
}

func ackFields(c *spec.C) {
	l := connect(c, options(c))
	for i, n := range []int{8, 3 * mtu, 0, 2 * mtu} {
		packets := kit.Tap(c, func() { l.postSuccessfully(c, l.write(uint64(i), n)) })
		sent, acks := l.requests(packets), l.responses(packets, roce.RCAcknowledge)
		c.True("acknowledged", len(acks) > 0, "message %d drew no ACK", i)
		ack := acks[len(acks)-1]
		c.Equal("PSN of the ACK", ack.PSN(), sent[len(sent)-1].PSN())
		c.Equal("MSN", ack.AETH().MSN(), uint32(i+1))
		c.Equal("syndrome type", ack.AETH().Syndrome().Type(), roce.SyndromeTypeAck)
	}
}

func sourcePort(c *spec.C) {
	l := connect(c, options(c))
	packets := l.tap(c, func() { l.postSuccessfully(c, l.write(1, 3000), l.read(2, 3000), l.write(3, 0)) })
	checkSourcePort(c, "requests", l.requests(packets))
	checkSourcePort(c, "responses", l.responses(packets))
	c.Observe("UDP source ports", "constant, from 49152")
}

func checkSourcePort(c *spec.C, name string, packets []kit.Packet) {
	first := packets[0].UDP().SrcPort()
	for _, p := range packets {
		if q := p.UDP().SrcPort(); q != first || q < 0xC000 {
			c.Failf("%s: UDP source port %d, the first was %d; the range is 49152 to 65535", name, q, first)
		}
	}
}

func trafficClass(c *spec.C) {
	e, other := open(c)
	for _, class := range []uint8{0, 0x68, 0x6A, 0xFD} {
		l := join(c, e, other, options(c), func(a *verbs.QPAttr) { a.AH.GRH.TrafficClass = class })
		for _, p := range l.requests(l.tap(c, func() { l.postSuccessfully(c, l.write(1, 3000)) })) {
			c.Equal(fmt.Sprintf("DSCP and ECN with traffic class %#02x", class), p.TrafficClass(), class)
		}
	}
}
