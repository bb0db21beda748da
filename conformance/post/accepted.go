package post

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func recvInResetAndInit(c *spec.C) {
	e := kit.Open(c)
	p := e.UnconnectedPair(c, kit.Default())
	mem := e.Buffer(c, 64, kit.AllAccess)
	wr := verbs.RecvWR{ID: 7, SGEs: []verbs.SGE{mem.SGE(32, 16)}}
	p.B.ExpectRecvRefused(c, "post_recv in RESET", 0, []verbs.RecvWR{wr}, syscall.EINVAL)
	p.B.StepTo(c, p.A.Peer(), verbs.QPSInit)
	_, err := p.B.PostRecv(c.T, []verbs.RecvWR{wr})
	c.Errno("post_recv in INIT", err, 0)
	p.B.StepTo(c, p.A.Peer(), verbs.QPSRTR)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
	want := mem.FillRandom(c)[:16]
	c.Status("send", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 16))), verbs.WCSuccess)
	wc := kit.PollOne(c, p.B.RecvCQ)
	c.Status("receive", wc, verbs.WCSuccess)
	c.Equal("wr_id", wc.ID, uint64(7))
	c.Equal("bytes", mem.Get(c, 32, 16), want)
}

func sendInErr(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.ModifyState(c, verbs.QPSErr)
	for i := range uint64(3) {
		_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.Send(i, mem.SGE(0, 8))})
		c.Errno("post_send in ERR", err, 0)
		wc := kit.PollOne(c, p.A.SendCQ)
		c.Status("flushed", wc, verbs.WCWRFlushErr)
		c.Equal("wr_id", wc.ID, i)
	}
}

func recvInErr(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.B.ModifyState(c, verbs.QPSErr)
	for i := range uint64(3) {
		_, err := p.B.PostRecv(c.T, []verbs.RecvWR{{ID: i, SGEs: []verbs.SGE{mem.SGE(32, 8)}}})
		c.Errno("post_recv in ERR", err, 0)
		wcs, all := kit.AwaitCompletions(c, "completion of a receive posted in ERR", p.B.RecvCQ, 1)
		if !all {
			return
		}
		c.Status("flushed", wcs[0], verbs.WCWRFlushErr)
		c.Equal("wr_id", wcs[0].ID, i)
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
	for i, w := range kit.ExpectSuccess(c, p.A.SendCQ, len(ids)) {
		c.Equal("wr_id of a send", w.ID, ids[i])
	}
	for i, w := range kit.ExpectSuccess(c, p.B.RecvCQ, len(ids)) {
		c.Equal("wr_id of a receive", w.ID, ^ids[i])
	}
}

func gatherList(c *spec.C) {
	o := kit.Default()
	o.Cap.MaxSendSGE = 16
	p := kit.NewPair(c, o)
	src := p.Buffer(c, 16<<10, kit.AllAccess)
	dst := p.Buffer(c, 16<<10, kit.AllAccess)
	all := src.FillRandom(c)
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
		dst.FillByte(c, 0)
		p.B.RecvInto(c, uint64(n), dst.All())
		c.Status("send", p.A.PostAndPoll(c, kit.Send(uint64(n), sges...)), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RecvCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("byte_len", wc.ByteLen, uint32(len(want)))
		dst.ExpectContents(c, fmt.Sprintf("%d pieces", n), want)
	}
}

func noSGE(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	p.B.RecvInto(c, 1, mem.SGE(0, 32))
	p.B.RecvInto(c, 2)
	for id := range uint64(2) {
		c.Status("send", p.A.PostAndPoll(c, kit.Send(id)), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RecvCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("wr_id", wc.ID, id+1)
		c.Equal("byte_len", wc.ByteLen, uint32(0))
	}
	mem.ExpectContents(c, "memory", want)
}

// chainEqualsSingles compares what two pairs do with one program: in one call and in
// many.
func chainEqualsSingles(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	src := e.Buffer(c, 16<<10, kit.AllAccess)
	all := src.FillRandom(c)
	var packets [][]string
	for _, chained := range []bool{true, false} {
		a, b := e.PairWith(c, other, kit.WithLongTimeout(c, kit.Default()))
		dst := other.Buffer(c, 16<<10, kit.AllAccess, 0)
		c.Observe("max_send_wr granted", a.Caps().MaxSendWR)
		n := min(int(a.Caps().MaxSendWR), (16<<10)/200-2) // what the buffers hold
		want := make([]byte, 16<<10)
		var wrs []verbs.SendWR
		for i := range n {
			wrs = append(wrs, dst.WriteTo(uint64(i), 200*i, src.SGE(200*i, 1+3*i)))
			copy(want[200*i:], all[200*i:200*i+1+3*i])
		}
		tap := kit.Tap(c, func() {
			if chained {
				a.Post(c, wrs...)
			} else {
				for _, wr := range wrs {
					a.Post(c, wr)
				}
			}
			kit.ExpectInOrder(c, a.SendCQ, n)
		})
		packets = append(packets, kit.Transcript(tap, []uint32{b.QPN}, []uint32{a.Opt.PSN}))
		c.Equal(fmt.Sprintf("memory, chained %t", chained), dst.Get(c, 0, 16<<10), want)
	}
	c.True("packets", len(packets[0]) > 0, "the tap saw none")
	c.Equal("packets", packets[1], packets[0])
}

// emptySGE has entries of no bytes with keys of no region, alone and among others.
func emptySGE(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	gone := e.Buffer(c, 64, kit.AllAccess)
	key := gone.MR.LKey()
	gone.Dereg(c)
	want := mem.FillRandom(c)
	for _, k := range []struct {
		name string
		lkey uint32
	}{{"0", 0}, {"of a region that is gone", key}, {"of nothing", 0xfffffff0}} {
		none := verbs.SGE{Addr: mem.Addr(0), LKey: k.lkey}
		for _, l := range []struct {
			name string
			list []verbs.SGE
			n    int
		}{{"alone", []verbs.SGE{none}, 0}, {"among others", []verbs.SGE{mem.SGE(0, 8), none, mem.SGE(8, 8)}, 16}} {
			p := e.Pair(c, kit.Default())
			p.B.RecvInto(c, 1, mem.SGE(32, 32))
			step := fmt.Sprintf("lkey %s, %s", k.name, l.name)
			_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.Send(2, l.list...)})
			if kit.RecordErrno(c, step, err) != 0 {
				continue
			}
			if wc := kit.PollOne(c, p.A.SendCQ); wc.Status != verbs.WCSuccess {
				c.Completion(step, wc)
				continue
			}
			wc := kit.ExpectSuccess(c, p.B.RecvCQ, 1)[0]
			c.Equal(step+": byte_len", wc.ByteLen, uint32(l.n))
			copy(want[32:], want[:l.n])
			mem.ExpectContents(c, step+": memory", want)
		}
	}
}
