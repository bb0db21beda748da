package post

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func recvInResetAndInit(c *spec.C) {
	e := kit.Open(c)
	p := e.Unconnected(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	wr := verbs.RecvWR{ID: 7, SGEs: []verbs.SGE{mem.SGE(32, 16)}}
	p.B.RecvRefused(c, "post_recv in RESET", 0, []verbs.RecvWR{wr}, syscall.EINVAL)
	p.B.Step(c, p.A.Peer(), verbs.QPSInit)
	_, err := p.B.PostRecv(c.T, []verbs.RecvWR{wr})
	c.Errno("post_recv in INIT", err, 0)
	p.B.Step(c, p.A.Peer(), verbs.QPSRTR)
	p.A.Climb(c, p.B.Peer(), verbs.QPSRTS)
	want := mem.Fill(c)[:16]
	c.Status("send", p.A.Do(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	wc := kit.PollOne(c, p.B.RCQ)
	c.Status("receive", wc, verbs.WCSuccess)
	c.Equal("wr_id", wc.ID, uint64(7))
	c.Equal("bytes", mem.Get(c, 32, 16), want)
}

func sendInErr(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.To(c, verbs.QPSErr)
	for i := range uint64(3) {
		_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.Send(i, mem.SGE(0, 8))})
		c.Errno("post_send in ERR", err, 0)
		wc := kit.PollOne(c, p.A.SCQ)
		c.Status("flushed", wc, verbs.WCWRFlushErr)
		c.Equal("wr_id", wc.ID, i)
	}
}

func recvInErr(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.B.To(c, verbs.QPSErr)
	for i := range uint64(3) {
		_, err := p.B.PostRecv(c.T, []verbs.RecvWR{{ID: i, SGEs: []verbs.SGE{mem.SGE(32, 8)}}})
		c.Errno("post_recv in ERR", err, 0)
		wc := kit.PollOne(c, p.B.RCQ)
		c.Status("flushed", wc, verbs.WCWRFlushErr)
		c.Equal("wr_id", wc.ID, i)
	}
}

func wrIDBits(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	ids := []uint64{0, 1, 1<<32 - 1, 1 << 32, 1 << 63, 1<<64 - 1, c.Rand().Uint64()}
	for _, id := range ids {
		p.B.RecvInto(c, ^id, mem.SGE(32, 8))
		p.A.Post(c, kit.Send(id, mem.SGE(0, 8)))
	}
	for i, w := range kit.Good(c, p.A.SCQ, len(ids)) {
		c.Equal("wr_id of a send", w.ID, ids[i])
	}
	for i, w := range kit.Good(c, p.B.RCQ, len(ids)) {
		c.Equal("wr_id of a receive", w.ID, ^ids[i])
	}
}

func gatherList(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxSendSGE = 16
	p := kit.NewPair(c, o)
	src := p.Buffer(c, 16<<10, kit.AllAccess)
	dst := p.Buffer(c, 16<<10, kit.AllAccess)
	all := src.Fill(c)
	lengths := []int{1, 0, 7, 64, 3, 1000, 0, 5, 129, 2, 511, 1, 0, 333, 4, 77}
	c.True("granted", int(p.A.Caps().MaxSendSGE) >= len(lengths), "max_send_sge %d", p.A.Caps().MaxSendSGE)
	for n := 1; n <= len(lengths); n++ {
		var sges []verbs.SGE
		var want []byte
		for i, l := range lengths[:n] {
			at := 1000*i + c.Rand().Intn(8)
			if i == n-1 {
				l++ // the last piece changes from list to list
			}
			sges = append(sges, src.SGE(at, l))
			want = append(want, all[at:at+l]...)
		}
		dst.Clear(c, 0)
		p.B.RecvInto(c, uint64(n), dst.All())
		c.Status("send", p.A.Do(c, kit.Send(uint64(n), sges...)), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("byte_len", wc.ByteLen, uint32(len(want)))
		dst.Holds(c, fmt.Sprintf("%d pieces", n), want)
	}
}

func noSGE(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.Fill(c)
	p.B.RecvInto(c, 1, mem.SGE(0, 32))
	p.B.RecvInto(c, 2)
	for id := range uint64(2) {
		c.Status("send", p.A.Do(c, kit.Send(id)), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("wr_id", wc.ID, id+1)
		c.Equal("byte_len", wc.ByteLen, uint32(0))
	}
	mem.Holds(c, "memory", want)
}

// chainEqualsSingles compares what two pairs do with one program: in one call and in
// many.
func chainEqualsSingles(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 16<<10, kit.AllAccess)
	all := src.Fill(c)
	var first []string
	var firstBytes []byte
	for _, chained := range []bool{true, false} {
		p := e.Pair(c, kit.Default())
		dst := e.Buffer(c, 16<<10, kit.AllAccess)
		n := int(p.A.Caps().MaxSendWR)
		var wrs []verbs.SendWR
		for i := range n {
			wrs = append(wrs, kit.Write(uint64(i), dst, 200*i, src.SGE(200*i, 1+3*i)))
		}
		packets := kit.Tap(c, func() {
			if chained {
				p.A.Post(c, wrs...)
			} else {
				for _, wr := range wrs {
					p.A.Post(c, wr)
				}
			}
			for i, w := range kit.Good(c, p.A.SCQ, n) {
				if w.ID != uint64(i) {
					c.Equal("wr_id", w.ID, uint64(i))
				}
			}
		})
		got := kit.Transcript(packets, []uint32{p.B.QPN()}, []uint32{p.A.Opt.PSN})
		bytesNow := dst.Get(c, 0, dst.Len)
		if chained {
			first, firstBytes = got, bytesNow
			c.True("first bytes", bytes.Equal(bytesNow[:1], all[:1]), "got %#x, want %#x", bytesNow[:1], all[:1])
			continue
		}
		c.Equal("packets", got, first)
		c.Equal("memory", bytesNow, firstBytes)
	}
}
