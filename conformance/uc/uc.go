// Package uc holds the cases of area UC: the unreliable connection.
package uc

import (
	"fmt"
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
	p := kit.NewPair(c, kit.Of(verbs.QPTUC))
	src, dst := p.Buffer(c, 1<<16, kit.AllAccess), p.Buffer(c, 1<<16, kit.AllAccess)
	all := src.Fill(c)
	const m = 1024 // the path MTU
	for i, n := range []int{0, 1, 63, m - 1, m, m + 1, 3*m + 17, 1 << 15} {
		for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRSendImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteImm} {
			step := fmt.Sprintf("opcode %d, %d bytes", op, n)
			want := dst.Fill(c)
			copy(want[100:], all[:n])
			wr := kit.Write(uint64(i), dst, 100, src.SGE(0, n))
			wr.Opcode, wr.Imm = op, 0xbeef0000+uint32(i)
			if op != verbs.WRRDMAWrite {
				p.B.RecvInto(c, uint64(i), dst.SGE(100, 1<<15))
			}
			c.Status(step, p.A.Do(c, wr), verbs.WCSuccess)
			if op == verbs.WRRDMAWrite {
				// Its own completion says nothing of the other end; that of a message behind it does.
				p.B.RecvInto(c, 99)
				c.Status("message behind it", p.A.Do(c, kit.Send(99)), verbs.WCSuccess)
				kit.Good(c, p.B.RCQ, 1)
				dst.Holds(c, step+": target", want)
				continue
			}
			wc := kit.Good(c, p.B.RCQ, 1)[0]
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
			dst.Holds(c, step+": target", want)
		}
	}
}

func noAcknowledgement(c *spec.C) {
	e := kit.Open(c)
	a, b := e.FarPair(c, kit.Of(verbs.QPTUC))
	mem, far := e.Buffer(c, 4096, kit.AllAccess), b.O.Buffer(c, 4096, kit.AllAccess, 0)
	b.Recv(c, far, 2)
	packets := kit.Tap(c, func() {
		a.Post(c, kit.Send(1, mem.SGE(0, 3000)), far.WriteTo(2, 0, mem.SGE(0, 3000)), kit.Send(3, mem.SGE(0, 8)))
		kit.Good(c, a.SCQ, 3)
		b.O.Wait(c, 2, kit.Patience)
		kit.Nothing(c, a.SCQ, kit.Silence)
	})
	// The two QPs may have one number, so that it does not tell the direction.
	requests, responses := 0, 0
	for _, p := range packets {
		switch {
		case p.To() != a.QPN() && p.To() != b.QPN:
		case !p.From(e.Own):
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
	p := kit.NewPair(c, kit.Of(verbs.QPTUC))
	mem := p.Buffer(c, 8192, kit.AllAccess)
	want := mem.Fill(c)
	c.Status("send of one packet", p.A.Do(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Status("send of several", p.A.Do(c, kit.Send(2, mem.SGE(0, 3000))), verbs.WCSuccess)
	kit.Nothing(c, p.B.RCQ, kit.Silence)
	p.B.RecvInto(c, 7, mem.SGE(4096, 100))
	kit.Nothing(c, p.B.RCQ, kit.Silence)
	c.Status("send with a receive", p.A.Do(c, kit.Send(3, mem.SGE(64, 100))), verbs.WCSuccess)
	wc := kit.Good(c, p.B.RCQ, 1)[0]
	c.Equal("wr_id", wc.ID, uint64(7))
	copy(want[4096:], want[64:164])
	mem.Holds(c, "memory", want)
}

func lostPacket(c *spec.C) {
	e := kit.Open(c)
	a, b := e.FarPair(c, kit.Of(verbs.QPTUC))
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.O.Buffer(c, 64, kit.AllAccess, 0)
	want := mem.Fill(c)
	b.Recv(c, far, 1)
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.QPN, Count: 1, Action: verbs.WireDrop})
	c.Status("send that is lost", a.Do(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	c.Status("send behind it", a.Do(c, kit.Send(2, mem.SGE(32, 16))), verbs.WCSuccess)
	got := b.O.Wait(c, 1, kit.Patience)
	c.Equal("completions of the receiver", got, []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("bytes", far.Get(c, 0, 16), want[32:48])
	c.True("the rule met the first", kit.ClearRules(c)[0] >= 1, "it met none")
}

func badKey(c *spec.C) {
	p := kit.NewPair(c, kit.Of(verbs.QPTUC))
	mem := p.Buffer(c, 8192, kit.AllAccess)
	want := mem.Fill(c)
	for _, n := range []int{8, 3000} {
		wr := kit.Write(1, mem, 4096, mem.SGE(0, n))
		wr.RKey ^= 0x5a
		c.Status(fmt.Sprintf("%d bytes", n), p.A.Do(c, wr), verbs.WCSuccess)
	}
	kit.Nothing(c, p.B.RCQ, kit.Silence)
	mem.Holds(c, "memory", want)
	c.Observe("state of the responder", p.B.Queried(c).String())
}

func readRefused(c *spec.C) {
	p := kit.NewPair(c, kit.Of(verbs.QPTUC))
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.Fill(c)
	_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.Read(1, mem, 32, mem.SGE(0, 8))})
	if c.ErrnoIn("read", err, 0, syscall.EINVAL) == 0 {
		c.StatusIn("read: completion", kit.PollOne(c, p.A.SCQ), verbs.WCLocQPOpErr)
	}
	mem.Holds(c, "memory", want)
}

// sharedReceives asks for a UC QP with an SRQ, and where there are such uses one.
func sharedReceives(c *spec.C) {
	e := kit.Open(c)
	s, mem := e.CreateSRQ(c, 16, 1), e.Buffer(c, 64, kit.AllAccess)
	o := kit.Of(verbs.QPTUC)
	o.SRQ = s.SRQ
	if !e.RecordCreate(c, "create_qp of UC with an SRQ", o) {
		return
	}
	p := e.Pair(c, o)
	s.RecvInto(c, 7, mem.SGE(32, 16))
	want := mem.Fill(c)[:16]
	c.Status("send", p.A.Do(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	if got := kit.Record(c, "receive", p.B.RCQ, 1); len(got) == 1 && got[0].Status == verbs.WCSuccess {
		c.Equal("bytes", mem.Get(c, 32, 16), want)
	}
}
