package srq

import (
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// otherProcess sends to an SRQ of another process over two connections, from which that answers.
func otherProcess(c *spec.C) {
	const first, second = 13, 29 // bytes of the first two SGEs
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	s := other.CreateSRQ(c, 16, 3)
	o := kit.Default()
	var near [2]*kit.QP
	var far [2]*kit.OtherQP
	for i := range near {
		near[i] = e.CreateQP(c, o)
		far[i] = other.CreateQP(c, player.CreateQP, kit.Args{"srq": s.ID, "send_sge": 3})
		back := o
		back.PSN = o.NthPSN(0x1000)
		far[i].Connect(c, near[i].Peer(), back, verbs.QPSRTS)
		near[i].BringUp(c, far[i].Peer(back.PSN), verbs.QPSRTS)
	}
	mem, there := e.Buffer(c, 4096, kit.AllAccess), other.Buffer(c, 4096, kit.AllAccess, 0)
	data := mem.FillRandom(c)
	parts := func(k int) []kit.Part { // in an order that is not that of memory
		at := 256 * k
		return []kit.Part{there.Part(at+128, first), there.Part(at, second), there.Part(at+192, 64)}
	}
	contents := func(k int) []byte {
		var got []byte
		for _, p := range parts(k) {
			got = append(got, there.Get(c, p.Off, p.Len)...)
		}
		return got
	}
	there.Set(c, 0, make([]byte, 4096))
	lengths := []int{1, first, first + 1, first + second, first + second + 1, first + second + 64}
	for k := range lengths {
		s.Recv(c, uint64(100+k), parts(k)...)
	}
	for k, n := range lengths {
		i := k % 2
		wr := kit.Send(uint64(k), mem.SGE(k, n))
		wr.Opcode, wr.Imm = verbs.WRSendImm, uint32(0xabc000+k)
		c.Status("send", near[i].PostAndPoll(c, wr), verbs.WCSuccess)
		wc := other.Completions(c, 1)[0]
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("wr_id", wc.ID, uint64(100+k))
		c.True("connection", wc.QPN == far[i].QPN, "%#x, want %#x", wc.QPN, far[i].QPN)
		c.Equal("byte_len", wc.ByteLen, uint32(n))
		c.Equal("immediate", []uint32{uint32(wc.Flags & verbs.WCWithImm), wc.Imm}, []uint32{uint32(verbs.WCWithImm), wr.Imm})
		want := slices.Concat(data[k:k+n], make([]byte, first+second+64-n))
		c.Equal(fmt.Sprintf("%d bytes", n), contents(k), want)
	}
	for i := range far { // the longest message comes back, from three SGEs to one
		last := len(lengths) - 1
		near[i].RecvInto(c, 7, mem.SGE(2048, 512))
		far[i].Post(c, verbs.SendWR{ID: 8, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}, parts(last)...)
		c.Status("answer", other.Completions(c, 1)[0], verbs.WCSuccess)
		wc := kit.PollOne(c, near[i].RecvCQ)
		c.Equal("answer: byte_len", wc.ByteLen, uint32(lengths[last]))
		c.Equal("answer: bytes", mem.Get(c, 2048, lengths[last]), data[last:last+lengths[last]])
		c.Equal("completions beside it", len(kit.Drain(c, near[i].RecvCQ)), 0)
	}
	c.Equal("completions beside them there", len(other.CompletionsWithin(c, 1, kit.QuietPeriod)), 0)
}
