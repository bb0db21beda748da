// Package uc holds the cases of area UC: the unreliable connection.
package uc

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("UC-001", operations)
	s.Case("UC-002", noAcknowledgement)
	s.Case("UC-003", noReceive)
	s.Case("UC-004", lostPacket)
	s.Case("UC-005", badKey)
	s.Case("UC-006", readRefused)
	s.Case("UC-007", sharedReceives)
}

func operations(c *spec.C) {
	p := kit.NewPair(c, kit.DefaultFor(verbs.QPTUC))
	src, dst := p.Buffer(c, 1<<16, kit.AllAccess), p.Buffer(c, 1<<16, kit.AllAccess)
	all := src.FillRandom(c)
	const m = 1024 // the path MTU
	for i, n := range []int{0, 1, 63, m - 1, m, m + 1, 3*m + 17, 1 << 15} {
		for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRSendImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteImm} {
			step := fmt.Sprintf("opcode %d, %d bytes", op, n)
			want := dst.FillRandom(c)
			copy(want[100:], all[:n])
			wr := kit.Write(uint64(i), dst, 100, src.SGE(0, n))
			wr.Opcode, wr.Imm = op, 0xbeef0000+uint32(i)
			if op != verbs.WRRDMAWrite {
				p.B.RecvInto(c, uint64(i), dst.SGE(100, 1<<15))
			}
			c.Status(step, p.A.PostAndPoll(c, wr), verbs.WCSuccess)
			if op == verbs.WRRDMAWrite {
				// Its own completion says nothing of the other end; that of a message behind it
				// does.
				p.B.RecvInto(c, 99)
				c.Status("message behind it", p.A.PostAndPoll(c, kit.Send(99)), verbs.WCSuccess)
				kit.ExpectSuccess(c, p.B.RecvCQ, 1)
				dst.ExpectContents(c, step+": target", want)
				continue
			}
			wc := kit.ExpectSuccess(c, p.B.RecvCQ, 1)[0]
			c.Equal(step+": byte_len", wc.ByteLen, uint32(n))
			if op != verbs.WRSend {
				c.Equal(step+": flag", wc.Flags&verbs.WCWithImm, verbs.WCWithImm)
				c.Equal(step+": immediate", wc.Imm, wr.Imm)
			}
			opcode := verbs.WCOpRecv
			if op == verbs.WRRDMAWriteImm {
				opcode = verbs.WCOpRecvRDMAImm
			}
			c.Equal(step+": opcode", wc.Opcode, opcode)
			dst.ExpectContents(c, step+": target", want)
		}
	}
}

func noAcknowledgement(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.DefaultFor(verbs.QPTUC))
	mem, far := e.Buffer(c, 4096, kit.AllAccess), b.Process.Buffer(c, 4096, kit.AllAccess, 0)
	b.Recv(c, far, 2)
	packets := kit.Tap(c, func() {
		a.Post(c, kit.Send(1, mem.SGE(0, 3000)), far.WriteTo(2, 0, mem.SGE(0, 3000)), kit.Send(3, mem.SGE(0, 8)))
		kit.ExpectSuccess(c, a.SendCQ, 3)
		b.Process.AwaitStatuses(c, 2, kit.CompletionTimeout)
		kit.ExpectNoCompletion(c, a.SendCQ, kit.QuietPeriod)
	})
	// The two QPs may have one number, so that it does not tell the direction.
	requests, responses := 0, 0
	for _, p := range packets {
		switch {
		case p.DestQPN() != a.QPN() && p.DestQPN() != b.QPN:
		case !p.IsFrom(e.LocalAddr):
			responses++
		case p.Op.Transport() != roce.UC || p.BTH().AckReq():
			c.Failf("%v with AckReq %t on UC", p.Op, p.BTH().AckReq())
		default:
			requests++
		}
	}
	c.Equal("packets of the requester", requests, 7)
	c.Equal("packets of the responder", responses, 0)
}

func noReceive(c *spec.C) {
	p := kit.NewPair(c, kit.DefaultFor(verbs.QPTUC))
	mem := p.Buffer(c, 8192, kit.AllAccess)
	want := mem.FillRandom(c)
	c.Status("send of one packet", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Status("send of several", p.A.PostAndPoll(c, kit.Send(2, mem.SGE(0, 3000))), verbs.WCSuccess)
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
	p.B.RecvInto(c, 7, mem.SGE(4096, 100))
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
	c.Status("send with a receive", p.A.PostAndPoll(c, kit.Send(3, mem.SGE(64, 100))), verbs.WCSuccess)
	wc := kit.ExpectSuccess(c, p.B.RecvCQ, 1)[0]
	c.Equal("wr_id", wc.ID, uint64(7))
	copy(want[4096:], want[64:164])
	mem.ExpectContents(c, "memory", want)
}

func lostPacket(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.DefaultFor(verbs.QPTUC))
	mem, far := e.Buffer(c, 4096, kit.AllAccess), b.Process.Buffer(c, 4096, kit.AllAccess, 0)
	want := mem.FillRandom(c)
	b.Recv(c, far, 1)
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN, Count: 1, Action: verbs.WireDrop})
	c.Status("send that is lost", a.PostAndPoll(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	c.Status("send behind it", a.PostAndPoll(c, kit.Send(2, mem.SGE(32, 16))), verbs.WCSuccess)
	got := b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)
	c.Equal("completions of the receiver", got, []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("bytes", far.Get(c, 0, 16), want[32:48])
	c.True("the rule met the first", kit.ClearRules(c)[0] >= 1, "it met none")

	b.Recv(c, far, 1)
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN, Skip: 1, Count: 1, Action: verbs.WireDrop})
	c.Status("send of which the second packet is lost", a.PostAndPoll(c, kit.Send(3, mem.SGE(64, 3000))), verbs.WCSuccess)
	c.Status("send behind that", a.PostAndPoll(c, kit.Send(4, mem.SGE(32, 100))), verbs.WCSuccess)
	got = b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout)
	arrived := slices.Equal(got, []verbs.WCStatus{verbs.WCSuccess}) && bytes.Equal(far.Get(c, 0, 100), want[32:132]) // too long for the completion itself
	c.True("a message behind one with a gap is received", arrived, "completions of the receiver: %v", got)
	kit.ClearRules(c)
}

func badKey(c *spec.C) {
	p := kit.NewPair(c, kit.DefaultFor(verbs.QPTUC))
	mem := p.Buffer(c, 8192, kit.AllAccess)
	want := mem.FillRandom(c)
	for _, n := range []int{8, 3000} {
		wr := kit.Write(1, mem, 4096, mem.SGE(0, n))
		wr.RKey ^= 0x5a
		c.Status(fmt.Sprintf("%d bytes", n), p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	}
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
	mem.ExpectContents(c, "memory", want)
	c.Observe("state of the responder", p.B.QueryState(c).String())
}

func readRefused(c *spec.C) {
	p := kit.NewPair(c, kit.DefaultFor(verbs.QPTUC))
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.Read(1, mem, 32, mem.SGE(0, 8))})
	if c.ErrnoIn("read", err, 0, syscall.EINVAL) == 0 {
		c.StatusIn("read: completion", kit.PollOne(c, p.A.SendCQ), verbs.WCLocQPOpErr)
	}
	mem.ExpectContents(c, "memory", want)
}

// sharedReceives asks for a UC QP with an SRQ, and where there are such uses one.
func sharedReceives(c *spec.C) {
	e := kit.Open(c)
	s, mem := e.CreateSRQ(c, 16, 1), e.Buffer(c, 64, kit.AllAccess)
	o := kit.DefaultFor(verbs.QPTUC)
	o.SRQ = s.SRQ
	if !e.RecordCreate(c, "create_qp of UC with an SRQ", o) {
		return
	}
	p := e.Pair(c, o)
	s.RecvInto(c, 7, mem.SGE(32, 16))
	want := mem.FillRandom(c)[:16]
	c.Status("send", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	if got := kit.RecordCompletions(c, "receive", p.B.RecvCQ, 1); len(got) == 1 && got[0].Status == verbs.WCSuccess {
		c.Equal("bytes", mem.Get(c, 32, 16), want)
	}
}
