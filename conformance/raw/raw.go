// Package raw holds the cases of area RAW: queue pairs for Ethernet packets, and the rules that
// steer packets to them.
package raw

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("RAW-001", lengths)
	s.Case("RAW-002", withoutRule)
	s.Case("RAW-003", ordinaryUser)
	s.Case("RAW-004", refusedRules)
	s.Case("RAW-005", priorities)
	s.Case("RAW-006", equalRules)
	s.Case("RAW-007", conflicts)
	s.Case("RAW-008", drops)
	s.Case("RAW-009", busy)
	s.Case("RAW-010", defaults)
	s.Case("RAW-011", multicastLast)
	s.Case("RAW-012", vlans)
	s.Case("RAW-013", fieldsOfIPv4)
	s.Case("RAW-014", fieldsOfIPv6)
	s.Case("RAW-015", ports)
	s.Case("RAW-016", fragments)
	s.Case("RAW-017", checksumFlag)
	s.Case("RAW-018", filledChecksums)
	s.Case("RAW-019", shortReceive)
	s.Case("RAW-020", manySGEs)
	s.Case("RAW-021", wrappedRing)
	s.Case("RAW-022", noReceive)
	s.Case("RAW-023", receivesBeforeRTR)
	s.Case("RAW-024", errorAndReset)
	s.Case("RAW-025", badKeys)
	s.Case("RAW-026", ownPackets)
	s.Case("RAW-027", tags)
	s.Case("RAW-028", transitions)
	s.Case("RAW-029", shortPackets)
	s.Case("RAW-030", onTheWire)
	s.Case("RAW-031", inlinePackets)
	s.Case("RAW-032", manyMasks)
}

// src is where packets of cases come from: an address that nobody else has.
var src = [6]byte{2, 0, 0, 0, 0, 1}

// plain is a packet of the EtherType for experiments to the port.
func plain(s *kit.Steered) *ether.Packet {
	return &ether.Packet{DstMAC: s.MAC, SrcMAC: src, EtherType: kit.TypeExperimental}
}

// experimental is the rule of such packets, to which the last one of a kit.Steered does not belong.
func experimental() verbs.FlowAttr {
	a := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{SrcMAC: src, EtherType: kit.TypeExperimental},
		Mask: verbs.FlowFilter{SrcMAC: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EtherType: 0xffff}}
	return kit.FlowOf(a)
}

// build makes a packet with n bytes of payload.
func build(c *spec.C, p *ether.Packet, n int) []byte { return p.Build(c.Rand().Bytes(n)) }

func lengths(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	const header = 14
	for _, n := range []int{60, 61, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 1023, 1024, 1513, 1514} {
		p := build(c, plain(s), n-header)
		got := s.Deliver(c, p)[0]
		step := fmt.Sprintf("%d bytes", n)
		c.Equal(step+": packets", len(got), 1)
		c.Equal(step+": opcode", got[0].WC.Opcode, verbs.WCOpRecv)
		c.Equal(step+": byte_len", got[0].WC.ByteLen, uint32(n))
		c.Equal(step+": flags", got[0].WC.Flags, verbs.WCFlags(0))
		c.Equal(step+": bytes", got[0].Bytes, p)
	}
}

func withoutRule(c *spec.C) {
	s := kit.NewSteered(c, 2)
	p := build(c, plain(s), 100)
	s.ExpectAt(c, "without a rule", p)
	destroy := s.To[1].NewFlow(c, experimental())
	s.ExpectAt(c, "with a rule", p, 1)
	destroy(c)
	s.ExpectAt(c, "when the rule is gone", p)
}

func equalRules(c *spec.C) {
	s := kit.NewSteered(c, 3)
	p := build(c, plain(s), 100)
	first := s.To[0].NewFlow(c, experimental())
	second := s.To[2].NewFlow(c, experimental())
	again := s.To[2].NewFlow(c, experimental())
	s.ExpectAt(c, "a rule of one QP and two of another", p, 0, 2)
	second(c)
	s.ExpectAt(c, "without one of the two", p, 0, 2)
	first(c)
	s.ExpectAt(c, "without that of the first QP", p, 2)
	again(c)
	s.ExpectAt(c, "without any", p)
}

func shortReceive(c *spec.C) {
	s := kit.NewSteered(c, 0)
	e := kit.Open(c)
	q := e.NewRaw(c)
	q.NewFlow(c, experimental())
	buf := e.Buffer(c, 256, kit.AllAccess)
	before := buf.FillRandom(c)
	q.RecvInto(c, 1, buf.SGE(0, 100), buf.SGE(120, 27))
	q.RecvInto(c, 2, buf.SGE(0, 100))
	s.Send(c, build(c, plain(s), 114))
	c.Status("128 bytes into 127", kit.PollOne(c, q.RecvCQ), verbs.WCLocLenErr)
	c.Status("the receive behind it", kit.PollOne(c, q.RecvCQ), verbs.WCWRFlushErr)
	c.Equal("behind the pieces", buf.Get(c, 147, 109), before[147:])
	c.Equal("between the pieces", buf.Get(c, 100, 20), before[100:120])
	c.Equal("state", q.QueryState(c), verbs.QPSErr)
}

func manySGEs(c *spec.C) {
	s := kit.NewSteered(c, 1)
	e := s.From.Env
	s.To[0].NewFlow(c, experimental())
	in := kit.Open(c)
	q := in.NewRaw(c)
	q.NewFlow(c, experimental())
	out, to := e.Buffer(c, 4096, kit.AllAccess), in.Buffer(c, 4096, kit.AllAccess)
	for i, cut := range [][]int{{14, 1, 0, 85}, {1, 13, 64, 22}, {100}, {0, 50, 0, 50}, {64, 36}, {7, 90, 1, 2}} {
		p := build(c, plain(s), 100-14)
		before := to.FillRandom(c)
		var gather, scatter []verbs.SGE
		want := slices.Clone(before)
		for k, at := 0, 0; k < len(cut); k++ {
			out.Set(c, 1000*k, p[at:at+cut[k]])
			gather = append(gather, out.SGE(1000*k, cut[k]))
			// The receive is cut the other way round.
			at += cut[k]
		}
		for k, at := len(cut)-1, 0; k >= 0; k-- {
			scatter = append(scatter, to.SGE(900*k+3, cut[k]))
			copy(want[900*k+3:], p[at:at+cut[k]])
			at += cut[k]
		}
		q.RecvInto(c, uint64(i), scatter...)
		step := fmt.Sprintf("pieces of %v", cut)
		c.Status(step+": sent", s.From.PostAndPoll(c, kit.Send(uint64(i), gather...)), verbs.WCSuccess)
		wc := kit.PollOne(c, q.RecvCQ)
		c.Status(step+": received", wc, verbs.WCSuccess)
		c.Equal(step+": byte_len", wc.ByteLen, uint32(len(p)))
		c.Equal(step+": bytes", to.Get(c, 0, len(want)), want)
		got := s.Deliver(c)[0]
		c.Equal(step+": packets at the other QP", len(got), 1)
		c.Equal(step+": their bytes", got[0].Bytes, p)
	}
}

func wrappedRing(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	for n := range 5 { // queues of 32
		var sent [][]byte
		for i := range 25 {
			sent = append(sent, build(c, plain(s), 46+n*7+i*11))
		}
		var want, got []byte
		for _, p := range sent {
			want = append(want, p...)
		}
		for _, x := range s.Deliver(c, sent...)[0] {
			got = append(got, x.Bytes...)
		}
		c.Equal(fmt.Sprintf("packets %d to %d", 25*n+1, 25*n+25), got, want)
	}
}

func noReceive(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	e := kit.Open(c)
	q := e.NewRaw(c)
	q.NewFlow(c, experimental())
	buf := e.Buffer(c, 2048, kit.AllAccess)
	lost, last := build(c, plain(s), 100), build(c, plain(s), 80)
	c.Equal("packets at a QP with receives", len(s.Deliver(c, lost)[0]), 1)
	q.RecvInto(c, 7, buf.All())
	c.Equal("the next ones", len(s.Deliver(c, last)[0]), 1)
	wc := kit.PollOne(c, q.RecvCQ)
	c.Status("at one that had none at first", wc, verbs.WCSuccess)
	c.Equal("byte_len", wc.ByteLen, uint32(len(last)))
	c.Equal("bytes", buf.Get(c, 0, len(last)), last)
	kit.ExpectNoCompletion(c, q.RecvCQ, kit.QuietPeriod)
}

func receivesBeforeRTR(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	e := kit.Open(c)
	q := e.CreateQP(c, kit.RawOptions())
	q.StepTo(c, kit.Peer{}, verbs.QPSInit)
	q.NewFlow(c, experimental())
	buf := e.Buffer(c, 2048, kit.AllAccess)
	q.RecvInto(c, 1, buf.All())
	p := build(c, plain(s), 100)
	c.Equal("packets at a QP in RTS", len(s.Deliver(c, p)[0]), 1)
	kit.ExpectNoCompletion(c, q.RecvCQ, kit.QuietPeriod)
	bad, err := q.PostSend(c.T, []verbs.SendWR{kit.Send(2, buf.SGE(0, 100))})
	c.Errno("post_send in INIT", err, syscall.ENOMEM)
	c.Equal("bad_wr", bad, 0)
	q.StepTo(c, kit.Peer{}, verbs.QPSRTR)
	s.Deliver(c, p)
	c.Status("in RTR", kit.PollOne(c, q.RecvCQ), verbs.WCSuccess)
	buf.ExpectContents(c, "bytes", p)
	q.StepTo(c, kit.Peer{}, verbs.QPSRTS)
}

func errorAndReset(c *spec.C) {
	s := kit.NewSteered(c, 1)
	destroy := s.To[0].NewFlow(c, experimental())
	e := kit.Open(c)
	q := e.NewRaw(c)
	q.NewFlow(c, experimental())
	buf := e.Buffer(c, 2048, kit.AllAccess)
	q.RecvInto(c, 1, buf.SGE(0, 500))
	q.RecvInto(c, 2, buf.SGE(0, 500))
	q.ModifyState(c, verbs.QPSErr)
	for _, id := range []uint64{1, 2} {
		wc := kit.PollOne(c, q.RecvCQ)
		c.Status("receive", wc, verbs.WCWRFlushErr)
		c.Equal("wr_id", wc.ID, id)
	}
	q.Post(c, kit.Send(3, buf.SGE(0, 100)))
	c.Status("send in ERR", kit.PollOne(c, q.SendCQ), verbs.WCWRFlushErr)
	p := build(c, plain(s), 100)
	c.Equal("packets at another QP", len(s.Deliver(c, p)[0]), 1)
	destroy(c)
	q.ModifyState(c, verbs.QPSReset)
	q.BringUp(c, kit.Peer{}, verbs.QPSRTS)
	for i := range 3 {
		q.RecvInto(c, uint64(4+i), buf.SGE(600*i, 600))
	}
	for i := range 3 {
		s.Deliver(c, p)
		wc := kit.PollOne(c, q.RecvCQ)
		c.Status("after RESET", wc, verbs.WCSuccess)
		c.Equal("wr_id", wc.ID, uint64(4+i))
		c.Equal("bytes", buf.Get(c, 600*i, len(p)), p)
	}
	buf.Set(c, 0, p)
	for i := range 40 {
		c.Status("a send", q.PostAndPoll(c, kit.Send(uint64(i), buf.SGE(0, len(p)))), verbs.WCSuccess)
	}
}

func badKeys(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	e := kit.Open(c)
	p := build(c, plain(s), 100)
	key := func(g verbs.SGE) verbs.SGE { g.LKey ^= 0x100; return g }
	readOnly := e.Buffer(c, 2048, 0)
	buf := e.Buffer(c, 2048, kit.AllAccess)
	buf.Set(c, 0, p)
	for _, x := range []struct {
		what string
		sge  verbs.SGE
	}{{"a wrong key", key(buf.SGE(100, 200))}, {"a region without local write", readOnly.SGE(0, 200)}} {
		q := e.NewRaw(c)
		destroy := q.NewFlow(c, experimental())
		q.RecvInto(c, 1, buf.SGE(1000, 14), x.sge)
		s.Deliver(c, p)
		c.Status("receive with "+x.what, kit.PollOne(c, q.RecvCQ), verbs.WCLocProtErr)
		c.Equal("state", q.QueryState(c), verbs.QPSErr)
		destroy(c)
	}
	q := e.NewRaw(c)
	q.Post(c, kit.Send(1, buf.SGE(0, 14), key(buf.SGE(14, 80))), kit.Send(2, buf.SGE(0, 100)))
	c.Status("send with a wrong key", kit.PollOne(c, q.SendCQ), verbs.WCLocProtErr)
	c.Status("the send behind it", kit.PollOne(c, q.SendCQ), verbs.WCWRFlushErr)
	c.Equal("state of the sender", q.QueryState(c), verbs.QPSSQE)
	c.Equal("packets", len(s.Deliver(c)[0]), 0)
}

func ownPackets(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	own := s.From.Env.NewRaw(c)
	own.NewFlow(c, experimental())
	buf := s.From.Env.Buffer(c, 2048, kit.AllAccess)
	own.RecvInto(c, 1, buf.All())
	for _, to := range [][6]byte{s.MAC, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 1}} {
		p := plain(s)
		p.DstMAC = to
		s.ExpectAt(c, fmt.Sprintf("to % x, at another context", to), build(c, p, 100), 0)
	}
	kit.ExpectNoCompletion(c, own.RecvCQ, kit.QuietPeriod)
}

func inlinePackets(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	o := kit.RawOptions()
	o.Cap.MaxInline = 120
	e := s.From.Env
	q := e.CreateQP(c, o)
	q.BringUp(c, kit.Peer{}, verbs.QPSRTS)
	most := int(q.Caps().MaxInline)
	c.True("max_inline_data", most >= 120, "want at least 120, got %d", most)
	buf := e.Buffer(c, 2*most, kit.AllAccess)
	inline := func(id int, cut ...int) verbs.SendWR {
		w, at := kit.Send(uint64(id)), 0
		for _, n := range cut {
			w.SGEs = append(w.SGEs, verbs.SGE{Addr: buf.Addr(at), Length: uint32(n)}) // no key is looked at
			at += n
		}
		w.Flags |= verbs.SendInline
		return w
	}
	for i, cut := range [][]int{{60}, {61}, {14, 50}, {1, 0, 62, 2}, {111, 1}, {119}, {most}, {60}, {100}, {most - 14, 14}} {
		n := 0
		for _, x := range cut {
			n += x
		}
		p := build(c, plain(s), n-14)
		buf.Set(c, 0, p)
		c.Status(fmt.Sprintf("send of %v", cut), q.PostAndPoll(c, inline(i, cut...)), verbs.WCSuccess)
		got := s.Deliver(c)[0]
		c.Equal("packets", len(got), 1)
		c.Equal("bytes", got[0].Bytes, p)
	}
	q.ExpectSendRefused(c, "one byte too many", 0, []verbs.SendWR{inline(99, most+1)}, syscall.ENOMEM, syscall.EINVAL)
}

func transitions(c *spec.C) {
	e := kit.Open(c)
	o := kit.RawOptions()
	none := o
	none.Cap.MaxSendWR, none.Cap.MaxRecvWR = 0, 0
	_, err := e.PD.CreateQP(c.T, func() verbs.QPInitAttr {
		a := e.CreateQP(c, o).InitAttr()
		a.Cap = none.Cap
		return a
	}())
	c.Errno("create_qp without send and receive queue", err, syscall.EINVAL)

	q := e.CreateQP(c, o)
	move := func(to verbs.QPState, a verbs.QPAttr, mask verbs.QPAttrMask) error {
		a.State = to
		return q.Modify(c.T, &a, mask|verbs.QPMaskState)
	}
	port := verbs.QPAttr{Port: e.Port}
	c.Errno("INIT without a port", move(verbs.QPSInit, port, 0), syscall.EINVAL)
	c.Errno("INIT with a Q_Key", move(verbs.QPSInit, port, verbs.QPMaskPort|verbs.QPMaskQKey), syscall.EINVAL)
	c.Errno("RTR from RESET", move(verbs.QPSRTR, port, 0), syscall.EINVAL)
	c.Errno("INIT", move(verbs.QPSInit, port, verbs.QPMaskPort), 0)
	c.Equal("state", q.QueryState(c), verbs.QPSInit)
	c.Errno("RTS from INIT", move(verbs.QPSRTS, port, 0), syscall.EINVAL)
	c.Errno("RTR with a destination", move(verbs.QPSRTR, port, verbs.QPMaskDestQPN), syscall.EINVAL)
	c.Errno("RTR", move(verbs.QPSRTR, port, 0), 0)
	c.Equal("state", q.QueryState(c), verbs.QPSRTR)
	c.Errno("RTS with a PSN", move(verbs.QPSRTS, port, verbs.QPMaskSQPSN), syscall.EINVAL)
	c.Errno("RTS", move(verbs.QPSRTS, port, 0), 0)
	c.Equal("state", q.QueryState(c), verbs.QPSRTS)
	c.Errno("ERR", move(verbs.QPSErr, port, 0), 0)
	c.Equal("state", q.QueryState(c), verbs.QPSErr)
	c.Errno("RTS from ERR", move(verbs.QPSRTS, port, 0), syscall.EINVAL)
	c.Errno("RESET", move(verbs.QPSReset, port, 0), 0)
	c.Equal("state", q.QueryState(c), verbs.QPSReset)
}

func shortPackets(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	for _, n := range []int{14, 15, 42, 59} {
		p := build(c, plain(s), n-14)
		got := s.Deliver(c, p)[0]
		c.Equal(fmt.Sprintf("%d bytes: packets", n), len(got), 1)
		c.Equal("with padding", got[0].Bytes, append(p, make([]byte, kit.LeastPacket-n)...))
	}
	q := s.From.Env.NewRaw(c)
	buf := s.From.Env.Buffer(c, 64, kit.AllAccess)
	c.Status("13 bytes", q.PostAndPoll(c, kit.Send(1, buf.SGE(0, 13))), verbs.WCLocLenErr)
	c.Equal("packets", len(s.Deliver(c)[0]), 0)
}

func onTheWire(c *spec.C) {
	s := kit.NewSteered(c, 1)
	s.To[0].NewFlow(c, experimental())
	var sent [][]byte
	for _, to := range [][6]byte{{2, 0, 0, 0, 0, 9}, s.MAC, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x33, 0x33, 0, 0, 0, 1}} {
		p := plain(s)
		p.DstMAC = to
		sent = append(sent, build(c, p, 200))
	}
	var wire [][]byte
	for _, f := range kit.TapFrames(c, func() { c.Equal("packets that came back", len(s.Deliver(c, sent...)[0]), 3) }) {
		if len(f.Data) > 14 && bytes.Equal(f.Data[6:12], src[:]) {
			wire = append(wire, f.Data)
		}
	}
	c.Equal("packets on the wire", len(wire), 3)
	for i, k := range []int{0, 2, 3} {
		c.Equal(fmt.Sprintf("packet %d on the wire", k+1), wire[i], sent[k])
	}
}
