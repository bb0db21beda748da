package post

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// noOpcode is a work request opcode that no interface defines.
const noOpcode verbs.WROpcode = 0x7f

func badInList(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 256, kit.AllAccess)
	for _, n := range []int{0, 1, 3, 7} {
		var wrs []verbs.SendWR
		for i := range n {
			wrs = append(wrs, kit.Write(uint64(i), mem, 128+8*i, mem.SGE(0, 8)))
		}
		bad := kit.Write(99, mem, 128, mem.SGE(0, 8))
		bad.Opcode = noOpcode
		after := kit.Write(100, mem, 200, mem.SGE(0, 8))
		want := mem.Fill(c)
		for i := range n {
			copy(want[128+8*i:], want[:8])
		}
		p.A.Refused(c, fmt.Sprintf("%d good and a bad one", n), n, append(wrs, bad, after), syscall.EINVAL)
		for i, w := range kit.Good(c, p.A.SCQ, n) {
			c.Equal("wr_id", w.ID, uint64(i))
		}
		kit.Nothing(c, p.A.SCQ, kit.Silence)
		mem.Holds(c, "memory", want)
	}
}

func sendQueueFull(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxSendWR = 10
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	wr := kit.Write(0, mem, 32, mem.SGE(0, 8))
	n := int(p.A.Caps().MaxSendWR)
	c.True("granted", n >= 10, "max_send_wr %d", n)
	for i := range n {
		wr.ID = uint64(i)
		p.A.Post(c, wr)
	}
	p.A.Refused(c, "one more than max_send_wr", 0, []verbs.SendWR{wr}, syscall.ENOMEM)
	kit.Good(c, p.A.SCQ, 1)
	p.A.Refused(c, "two where one has completed", 1, []verbs.SendWR{wr, wr}, syscall.ENOMEM)
	kit.Good(c, p.A.SCQ, n)
}

func recvQueueFull(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxRecvWR = 10
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	n := int(p.B.Caps().MaxRecvWR)
	c.True("granted", n >= 10, "max_recv_wr %d", n)
	wr := verbs.RecvWR{SGEs: []verbs.SGE{mem.SGE(32, 8)}}
	for i := range n {
		wr.ID = uint64(i)
		p.B.Recv(c, wr)
	}
	p.B.RecvRefused(c, "one more than max_recv_wr", 0, []verbs.RecvWR{wr}, syscall.ENOMEM)
	p.A.Post(c, kit.Send(1, mem.SGE(0, 8)))
	kit.Good(c, p.B.RCQ, 1)
	p.B.RecvRefused(c, "two where one has completed", 1, []verbs.RecvWR{wr, wr}, syscall.ENOMEM)
	kit.Good(c, p.A.SCQ, 1)
}

func tooManySendSGEs(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	bad := kit.Write(2, mem, 2048, eights(mem, int(p.A.Caps().MaxSendSGE)+1)...)
	good := kit.Write(1, mem, 2048, eights(mem, int(p.A.Caps().MaxSendSGE))...)
	p.A.Refused(c, "one more than max_send_sge", 1, []verbs.SendWR{good, bad}, syscall.ENOMEM, syscall.EINVAL)
	c.Equal("the good one", kit.Good(c, p.A.SCQ, 1)[0].ID, uint64(1))
	kit.Nothing(c, p.A.SCQ, kit.Silence)
}

// eights names n pieces of 8 bytes.
func eights(mem *kit.Buffer, n int) []verbs.SGE {
	out := make([]verbs.SGE, n)
	for i := range out {
		out[i] = mem.SGE(8*i, 8)
	}
	return out
}

func tooManyRecvSGEs(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	good := verbs.RecvWR{ID: 1, SGEs: eights(mem, int(p.B.Caps().MaxRecvSGE))}
	bad := verbs.RecvWR{ID: 2, SGEs: eights(mem, int(p.B.Caps().MaxRecvSGE)+1)}
	p.B.RecvRefused(c, "one more than max_recv_sge", 1, []verbs.RecvWR{good, bad}, syscall.EINVAL)
	p.A.Post(c, kit.Send(3, mem.SGE(2048, 8)))
	c.Equal("the good one", kit.Good(c, p.B.RCQ, 1)[0].ID, uint64(1))
	kit.Good(c, p.A.SCQ, 1)
}

func inlineTooBig(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxInline = 64
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 8192, kit.AllAccess)
	most := int(p.A.Caps().MaxInline)
	c.True("granted", most >= 64, "max_inline_data %d", most)
	bad := kit.Write(1, mem, 4096, mem.SGE(0, most+1))
	bad.Flags |= verbs.SendInline
	p.A.Refused(c, "one byte more than max_inline_data", 0, []verbs.SendWR{bad}, syscall.ENOMEM, syscall.EINVAL)
	split := kit.Write(2, mem, 4096, mem.SGE(0, most), mem.SGE(most, 1))
	split.Flags |= verbs.SendInline
	p.A.Refused(c, "one byte more in two pieces", 0, []verbs.SendWR{split}, syscall.ENOMEM, syscall.EINVAL)
	kit.Nothing(c, p.A.SCQ, kit.Silence)
}

func inlineUpToMax(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxInline = 100
	p := kit.NewPair(c, o)
	dst := p.Buffer(c, 4096, kit.AllAccess)
	src := kit.Map(c, 4096) // never registered
	most := int(p.A.Caps().MaxInline)
	for _, n := range []int{0, 1, 4, 44, 45, 60, 61, most - 1, most} {
		want := c.Rand().Bytes(n)
		_, err := src.WriteAt(c.T, want, 0)
		kit.Must(c, "write memory", err)
		dst.Clear(c, 0)
		wr := kit.Write(uint64(n), dst, 0, verbs.SGE{Addr: src.Addr(), Length: uint32(n), LKey: 0xdeadbe00})
		wr.Flags |= verbs.SendInline
		p.A.Post(c, wr)
		_, err = src.WriteAt(c.T, bytes.Repeat([]byte{0xee}, n+1), 0)
		kit.Must(c, "reuse the buffer", err)
		kit.Good(c, p.A.SCQ, 1)
		dst.Holds(c, fmt.Sprintf("%d bytes as at posting", n), append(want, 0))
	}
}

func sendTooEarly(c *spec.C) {
	e := kit.Open(c)
	q := e.CreateQP(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, s := range []verbs.QPState{verbs.QPSReset, verbs.QPSInit, verbs.QPSRTR} {
		if s != verbs.QPSReset {
			q.Step(c, q.Peer(), s)
		}
		for _, wr := range []verbs.SendWR{kit.Send(1, mem.SGE(0, 8)), kit.Send(2)} {
			q.Refused(c, fmt.Sprintf("post_send in %v with %d SGEs", s, len(wr.SGEs)), 0, []verbs.SendWR{wr},
				syscall.EINVAL, syscall.ENOMEM)
		}
	}
	kit.Nothing(c, q.SCQ, kit.Silence)
}

func undefinedOpcode(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	for _, op := range []verbs.WROpcode{noOpcode, 0xff, 1 << 31} {
		wr := kit.Write(1, mem, 32, mem.SGE(0, 8))
		wr.Opcode = op
		p.A.Refused(c, fmt.Sprintf("opcode %#x", uint32(op)), 0, []verbs.SendWR{wr}, syscall.EINVAL)
	}
	kit.Nothing(c, p.A.SCQ, kit.Silence)
}

func opcodeOfOtherType(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Type = verbs.QPTUC
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.Fill(c)
	for _, wr := range []verbs.SendWR{
		kit.Read(1, mem, 32, mem.SGE(0, 8)),
		kit.FetchAdd(2, mem, 32, 1, mem.SGE(0, 8)),
		kit.CmpSwap(3, mem, 32, 0, 1, mem.SGE(0, 8)),
	} {
		p := e.Pair(c, o)
		step := fmt.Sprintf("opcode %d on UC", wr.Opcode)
		_, err := p.A.PostSend(c.T, []verbs.SendWR{wr})
		if c.ErrnoIn(step, err, 0, syscall.EINVAL, syscall.EOPNOTSUPP) == 0 {
			c.StatusIn(step+": completion", kit.PollOne(c, p.A.SCQ), verbs.WCLocQPOpErr)
		}
	}
	ah := e.AH(c, e.AHTo(e.Own))
	for _, wr := range []verbs.SendWR{
		kit.Write(1, mem, 32, mem.SGE(0, 8)),
		kit.Read(2, mem, 32, mem.SGE(0, 8)),
		kit.FetchAdd(3, mem, 32, 1, mem.SGE(0, 8)),
	} {
		q := e.NewUD(c)
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = ah, q.QPN(), kit.QKey
		step := fmt.Sprintf("opcode %d on UD", wr.Opcode)
		_, err := q.PostSend(c.T, []verbs.SendWR{wr})
		if c.ErrnoIn(step, err, 0, syscall.EINVAL, syscall.EOPNOTSUPP) == 0 {
			c.StatusIn(step+": completion", kit.PollOne(c, q.SCQ), verbs.WCLocQPOpErr)
		}
	}
	mem.Holds(c, "memory", want)
}
