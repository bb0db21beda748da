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

// spoilers make a good request one that posting must refuse.
func spoilers(p *kit.Pair, mem *kit.Buffer) map[string]func(*verbs.SendWR) {
	return map[string]func(*verbs.SendWR){
		"opcode":       func(w *verbs.SendWR) { w.Opcode = noOpcode },
		"list of SGEs": func(w *verbs.SendWR) { w.SGEs = eights(mem, int(p.A.Caps().MaxSendSGE)+1) },
	}
}

func badInList(c *spec.C) {
	e := kit.Open(c)
	for _, what := range []string{"opcode", "list of SGEs"} {
		set := []syscall.Errno{syscall.EINVAL}
		if what != "opcode" {
			set = append(set, syscall.ENOMEM) // as POST-004
		}
		for _, n := range []int{0, 1, 3, 7} {
			p, mem := e.Pair(c, kit.Default()), e.Buffer(c, 1024, kit.AllAccess) // what a device posts that should refuse may land late
			want := mem.FillRandom(c)
			var wrs []verbs.SendWR
			for i := range n {
				wrs = append(wrs, kit.Write(uint64(i), mem, 512+8*i, mem.SGE(0, 8)))
				copy(want[512+8*i:], want[:8])
			}
			bad, after := kit.Write(99, mem, 512, mem.SGE(0, 8)), kit.Write(100, mem, 800, mem.SGE(0, 8))
			spoilers(p, mem)[what](&bad)
			if !p.A.ExpectSendRefused(c, fmt.Sprintf("%d good and one with a bad %s", n, what), n, append(wrs, bad, after), set...) {
				continue
			}
			for i, w := range kit.ExpectSuccess(c, p.A.SendCQ, n) {
				c.Equal("wr_id", w.ID, uint64(i))
			}
			kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
			mem.ExpectContents(c, "memory", want)
		}
	}
}

// sendQueueFull fills a queue of which nothing can complete, since the other end is silent,
// and one of which all has completed and nothing has been polled.
func sendQueueFull(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxSendWR = 10
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	wr := kit.Write(0, mem, 32, mem.SGE(0, 8))
	fill := func(q *kit.QP) int {
		n := int(q.Caps().MaxSendWR)
		c.True("granted", n >= 10, "max_send_wr %d", n)
		for i := range n {
			wr.ID = uint64(i)
			q.Post(c, wr)
		}
		return n
	}
	silent := e.UnconnectedPair(c, o)
	silent.A.BringUp(c, silent.B.Peer(), verbs.QPSRTS)
	fill(silent.A)
	silent.A.ExpectSendRefused(c, "one more while none has completed", 0, []verbs.SendWR{wr}, syscall.ENOMEM)

	p := e.Pair(c, o)
	n := fill(p.A)
	c.T.Sleep(kit.QuietPeriod)
	if !p.A.ExpectSendRefused(c, "one more while none has been polled", 0, []verbs.SendWR{wr}, syscall.ENOMEM) {
		return
	}
	kit.ExpectSuccess(c, p.A.SendCQ, 1)
	p.A.ExpectSendRefused(c, "two where one has been polled", 1, []verbs.SendWR{wr, wr}, syscall.ENOMEM)
	kit.ExpectSuccess(c, p.A.SendCQ, n)
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
	if !p.B.ExpectRecvRefused(c, "one more than max_recv_wr", 0, []verbs.RecvWR{wr}, syscall.ENOMEM) {
		return
	}
	p.A.Post(c, kit.Send(1, mem.SGE(0, 8)))
	kit.ExpectSuccess(c, p.B.RecvCQ, 1)
	p.B.ExpectRecvRefused(c, "two where one has completed", 1, []verbs.RecvWR{wr, wr}, syscall.ENOMEM)
	kit.ExpectSuccess(c, p.A.SendCQ, 1)
}

func tooManySendSGEs(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	bad := kit.Write(2, mem, 2048, eights(mem, int(p.A.Caps().MaxSendSGE)+1)...)
	good := kit.Write(1, mem, 2048, eights(mem, int(p.A.Caps().MaxSendSGE))...)
	p.A.ExpectSendRefused(c, "one more than max_send_sge", 1, []verbs.SendWR{good, bad}, syscall.ENOMEM, syscall.EINVAL)
	c.Equal("the good one", kit.ExpectSuccess(c, p.A.SendCQ, 1)[0].ID, uint64(1))
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
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
	p.B.ExpectRecvRefused(c, "one more than max_recv_sge", 1, []verbs.RecvWR{good, bad}, syscall.EINVAL)
	p.A.Post(c, kit.Send(3, mem.SGE(2048, 8)))
	c.Equal("the good one", kit.ExpectSuccess(c, p.B.RecvCQ, 1)[0].ID, uint64(1))
	kit.ExpectSuccess(c, p.A.SendCQ, 1)
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
	p.A.ExpectSendRefused(c, "one byte more than max_inline_data", 0, []verbs.SendWR{bad}, syscall.ENOMEM, syscall.EINVAL)
	split := kit.Write(2, mem, 4096, mem.SGE(0, most), mem.SGE(most, 1))
	split.Flags |= verbs.SendInline
	p.A.ExpectSendRefused(c, "one byte more in two pieces", 0, []verbs.SendWR{split}, syscall.ENOMEM, syscall.EINVAL)
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
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
		dst.FillByte(c, 0)
		wr := kit.Write(uint64(n), dst, 0, verbs.SGE{Addr: src.Addr(), Length: uint32(n), LKey: 0xdeadbe00})
		wr.Flags |= verbs.SendInline
		p.A.Post(c, wr)
		_, err = src.WriteAt(c.T, bytes.Repeat([]byte{0xee}, n+1), 0)
		kit.Must(c, "reuse the buffer", err)
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
		dst.ExpectContents(c, fmt.Sprintf("%d bytes as at posting", n), append(want, 0))
	}
}

func sendTooEarly(c *spec.C) {
	e := kit.Open(c)
	q := e.CreateQP(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, s := range []verbs.QPState{verbs.QPSReset, verbs.QPSInit, verbs.QPSRTR} {
		if s != verbs.QPSReset {
			q.StepTo(c, q.Peer(), s)
		}
		for _, wr := range []verbs.SendWR{kit.Send(1, mem.SGE(0, 8)), kit.Send(2)} {
			q.ExpectSendRefused(c, fmt.Sprintf("post_send in %v with %d SGEs", s, len(wr.SGEs)), 0, []verbs.SendWR{wr},
				syscall.EINVAL, syscall.ENOMEM)
		}
	}
	kit.ExpectNoCompletion(c, q.SendCQ, kit.QuietPeriod)
}

func undefinedOpcode(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	for _, op := range []verbs.WROpcode{noOpcode, 0xff} {
		wr := kit.Write(1, mem, 32, mem.SGE(0, 8))
		wr.Opcode = op
		if !p.A.ExpectSendRefused(c, fmt.Sprintf("opcode %#x", uint32(op)), 0, []verbs.SendWR{wr}, syscall.EINVAL) {
			return // what a device makes of it is without limits
		}
	}
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
}

func opcodeOfOtherType(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Type = verbs.QPTUC
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	for _, wr := range []verbs.SendWR{
		kit.Read(1, mem, 32, mem.SGE(0, 8)),
		kit.FetchAdd(2, mem, 32, 1, mem.SGE(0, 8)),
		kit.CmpSwap(3, mem, 32, 0, 1, mem.SGE(0, 8)),
	} {
		p := e.Pair(c, o)
		step := fmt.Sprintf("opcode %d on UC", wr.Opcode)
		_, err := p.A.PostSend(c.T, []verbs.SendWR{wr})
		if c.ErrnoIn(step, err, 0, syscall.EINVAL, syscall.EOPNOTSUPP) == 0 {
			c.StatusIn(step+": completion", kit.PollOne(c, p.A.SendCQ), verbs.WCLocQPOpErr)
		}
	}
	ah := e.CreateAH(c, e.AHTo(e.LocalAddr))
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
			c.StatusIn(step+": completion", kit.PollOne(c, q.SendCQ), verbs.WCLocQPOpErr)
		}
	}
	mem.ExpectContents(c, "memory", want)
}
