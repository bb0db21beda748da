package xrc

import (
	"bytes"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// three is a pair and three SRQs of its domain, each with a CQ of its own.
func three(c *spec.C, o kit.Options) (*kit.XRCPair, [3]*kit.XRCSRQ) {
	p := kit.NewXRCPair(c, o)
	var s [3]*kit.XRCSRQ
	for i := range s {
		s[i] = p.CreateXRCSRQ(c, p.Domain, 32)
	}
	return p, s
}

func threeSRQs(c *spec.C) {
	const each, size = 8, 64
	p, srqs := three(c, kit.Default())
	mem := p.Buffer(c, size*(1+3*each), kit.AllAccess)
	for n, s := range srqs {
		for i := range each {
			s.RecvInto(c, uint64(i), mem.SGE(size*(1+n*each+i), size))
		}
	}
	var taken [3]int
	for range 3 * each {
		n := c.Rand().Intn(3)
		for taken[n] == each {
			n = (n + 1) % 3
		}
		word := c.Rand().Uint64()
		mem.SetWord(c, 0, word)
		c.Status("send", p.A.PostAndPoll(c, srqs[n].To(kit.Send(1, mem.SGE(0, 8)))), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, srqs[n].CQ, 1)[0]
		c.Equal("wr_id", wc.ID, uint64(taken[n]))
		c.Equal("word in the SRQ that was named", mem.Word(c, size*(1+n*each+taken[n])) == word, true)
		taken[n]++
	}
	for _, s := range srqs {
		kit.ExpectNoCompletion(c, s.CQ, time.Millisecond)
	}
}

// refuses sends a message that the target must not take, and returns the status.
func refuses(c *spec.C, p *kit.XRCPair, step string, wr verbs.SendWR) {
	c.StatusIn(step, p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr, verbs.WCRemInvReqErr)
	c.Equal(step+": state of the target", p.B.QueryState(c).String(), verbs.QPSErr.String())
	ev := p.EventsWithin(c, kit.QuietPeriod, verbs.EventQPAccessErr, verbs.EventQPReqErr)
	c.Equal(step+": events", len(ev), 1)
	if len(ev) == 1 {
		c.Observe(step+": event", ev[0].Type.String())
	}
}

func unknownSRQ(c *spec.C) {
	e := kit.Open(c)
	d := e.OpenXRCD(c, kit.NoFile, 0)
	mem := e.Buffer(c, 64, kit.AllAccess)
	good := e.CreateXRCSRQ(c, d, 8)
	gone := e.CreateXRCSRQ(c, d, 8)
	basic := e.CreateSRQ(c, 8, 1)
	basicN, err := basic.Num(c.T)
	gone.DestroyNow(c)
	for _, x := range []struct {
		what string
		n    uint32
	}{{"a number that none has", 0xffffff}, {"an SRQ that was destroyed", gone.N}, {"an SRQ that is not of XRC", basicN}} {
		if x.n == basicN && err != nil {
			continue // the library does not tell it
		}
		p := e.XRCPair(c, d, kit.Default())
		wr := kit.Send(1, mem.SGE(0, 8))
		wr.XRCRemoteSRQN = x.n
		refuses(c, p, "send to "+x.what, wr)
	}
	p := e.XRCPair(c, d, kit.Default())
	good.RecvInto(c, 1, mem.SGE(32, 8))
	c.Status("send by another target", p.A.PostAndPoll(c, good.To(kit.Send(1, mem.SGE(0, 8)))), verbs.WCSuccess)
	kit.ExpectSuccess(c, good.CQ, 1)
}

func foreignSRQ(c *spec.C) {
	e := kit.Open(c)
	d, other := e.OpenXRCD(c, kit.NoFile, 0), e.OpenXRCD(c, kit.NoFile, 0)
	mem := e.Buffer(c, 64, kit.AllAccess)
	s := e.CreateXRCSRQ(c, other, 8)
	s.RecvInto(c, 1, mem.SGE(32, 8))
	mem.SetWord(c, 0, 0x1122334455667788)
	for _, wr := range []verbs.SendWR{s.To(kit.Send(1, mem.SGE(0, 8))), s.To(kit.Write(2, mem, 40, mem.SGE(0, 8)))} {
		refuses(c, e.XRCPair(c, d, kit.Default()), "a request that names an SRQ of another domain", wr)
	}
	kit.ExpectNoCompletion(c, s.CQ, time.Millisecond)
	c.Equal("memory is as it was", mem.Word(c, 32) == 0 && mem.Word(c, 40) == 0, true)
}

func protection(c *spec.C) {
	e := kit.Open(c)
	d := e.OpenXRCD(c, kit.NoFile, 0)
	pd := e.AllocPD(c)
	cq := e.CreateCQ(c, 255)
	mine, theirs := e.CreateXRCSRQOn(c, d, e.PD, cq, 8), e.CreateXRCSRQOn(c, d, pd, cq, 8)
	from := e.Buffer(c, 64, kit.AllAccess)
	to := e.BufferOn(c, pd, 64, kit.AllAccess)
	requests := []struct {
		what string
		wr   verbs.SendWR
	}{
		{"write", kit.Write(1, to, 0, from.SGE(0, 8))}, {"read", kit.Read(1, to, 0, from.SGE(0, 8))},
	}
	if c.Has("atomic") {
		requests = append(requests, struct {
			what string
			wr   verbs.SendWR
		}{"fetch-and-add", kit.FetchAdd(1, to, 0, 1, from.SGE(0, 8))})
	}
	for _, x := range requests {
		p := e.XRCPair(c, d, kit.Default())
		c.Status(x.what+" by the PD of the SRQ", p.A.PostAndPoll(c, theirs.To(x.wr)), verbs.WCSuccess)
		c.Status(x.what+" by another PD", p.A.PostAndPoll(c, mine.To(x.wr)), verbs.WCRemAccessErr)
	}
	p := e.XRCPair(c, d, kit.Default())
	theirs.RecvInto(c, 1, to.SGE(0, 8))
	c.Status("send by the PD of the SRQ", p.A.PostAndPoll(c, theirs.To(kit.Send(1, from.SGE(0, 8)))), verbs.WCSuccess)
	kit.ExpectSuccess(c, cq, 1)
	mine.RecvInto(c, 2, to.SGE(0, 8))
	c.Status("send to a receive of another PD", p.A.PostAndPoll(c, mine.To(kit.Send(2, from.SGE(0, 8)))), verbs.WCRemOpErr)
	c.Status("receive", kit.PollOne(c, cq), verbs.WCLocProtErr)
}

func completions(c *spec.C) {
	p, srqs := three(c, kit.Default())
	s := srqs[1]
	mem := p.Buffer(c, 128, kit.AllAccess)
	s.RecvInto(c, 7, mem.SGE(64, 64))
	s.RecvInto(c, 8)
	wr := s.To(kit.Send(1, mem.SGE(0, 48)))
	wr.Opcode, wr.Imm = verbs.WRSendImm, 0xfeedbeef
	c.Status("send", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	wr = s.To(kit.Write(2, mem, 64, mem.SGE(0, 40)))
	wr.Opcode, wr.Imm = verbs.WRRDMAWriteImm, 5
	c.Status("write", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	for i, want := range []struct {
		id  uint64
		op  verbs.WCOpcode
		n   uint32
		imm uint32
	}{{7, verbs.WCOpRecv, 48, 0xfeedbeef}, {8, verbs.WCOpRecvRDMAImm, 40, 5}} {
		wc := kit.ExpectSuccess(c, s.CQ, 1)[0]
		c.Equal("wr_id", wc.ID, want.id)
		c.Equal("opcode", wc.Opcode, want.op)
		c.Equal("byte_len", wc.ByteLen, want.n)
		c.Equal("imm_data", wc.Imm, want.imm)
		c.Equal("qp_num is the target's", wc.QPN == p.B.QPN(), true)
		if i == 0 {
			c.Observe("src_qp is the sender's", wc.SrcQP == p.A.QPN())
		}
	}
	for _, x := range []verbs.CQ{srqs[0].CQ, srqs[2].CQ, p.A.RecvCQ} {
		kit.ExpectNoCompletion(c, x, time.Millisecond)
	}
}

func paged(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	from, to := p.Buffer(c, 2*kit.Page, kit.AllAccess), p.Paged(c, 4*kit.Page, kit.AllAccess)
	want := from.FillRandom(c)
	for i := range 2 {
		s.RecvInto(c, uint64(i), to.SGE(2*kit.Page*i, 2*kit.Page))
	}
	for i := range 2 {
		c.Status("send to pages that are not there", p.A.PostAndPoll(c, s.To(kit.Send(uint64(i), from.All()))), verbs.WCSuccess)
		c.Equal("wr_id of the receive", kit.ExpectSuccess(c, s.CQ, 1)[0].ID, uint64(i))
		c.True("contents", bytes.Equal(to.Get(c, 2*kit.Page*i, 2*kit.Page), want), "other bytes")
	}
}

// pagedOperations has neither end touch what the device reads and writes for each operation before
// it does.
func pagedOperations(c *spec.C) {
	const size = 3 * kit.Page
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	pinned, kept := p.Buffer(c, size, kit.AllAccess), p.Buffer(c, size, kit.AllAccess)
	want, zeros := bytes.Clone(pinned.FillRandom(c)), make([]byte, size)
	kept.FillByte(c, 1)
	s.RecvInto(c, 1, kept.All())
	c.Status("send of untouched memory", p.A.PostAndPoll(c, s.To(kit.Send(1, p.Paged(c, size, kit.AllAccess).All()))), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, s.CQ), verbs.WCSuccess)
	c.True("zeros", bytes.Equal(kept.Get(c, 0, size), zeros), "other bytes")
	to := p.Paged(c, size, kit.AllAccess)
	c.Status("write to untouched memory", p.A.PostAndPoll(c, s.To(kit.Write(2, to, 0, pinned.All()))), verbs.WCSuccess)
	resident, err := to.Pages(c).Resident(c.T, 0, size)
	c.NoErr("mincore", err)
	c.True("pages in memory", !slices.Contains(resident, false), "a page is missing")
	c.True("contents", bytes.Equal(to.Get(c, 0, size), want), "other bytes")
	kept.FillByte(c, 1)
	c.Status("read of untouched memory", p.A.PostAndPoll(c, s.To(kit.Read(3, p.Paged(c, size, kit.AllAccess), 0, kept.All()))), verbs.WCSuccess)
	c.True("zeros", bytes.Equal(kept.Get(c, 0, size), zeros), "other bytes")
	into := p.Paged(c, size, kit.AllAccess)
	c.Status("read into untouched memory", p.A.PostAndPoll(c, s.To(kit.Read(4, pinned, 0, into.All()))), verbs.WCSuccess)
	c.True("contents", bytes.Equal(into.Get(c, 0, size), want), "other bytes")
}

func pagedAtomics(c *spec.C) {
	const at = 2*kit.Page + 8
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	to, from := p.Paged(c, 4*kit.Page, kit.AllAccess), p.Paged(c, 4*kit.Page, kit.AllAccess)
	c.Status("fetch and add", p.A.PostAndPoll(c, s.To(kit.FetchAdd(1, to, at, 5, from.SGE(0, 8)))), verbs.WCSuccess)
	c.Equal("what was there", from.Word(c, 0), uint64(0))
	c.Status("compare and swap", p.A.PostAndPoll(c, s.To(kit.CmpSwap(2, to, at, 5, 9, from.SGE(kit.Page, 8)))), verbs.WCSuccess)
	c.Equal("what was there then", from.Word(c, kit.Page), uint64(5))
	c.Equal("what is there", to.Word(c, at), uint64(9))
}

// emptySRQ has the target answer RNR until a receive comes, and the sender give up where it may not
// wait.
func emptySRQ(c *spec.C) {
	o := kit.Default()
	o.RNRRetry, o.MinRNRTimer = 7, 1
	p, srqs := three(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	srqs[0].RecvInto(c, 9, mem.SGE(32, 8)) // another SRQ's receive helps nobody
	p.A.Post(c, srqs[1].To(kit.Send(1, mem.SGE(0, 8))))
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	srqs[1].RecvInto(c, 2, mem.SGE(40, 8))
	c.Status("send", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	c.Equal("wr_id of the receive", kit.ExpectSuccess(c, srqs[1].CQ, 1)[0].ID, uint64(2))
	kit.ExpectNoCompletion(c, srqs[0].CQ, time.Millisecond)
	o.RNRRetry = 1
	p = p.XRCPair(c, p.Domain, o)
	c.Status("send with one RNR retry", p.A.PostAndPoll(c, srqs[1].To(kit.Send(3, mem.SGE(0, 8)))), verbs.WCRNRRetryExcErr)
}

func atomics(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	mem := p.Buffer(c, 64, kit.AllAccess)
	word := c.Rand().Uint64()
	mem.SetWord(c, 0, word)
	c.Status("fetch-and-add", p.A.PostAndPoll(c, s.To(kit.FetchAdd(1, mem, 0, 5, mem.SGE(16, 8)))), verbs.WCSuccess)
	c.Equal("value before", mem.Word(c, 16) == word, true)
	c.Equal("value after", mem.Word(c, 0) == word+5, true)
	c.Status("compare-and-swap", p.A.PostAndPoll(c, s.To(kit.CmpSwap(2, mem, 0, word+5, 77, mem.SGE(16, 8)))), verbs.WCSuccess)
	c.Equal("value after", mem.Word(c, 0), uint64(77))
	c.Status("compare-and-swap of another value", p.A.PostAndPoll(c, s.To(kit.CmpSwap(3, mem, 0, 78, 1, mem.SGE(16, 8)))), verbs.WCSuccess)
	c.Equal("value after", mem.Word(c, 0), uint64(77))
	kit.ExpectNoCompletion(c, s.CQ, time.Millisecond)
}

// operations posts each operation of a reliable connection, of one packet and of several, and
// checks what it did.
func operations(c *spec.C, p *kit.XRCPair, s *kit.XRCSRQ, post func(w verbs.SendWR)) {
	const size = 5000
	from, to := p.Buffer(c, size, kit.AllAccess), p.Buffer(c, size, kit.AllAccess)
	for i, n := range []int{0, 8, 1024, 1025, size} {
		want := from.FillRandom(c)
		to.FillByte(c, 0)
		post(s.To(kit.Write(uint64(i), to, 0, from.SGE(0, n))))
		c.True("write", bytes.Equal(to.Get(c, 0, n), want[:n]), "%d bytes: others arrived", n)
		to.FillByte(c, 0)
		s.RecvInto(c, uint64(i), to.SGE(0, n))
		post(s.To(kit.Send(uint64(i), from.SGE(0, n))))
		c.Equal("byte_len", kit.ExpectSuccess(c, s.CQ, 1)[0].ByteLen, uint32(n))
		c.True("send", bytes.Equal(to.Get(c, 0, n), want[:n]), "%d bytes: others arrived", n)
		want = to.FillRandom(c)
		post(s.To(kit.Read(uint64(i), to, 0, from.SGE(0, n))))
		c.True("read", bytes.Equal(from.Get(c, 0, n), want[:n]), "%d bytes: others arrived", n)
	}
}

func everyOperation(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	operations(c, p, s, func(w verbs.SendWR) { c.Status("request", p.A.PostAndPoll(c, w), verbs.WCSuccess) })
}

func builders(c *spec.C) {
	o := kit.Default()
	o.SendOps = verbs.QPExSend | verbs.QPExSendImm | verbs.QPExRDMAWrite | verbs.QPExRDMAWriteImm | verbs.QPExRDMARead
	p := kit.NewXRCPair(c, o)
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	operations(c, p, s, func(w verbs.SendWR) {
		p.A.PostEx(c, w)
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
	})
}

// headers looks at every request packet, those that are sent again included.
func headers(c *spec.C) {
	p := kit.NewXRCPair(c, kit.WithLongTimeout(c, kit.Default()))
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	from, to := p.Buffer(c, 4096, kit.AllAccess), p.Buffer(c, 4096, kit.AllAccess)
	s.RecvInto(c, 1, to.All())
	requests := []verbs.SendWR{s.To(kit.Send(1, from.All())), s.To(kit.Write(2, to, 0, from.All())), s.To(kit.Read(3, to, 0, from.All()))}
	if c.Has("atomic") {
		requests = append(requests, s.To(kit.FetchAdd(4, to, 0, 1, from.SGE(0, 8))))
	}
	for _, w := range requests {
		drop := kit.DropTo(p.B.QPN())
		drop.Count = 1
		kit.Inject(c, drop)
		packets := kit.Tap(c, func() { c.Status("request", p.A.PostAndPoll(c, w), verbs.WCSuccess) })
		kit.ClearRules(c)
		for i := range packets {
			q := &packets[i]
			info := q.Info()
			c.Equal("transport", q.BTH().Opcode().Transport().String(), roce.XRC.String())
			switch has := info.Headers.Has(roce.HasXRCETH); {
			case q.DestQPN() == p.B.QPN():
				c.Equal("request with XRCETH", has, true)
				c.Equal("SRQ number of a request", has && q.XRCETH().SRQN() == s.N, true)
			default:
				c.Equal("response with XRCETH", has, false)
			}
		}
	}
}

// srqDestroyed destroys an SRQ while messages for it are on their way.
func srqDestroyed(c *spec.C) {
	o := kit.Default()
	o.RNRRetry = 7
	p, srqs := three(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.A.Post(c, srqs[0].To(kit.Send(1, mem.SGE(0, 8)))) // waits for a receive
	c.T.Sleep(time.Millisecond)
	srqs[0].DestroyNow(c)
	c.StatusIn("send to an SRQ that goes", kit.PollOne(c, p.A.SendCQ), verbs.WCRemAccessErr, verbs.WCRemInvReqErr)
	p = p.XRCPair(c, p.Domain, o)
	srqs[1].RecvInto(c, 1, mem.SGE(32, 8))
	c.Status("send to another", p.A.PostAndPoll(c, srqs[1].To(kit.Send(2, mem.SGE(0, 8)))), verbs.WCSuccess)
	kit.ExpectSuccess(c, srqs[1].CQ, 1)
}

// manyTargets has several connections deliver into one SRQ, which they find empty.
func manyTargets(c *spec.C) {
	const n, each = 4, 8
	e := kit.Open(c)
	d := e.OpenXRCD(c, kit.NoFile, 0)
	s := e.CreateXRCSRQ(c, d, n*each)
	mem := e.Buffer(c, 8*n*(1+each), kit.AllAccess)
	o := kit.Default()
	o.MinRNRTimer = 1
	pairs := map[uint32]*kit.XRCPair{}
	for range n {
		p := e.XRCPair(c, d, o)
		pairs[p.B.QPN()] = p
		for range each {
			p.A.Post(c, s.To(kit.Send(1, mem.SGE(0, 8))))
		}
	}
	c.T.Sleep(time.Millisecond)
	for i := range n * each {
		s.RecvInto(c, uint64(i), mem.SGE(8*(n+i), 8))
	}
	took, of := map[uint64]bool{}, map[uint32]int{}
	for _, wc := range kit.ExpectSuccess(c, s.CQ, n*each) {
		c.True("request", !took[wc.ID], "receive %d completes twice", wc.ID)
		took[wc.ID] = true
		of[wc.QPN]++
	}
	for qpn, p := range pairs {
		c.Equal("messages through a target", of[qpn], each)
		kit.ExpectSuccess(c, p.A.SendCQ, each)
	}
}

func limitEvent(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 16)
	mem := p.Buffer(c, 64, kit.AllAccess)
	for i := range 8 {
		s.RecvInto(c, uint64(i), mem.SGE(8, 8))
	}
	c.NoErr("modify_srq", s.Modify(c.T, verbs.SRQAttr{Limit: 6}, verbs.SRQMaskLimit))
	a, err := s.Query(c.T)
	c.NoErr("query_srq", err)
	c.Equal("srq_limit", a.Limit, uint32(6))
	for i := range 2 {
		c.Status("send", p.A.PostAndPoll(c, s.To(kit.Send(uint64(i), mem.SGE(0, 8)))), verbs.WCSuccess)
	}
	c.Equal("events at the limit", len(p.EventsWithin(c, kit.QuietPeriod, verbs.EventSRQLimitReached)), 0)
	c.Status("send", p.A.PostAndPoll(c, s.To(kit.Send(3, mem.SGE(0, 8)))), verbs.WCSuccess)
	ev := p.EventsWithin(c, kit.QuietPeriod, verbs.EventSRQLimitReached)
	c.Equal("events below the limit", len(ev), 1)
	c.Equal("the event's SRQ", len(ev) == 1 && ev[0].SRQ == s.SRQ.SRQ, true)
	a, err = s.Query(c.T)
	c.NoErr("query_srq", err)
	c.Equal("srq_limit after the event", a.Limit, uint32(0))
}

// targetFlushed takes a target to ERR and back: it receives again, and the SRQ keeps its receives.
func targetFlushed(c *spec.C) {
	o := kit.Default()
	o.Timeout, o.RetryCnt = 14, 2
	p := kit.NewXRCPair(c, o)
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	mem := p.Buffer(c, 64, kit.AllAccess)
	s.RecvInto(c, 1, mem.SGE(32, 8))
	p.B.ModifyState(c, verbs.QPSErr)
	c.Status("send to a target in ERR", p.A.PostAndPoll(c, s.To(kit.Send(1, mem.SGE(0, 8)))), verbs.WCRetryExcErr)
	kit.ExpectNoCompletion(c, s.CQ, time.Millisecond)
	p.A.ModifyState(c, verbs.QPSReset)
	p.B.ModifyState(c, verbs.QPSReset)
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTR)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
	c.Status("send after a reset", p.A.PostAndPoll(c, s.To(kit.Send(2, mem.SGE(0, 8)))), verbs.WCSuccess)
	c.Equal("wr_id of the receive", kit.ExpectSuccess(c, s.CQ, 1)[0].ID, uint64(1))
}

// srqChanges has the second packet of a message name another SRQ of the domain.
func srqChanges(c *spec.C) {
	p, srqs := three(c, kit.WithLongTimeout(c, kit.Default()))
	from, to := p.Buffer(c, 4096, kit.AllAccess), p.Buffer(c, 4096, kit.AllAccess)
	from.FillRandom(c)
	for _, s := range srqs {
		s.RecvInto(c, 1, to.All())
	}
	n := srqs[1].N
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: p.B.QPN(), Skip: 1, Count: 1, Action: verbs.WireEdit, Edits: []verbs.ByteEdit{
		{Offset: roce.BTHSize + 1, Value: byte(n >> 16)}, {Offset: roce.BTHSize + 2, Value: byte(n >> 8)}, {Offset: roce.BTHSize + 3, Value: byte(n)}}})
	c.StatusIn("send", p.A.PostAndPoll(c, srqs[0].To(kit.Send(1, from.All()))), verbs.WCRemAccessErr, verbs.WCRemInvReqErr)
	kit.ClearRules(c)
	kit.ExpectNoCompletion(c, srqs[1].CQ, time.Millisecond)
	for _, wc := range kit.PollWithin(c, srqs[0].CQ, 1, time.Millisecond) {
		c.Equal("receive is a success", wc.Status == verbs.WCSuccess, false)
	}
}

// overtaken posts READs through the SRQ of one PD, of which the later wait for their turn, and
// writes through that of another behind them.
func overtaken(c *spec.C) {
	const size = 64 << 10
	e := kit.Open(c)
	d := e.OpenXRCD(c, kit.NoFile, 0)
	pd := e.AllocPD(c)
	cq := e.CreateCQ(c, 16)
	first, second := e.CreateXRCSRQOn(c, d, pd, cq, 8), e.CreateXRCSRQOn(c, d, e.PD, cq, 8)
	p := e.XRCPair(c, d, kit.Default())
	mine, theirs := e.Buffer(c, size, kit.AllAccess), e.BufferOn(c, pd, size, kit.AllAccess)
	target := e.Buffer(c, 64, kit.AllAccess)
	want := theirs.FillRandom(c)
	var wrs []verbs.SendWR
	for i := range 4 {
		wrs = append(wrs, first.To(kit.Read(uint64(i), theirs, 0, mine.All())))
	}
	for i := range 8 {
		wrs = append(wrs, second.To(kit.Write(uint64(4+i), target, 8*i, target.SGE(0, 8))))
	}
	p.A.Post(c, wrs...)
	for range wrs {
		c.Status("request", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	}
	c.True("what was read", bytes.Equal(mine.Get(c, 0, size), want), "other bytes")
}

// twoSenders connects two QPs that send to each other.
func twoSenders(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt, o.Type = 14, 2, verbs.QPTXRCSend
	a, b := e.CreateQP(c, o), e.CreateQP(c, o)
	b.BringUp(c, a.Peer(), verbs.QPSRTS)
	a.BringUp(c, b.Peer(), verbs.QPSRTS)
	s := e.CreateXRCSRQ(c, e.OpenXRCD(c, kit.NoFile, 0), 8)
	mem := e.Buffer(c, 64, kit.AllAccess)
	mem.SetWord(c, 0, 0x0102030405060708)
	s.RecvInto(c, 1, mem.SGE(32, 8))
	for _, wr := range []verbs.SendWR{s.To(kit.Write(1, mem, 8, mem.SGE(0, 8))), s.To(kit.Send(1, mem.SGE(0, 8)))} {
		c.StatusIn("request", a.PostAndPoll(c, wr), verbs.WCRetryExcErr, verbs.WCRemInvReqErr, verbs.WCRemOpErr)
		a.ModifyState(c, verbs.QPSReset)
		b.ModifyState(c, verbs.QPSReset)
		b.BringUp(c, a.Peer(), verbs.QPSRTS)
		a.BringUp(c, b.Peer(), verbs.QPSRTS)
	}
	c.Equal("memory is as it was", mem.Word(c, 8) == 0 && mem.Word(c, 32) == 0, true)
	kit.ExpectNoCompletion(c, s.CQ, time.Millisecond)
}
