package wire

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// ieth sends with invalidate of a key that means nothing to the other side, which ends
// the connection: each length has its own.
func ieth(c *spec.C) {
	e, other := open(c)
	for _, n := range []int{0, 1, mtu, mtu + 1, 3*mtu + 5} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		l.b.Recv(c, l.far, 1)
		const key = 0x00caf501
		w := kit.Send(1, l.mem.SGE(0, n))
		w.Opcode, w.Imm = verbs.WRSendInv, key
		packets := l.requests(kit.Tap(c, func() {
			c.StatusIn(fmt.Sprintf("send of %d bytes that invalidates a key of nothing", n), l.a.PostAndPoll(c, w), verbs.WCRemInvReqErr, verbs.WCRemAccessErr, verbs.WCRemOpErr)
		}))
		want := max(1, (n+mtu-1)/mtu)
		c.True("packets", len(packets) >= want, "%d, want %d", len(packets), want)
		for i := range packets[:want] {
			p := &packets[i]
			op, last := roce.RCSendMiddle, i == want-1
			switch {
			case want == 1:
				op = roce.RCSendOnlyInv
			case i == 0:
				op = roce.RCSendFirst
			case last:
				op = roce.RCSendLastInv
			}
			if p.Op != op || p.Has(roce.HasIETH) != last {
				c.Failf("packet %d of %d: %s, want %s; IETH %t", i+1, want, p.Info().Name, op.Info().Name, p.Has(roce.HasIETH))
			}
			if last {
				c.Equal("key in the IETH", p.IETH().RKey(), uint32(key))
			}
		}
	}
}

func deth(c *spec.C) {
	e, other := open(c)
	a := e.NewUD(c)
	b := other.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
	b.Connect(c, a.Peer(), kit.DefaultFor(verbs.QPTUD), verbs.QPSRTS)
	mem := e.Buffer(c, size, kit.AllAccess)
	ah := e.CreateAH(c, e.AHTo(other.Addr))
	imm := kit.Datagram(3, ah, b.QPN, mem.SGE(0, 100))
	imm.Opcode, imm.Imm = verbs.WRSendImm, 0x01020304
	own := kit.Datagram(4, ah, b.QPN, mem.SGE(0, 1))
	own.RemoteQKey = 0x80000000 // stands for the QP's own
	other1 := kit.Datagram(5, ah, b.QPN, mem.SGE(0, 1))
	other1.RemoteQKey = 0x1234567
	wrs := []verbs.SendWR{kit.Datagram(1, ah, b.QPN), kit.Datagram(2, ah, b.QPN, mem.SGE(0, mtu)), imm, own, other1}
	packets := kit.PacketsTo(kit.Tap(c, func() {
		a.Post(c, wrs...)
		kit.ExpectSuccess(c, a.SendCQ, len(wrs))
		awaitUnanswered(c)
	}), b.QPN)
	c.Equal("packets", len(packets), len(wrs))
	keys := []uint32{kit.QKey, kit.QKey, kit.QKey, kit.QKey, 0x1234567}
	for i := range packets {
		p := &packets[i]
		if !p.Has(roce.HasDETH) || p.Has(roce.HasImmDt) != (i == 2) {
			c.Failf("packet %d is %s", i+1, p.Info().Name)
		}
		c.Equal(fmt.Sprintf("Q_Key of packet %d", i+1), p.DETH().QKey(), keys[i])
		c.Equal("source QPN", p.DETH().SrcQP() == a.QPN(), true)
	}
}

// truncated cuts packets of every kind of request and of responses at random, many
// times; then the device works as before.
func truncated(c *spec.C) {
	e, other := open(c)
	total := 0
	// Unreliable ones are lost without a word: nothing is sent again.
	if c.Has("uc") {
		o := kit.DefaultFor(verbs.QPTUC)
		o.Cap.MaxSendWR = 256
		a, b := e.PairWith(c, other, o)
		mem, far := e.Buffer(c, size, kit.AllAccess), other.Buffer(c, size, kit.AllAccess, 0)
		imm := kit.Send(1, mem.SGE(0, 40))
		imm.Opcode = verbs.WRSendImm
		kinds := []verbs.SendWR{kit.Send(1, mem.SGE(0, 64)), imm, far.WriteTo(1, 0, mem.SGE(0, 200)), far.WriteTo(1, 0)}
		const atLeast, batch = 100_000, 250
		for round := 0; total < atLeast; round++ {
			if round == 4*atLeast/batch {
				c.Failf("%d of %d requests met the injector", total, round*batch)
			}
			w := kinds[c.Rand().Intn(len(kinds))]
			kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN, Action: verbs.WireTruncate, Keep: 1 + c.Rand().Intn(90)})
			wrs := make([]verbs.SendWR, batch)
			for i := range wrs {
				wrs[i] = w
				if i < batch-1 {
					wrs[i].Flags = 0
				}
			}
			a.Post(c, wrs...)
			kit.ExpectSuccess(c, a.SendCQ, 1)
			awaitUnanswered(c)
			for _, n := range kit.ClearRules(c) {
				total += n
			}
		}
	}
	// Reliable ones come again by the timer, and arrive whole.
	for range 50 {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		want := l.mem.FillRandom(c)[:3000]
		l.far.Set(c, 0, want)
		r := l.ruleForRequest(uint32(c.Rand().Intn(3)), verbs.WireTruncate)
		if c.Rand().Intn(2) == 0 {
			r = l.ruleForResponse(roce.RCAcknowledge, verbs.WireTruncate)
		}
		r.Keep = 1 + c.Rand().Intn(57) // always short of the ICRC
		kit.Inject(c, r)
		l.postSuccessfully(c, l.write(1, 3000), l.read(2, 3000))
		total += kit.ClearRules(c)[0]
		c.Equal("bytes", l.mem.Get(c, 0, 3000), want)
	}
	c.Observe("packets truncated", total)
	l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
	l.postSuccessfully(c, l.write(1, 5000))
}

// windowOfPSNs asks for more than 2^23 packets of data by READs that are lost on
// their way, and looks at how many PSNs the requests span.
func windowOfPSNs(c *spec.C) {
	const each = 256 << 20 // 2^20 PSNs of 256 bytes
	o := options(c)
	o.MTU, o.RdAtomic, o.Timeout = verbs.MTU256, 16, 0
	e, other := open(c)
	a, b := e.PairWith(c, other, o)
	mem := e.Buffer(c, each, kit.AllAccess)
	far := other.Buffer(c, each, kit.AllAccess, 0)
	kit.Inject(c, kit.DropTo(b.QPN))
	packets := kit.PacketsTo(kit.Tap(c, func() {
		for i := range uint64(16) {
			a.Post(c, far.ReadFrom(i, 0, mem.SGE(0, each)))
		}
		awaitUnanswered(c)
	}), b.QPN, roce.RCReadRequest)
	c.True("requests", len(packets) > 0, "none was sent")
	first, behind := packets[0].PSN(), uint32(0)
	for i := range packets {
		p := &packets[i]
		behind = (p.PSN() + (p.RETH().Length()+255)/256 - first) & roce.PSNMask
		if behind > 1<<23 || behind == 0 {
			c.Failf("request %d: %d PSNs are outstanding", i+1, behind)
		}
	}
	c.True("PSNs outstanding", behind <= 1<<23, "%d", behind)
	c.Observe("requests on the wire", len(packets))
	kit.ClearRules(c)
}

// awaitUnanswered gives packets that get no response time to arrive.
func awaitUnanswered(c *spec.C) { c.T.Sleep(kit.QuietPeriod/100 + kit.TimerSlack(c)) }

func ipv6(c *spec.C) {
	var transcripts [][]string
	for _, v6 := range []bool{false, true} {
		e, other := open(c)
		framing := roce.RoCEv2IPv4
		if v6 {
			e, other, framing = kit.OpenIPv6(c), kit.OpenOtherProcessIPv6(c, kit.RemoteHost(c)), roce.RoCEv2IPv6
			e.CreateQP(c, options(c))
		}
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		l.mem.Set(c, 0, make([]byte, size))
		l.b.Recv(c, l.far, 2)
		packets := l.tap(c, func() {
			l.postSuccessfully(c, l.write(1, 3000), kit.Send(2, l.mem.SGE(0, 700)), l.read(3, 2500), kit.Send(4))
		})
		for i, p := range packets {
			if p.Framing != framing {
				c.Failf("packet %d: framing %v, want %v", i+1, p.Framing, framing)
			}
		}
		transcripts = append(transcripts, kit.Transcript(packets, []uint32{l.b.QPN, l.a.QPN()}, []uint32{l.opt.PSN, l.opt.PSN}))
	}
	c.True("packets", len(transcripts[0]) > 5, "%d", len(transcripts[0]))
	c.Equal("packets by IPv6", transcripts[1], transcripts[0])
}
