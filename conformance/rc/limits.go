package rc

import (
	"bytes"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// aboveResponder has more READs outstanding than the responder keeps resources for. It may
// refuse the request that finds none, or serve all.
func aboveResponder(c *spec.C) {
	const asked, kept, n = 8, 1, 16 << 10
	e := kit.Open(c)
	o := kit.Default()
	o.RdAtomic = asked
	a := e.CreateQP(c, o)
	o.RdAtomic = kept
	b := e.CreateQP(c, o)
	p := &kit.Pair{Env: e, A: a, B: b}
	b.Opt.PSN = b.Opt.NthPSN(0x1000)
	p.Connect(c)
	src, dst := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, asked*n, kit.AllAccess)
	want := bytes.Repeat(src.FillRandom(c), asked)
	var wrs []verbs.SendWR
	for i := range asked {
		wrs = append(wrs, kit.Read(uint64(i), src, 0, dst.SGE(i*n, n)))
	}
	a.Post(c, wrs...)
	served := 0
	for _, wc := range kit.Poll(c, a.SendCQ, asked) {
		switch {
		case wc.Status == verbs.WCSuccess:
			served++
		case served == int(wc.ID):
			c.StatusIn("the READ that is refused", wc, verbs.WCRemInvReqErr, verbs.WCRemAccessErr, verbs.WCRemOpErr)
		default:
			c.Status("the READs behind it", wc, verbs.WCWRFlushErr)
		}
		c.True("order", served > int(wc.ID) || wc.Status != verbs.WCSuccess, "READ %d succeeds after one that failed", wc.ID)
	}
	c.True("READs served", served >= kept, "%d READs served, the responder keeps %d", served, kept)
	c.Observe("all served", served == asked)
	dst.ExpectContents(c, "what was served", want[:served*n])
}

// otherSource has a SEND of another connection arrive at a QP that is not its peer: nothing
// in a packet names the QP that it comes from, so address and PSN decide.
func otherSource(c *spec.C) {
	e := kit.Open(c)
	far := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	o := kit.Default()
	a, b := e.PairWith(c, far, o)
	o.PSN += 0x5000
	strangerA, strangerB := e.PairWith(c, far, o)
	mem, dst := e.Buffer(c, 128, kit.AllAccess), far.Buffer(c, 64, kit.AllAccess, 0)
	all := mem.FillRandom(c)
	b.Recv(c, dst, 1)
	strangerB.Recv(c, dst, 1)
	to := b.QPN
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: strangerB.QPN, Opcode: uint8(roce.RCSendOnly),
		Count: 1, Action: verbs.WireEdit, Edits: []verbs.ByteEdit{
			{Offset: 5, Value: uint8(to >> 16)}, {Offset: 6, Value: uint8(to >> 8)}, {Offset: 7, Value: uint8(to)}}})
	c.Status("the other connection's send", strangerA.PostAndPoll(c, kit.Send(2, mem.SGE(0, 64))), verbs.WCSuccess)
	c.Equal("its receive", far.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("packets redirected", kit.ClearRules(c)[0] > 1, true) // it was sent again
	c.Equal("receives of the connection", len(far.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	c.Observe("a packet from another QP with a PSN that is not due", "dropped")
	c.Status("the send of the connection", a.PostAndPoll(c, kit.Send(3, mem.SGE(64, 64))), verbs.WCSuccess)
	c.Equal("its receive", far.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("bytes", dst.Get(c, 0, 64), all[64:128])
}

// otherAddress has a SEND with the number of a QP and the PSN that is due arrive from another
// address than the QP's peer has: by IPv6, where the connection is by IPv4.
func otherAddress(c *spec.C) {
	e, far := kit.Open(c), kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	stranger, there := kit.OpenIPv6(c), kit.OpenOtherProcessIPv6(c, kit.RemoteHost(c))
	o := kit.Default()
	a, b := e.PairWith(c, far, o)
	o.RetryCnt = 2
	x := stranger.CreateQP(c, o)
	x.BringUp(c, kit.Peer{QPN: b.QPN, Addr: there.Addr, PSN: o.PSN}, verbs.QPSRTS)
	mem, own := e.Buffer(c, 64, kit.AllAccess), stranger.Buffer(c, 64, kit.AllAccess)
	dst := far.Buffer(c, 64, kit.AllAccess, 0)
	own.FillRandom(c)
	want := mem.FillRandom(c)
	b.Recv(c, dst, 1)
	c.Status("send from another address", x.PostAndPoll(c, kit.Send(1, own.SGE(0, 64))), verbs.WCRetryExcErr)
	c.Equal("receives of the connection", len(far.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
	c.Status("send of the connection", a.PostAndPoll(c, kit.Send(2, mem.SGE(0, 64))), verbs.WCSuccess)
	c.Equal("its receive", far.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	c.Equal("bytes", dst.Get(c, 0, 64), want)
}

// patience is how long the largest message may take: at 1 Gb/s.
const patience = 20 * time.Second

// largest sends a message of the port's largest size with one request, a sixteenth of it in a short
// run. Its pieces are the same memory again and again on both sides, so that this does not take as
// much of it.
func largest(c *spec.C) {
	const pieces = 16
	e := kit.Open(c)
	port, err := e.Ctx.QueryPort(c.T, int(e.Port))
	kit.Must(c, "query_port", err)
	n := int(port.MaxMsgSize) / pieces / c.Scale(16, 1)
	c.Observe("max_msg_sz", port.MaxMsgSize)
	c.Observe("bytes sent", n*pieces)
	c.True("max_msg_sz", port.MaxMsgSize <= 1<<31, "max_msg_sz is %d: the architecture ends at 2^31", port.MaxMsgSize)
	o := kit.Default()
	o.MTU, o.Cap.MaxSendSGE, o.Cap.MaxRecvSGE, o.Timeout = port.ActiveMTU, pieces, pieces, 18
	p := e.Pair(c, o)
	src, dst := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, n, kit.AllAccess)
	block := c.Rand().Bytes(1 << 16)
	for at := 0; at < n; at += len(block) {
		src.Set(c, at, block[:min(len(block), n-at)])
	}
	var from, to []verbs.SGE
	for range pieces {
		from, to = append(from, src.All()), append(to, dst.All())
	}
	p.B.RecvInto(c, 1, to...)
	p.A.Post(c, kit.Send(2, from...))
	sent := kit.PollWithin(c, p.A.SendCQ, 1, patience)
	c.Equal("completions of the send", len(sent), 1)
	c.Status("send", sent[0], verbs.WCSuccess)
	wc := kit.PollOne(c, p.B.RecvCQ)
	c.Status("receive", wc, verbs.WCSuccess)
	c.Equal("byte_len", wc.ByteLen, uint32(n*pieces))
	for at := 0; at < n; at += len(block) {
		if got := dst.Get(c, at, min(len(block), n-at)); !bytes.Equal(got, block[:len(got)]) {
			c.Failf("the receiver's memory differs in the %d bytes at %d", len(got), at)
		}
	}
}
