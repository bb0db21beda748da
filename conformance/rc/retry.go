package rc

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

func rnrZero(c *spec.C) {
	o := kit.Default()
	o.RNRRetry = 0
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	c.Status("send with no receive", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCRNRRetryExcErr)
}

// rnrTimer is code 14 of the RNR timers.
const (
	rnrCode  = 14
	rnrTimer = 1280 * time.Microsecond
)

func rnrCount(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for n := uint8(1); n <= 6; n++ {
		o := kit.WithLongTimeout(c, kit.Default())
		o.RNRRetry, o.MinRNRTimer = n, rnrCode
		a, b := e.PairWith(c, other, o)
		packets := kit.Tap(c, func() {
			c.Status("send with no receive", a.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCRNRRetryExcErr)
		})
		sent := kit.PacketsTo(packets, b.QPN, roce.RCSendOnly)
		c.Equal(fmt.Sprintf("transmissions with rnr_retry %d", n), len(sent), int(n)+1)
		naks := kit.Acknowledgements(packets, a.QPN(), roce.SyndromeTypeRNR)
		for _, nak := range naks {
			c.Equal("timer code of the NAK", nak.AETH().Syndrome().Value(), uint8(rnrCode))
		}
		c.Equal("RNR NAKs", len(naks), int(n)+1)
		for i := 1; i < len(sent); i++ {
			gap := sent[i].At - sent[i-1].At
			c.True("spacing", gap >= rnrTimer, "retry %d came after %v, before the timer of %v", i, gap, rnrTimer)
		}
	}
}

func rnrForEver(c *spec.C) {
	o := kit.Default()
	o.RNRRetry, o.MinRNRTimer = 7, 10
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)[:8]
	p.A.Post(c, kit.Send(1, mem.SGE(0, 8)))
	kit.ExpectNoCompletion(c, p.A.SendCQ, 50*time.Millisecond) // over 100 periods of the timer
	p.B.RecvInto(c, 2, mem.SGE(32, 8))
	c.Status("send", kit.PollOne(c, p.A.SendCQ), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 32, 8), want)
}

// timerInRNRWait has the responder ask for the longest wait, which is longer than all retries of
// the requester take, also of one that retransmits adaptively.
func timerInRNRWait(c *spec.C) {
	const longest = 0 // code of 655.36 ms
	o := kit.Default()
	o.Timeout, o.RetryCnt, o.RNRRetry, o.MinRNRTimer = 10, 1, 7, longest
	e := kit.Open(c)
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	var wc verbs.WC
	packets := kit.Tap(c, func() {
		a.Post(c, kit.Send(1, mem.SGE(0, 8)))
		c.T.Sleep(100 * time.Millisecond)
		b.Recv(c, far, 1)
		wc = kit.PollOne(c, a.SendCQ)
	})
	c.Status("send", wc, verbs.WCSuccess)
	if wc.Status != verbs.WCSuccess {
		return
	}
	c.Equal("receive", b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	sent := kit.PacketsTo(packets, b.QPN, roce.RCSendOnly)
	c.Equal("transmissions", len(sent), 2)
	c.Equal("RNR NAKs", len(kit.Acknowledgements(packets, a.QPN(), roce.SyndromeTypeRNR)), 1)
	wait, least := sent[1].At-sent[0].At, time.Duration(roce.RNRTimer(longest))
	c.True("wait", wait >= least, "sent again after %v, before the timer of %v", wait, least)
}

// silenceAfterRNR sends several messages of which the responder can take none.
func silenceAfterRNR(c *spec.C) {
	const sends = 4
	o := kit.WithLongTimeout(c, kit.Default())
	o.RNRRetry, o.MinRNRTimer = 7, 26 // 164 ms
	e := kit.Open(c)
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	var posted []verbs.SendWR
	for i := range sends {
		posted = append(posted, kit.Send(uint64(i), mem.SGE(8*i, 8)))
	}
	packets := kit.Tap(c, func() {
		a.Post(c, posted...)
		kit.ExpectNoCompletion(c, a.SendCQ, 20*time.Millisecond)
		b.Recv(c, far, sends)
		kit.ExpectSuccess(c, a.SendCQ, sends)
	})
	c.Equal("receives", len(b.Process.AwaitStatuses(c, sends, kit.CompletionTimeout)), sends)
	c.Equal("RNR NAKs", len(kit.Acknowledgements(packets, a.QPN(), roce.SyndromeTypeRNR)), 1)
	other := slices.ContainsFunc(kit.PacketsTo(packets, a.QPN(), roce.RCAcknowledge), func(p kit.Packet) bool { return p.AETH().Syndrome().Type() == roce.SyndromeTypeNAK })
	c.Equal("a NAK of another kind", other, false)
	c.Equal("transmissions", len(kit.PacketsTo(packets, b.QPN, roce.RCSendOnly)) > sends, true)
}

// rnrTimerAlone gives a responder that is in RTS another timer.
func rnrTimerAlone(c *spec.C) {
	o := kit.WithLongTimeout(c, kit.Default())
	o.RNRRetry, o.MinRNRTimer = 7, 10
	e := kit.Open(c)
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	round := func(id uint64, code uint8) {
		packets := kit.Tap(c, func() {
			b.Post(c, verbs.SendWR{ID: id, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}, far.Part(0, 8))
			c.T.Sleep(5 * time.Millisecond)
			a.RecvInto(c, id, mem.SGE(0, 8))
			c.Status("receive", kit.PollOne(c, a.RecvCQ), verbs.WCSuccess)
			c.Equal("send", b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
		})
		var codes []uint8
		for _, nak := range kit.Acknowledgements(packets, b.QPN, roce.SyndromeTypeRNR) {
			codes = append(codes, nak.AETH().Syndrome().Value())
		}
		c.Equal("timer codes of the RNR NAKs", slices.Compact(codes), []uint8{code})
	}
	round(1, 10)
	for _, code := range []uint8{14, 1} {
		kit.Must(c, "modify_qp of min_rnr_timer", a.Modify(c.T, &verbs.QPAttr{MinRNRTimer: code}, verbs.QPMaskMinRNRTimer))
		round(uint64(code), code)
	}
}

// announcedReceives compares what each ACK announces with the receives that are posted and not
// consumed when it leaves.
func announcedReceives(c *spec.C) {
	const rounds = 12
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.Default())
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	b.Recv(c, far, rounds)
	packets := kit.Tap(c, func() {
		for i := range uint64(rounds) {
			c.Status("send", a.PostAndPoll(c, kit.Send(i, mem.SGE(0, 8))), verbs.WCSuccess)
		}
	})
	c.Equal("receives", len(b.Process.AwaitStatuses(c, rounds, kit.CompletionTimeout)), rounds)
	left, announced, most := rounds, false, 0 // receives that an ACK announces and that are not there
	for _, ack := range kit.PacketsTo(packets, a.QPN(), roce.RCAcknowledge) {
		s := ack.AETH().Syndrome()
		left--
		if s.Type() != roce.SyndromeTypeAck || s.Value() == roce.CreditUnlimited {
			continue
		}
		announced = true
		most = max(most, roce.Credits(s.Value())-left)
	}
	c.Equal("receives announced that are not posted", most, 0)
	c.Equal("receives without an ACK", left, 0)
	c.Observe("the responder announces its receives", announced)
}

func peerGone(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 3
	a, b := e.RemotePair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	far := b.Process.Buffer(c, 64, kit.AllAccess, 0)
	c.Status("write while it is there", a.PostAndPoll(c, far.WriteTo(1, 0, mem.SGE(0, 8))), verbs.WCSuccess)
	b.Process.Do(c, player.DestroyQP, kit.Args{"qp": b.ID}, nil)
	c.Status("write after it has gone", a.PostAndPoll(c, far.WriteTo(2, 0, mem.SGE(0, 8))), verbs.WCRetryExcErr)
}

func retryCount(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	mem, far := e.Buffer(c, 64, kit.AllAccess), other.Buffer(c, 64, kit.AllAccess, 0)
	for n := uint8(0); n <= 7; n++ {
		o := kit.Default()
		o.RetryCnt, o.Timeout = n, 10
		if !c.Has(kit.ExactTime) {
			o.Timeout = 14 // above the grid of a kernel's timers
		}
		a, b := e.PairWith(c, other, o)
		kit.Inject(c, kit.DropTo(b.QPN))
		all := false
		packets := kit.Tap(c, func() {
			a.Post(c, far.WriteTo(1, 32, mem.SGE(0, 8)))
			var wcs []verbs.WC
			if wcs, all = kit.AwaitCompletions(c, fmt.Sprintf("an end with retry_cnt %d", n), a.SendCQ, 1); all {
				c.Status("write into the void", wcs[0], verbs.WCRetryExcErr)
			}
		})
		kit.ClearRules(c)
		if !all {
			continue
		}
		sent := kit.PacketsTo(packets, b.QPN)
		c.Equal(fmt.Sprintf("transmissions with retry_cnt %d", n), len(sent), int(n)+1)
		for _, s := range sent {
			c.Equal("PSN", s.PSN(), o.PSN)
		}
	}
}

func retryTime(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	mem, far := e.Buffer(c, 64, kit.AllAccess), other.Buffer(c, 64, kit.AllAccess, 0)
	tries := []struct{ timeout, retries uint8 }{{14, 0}, {14, 2}, {12, 7}, {16, 1}, {17, 2}, {18, 2}}
	if c.Has(kit.ExactTime) { // minutes
		tries = append(tries, []struct{ timeout, retries uint8 }{{20, 2}, {24, 2}}...)
	}
	for _, tc := range tries {
		o := kit.Default()
		o.Timeout, o.RetryCnt = tc.timeout, tc.retries
		timer, times := time.Duration(roce.AckTimeout(tc.timeout)), time.Duration(tc.retries+1)
		least := times * max(timer-kit.TimerSlack(c), timer/2)
		step := fmt.Sprintf("timeout %d, retry_cnt %d", tc.timeout, tc.retries)
		// A busy machine sees the end late, so that a time which is too short may seem long enough:
		// of three the shortest counts.
		var took time.Duration
		var wcs []verbs.WC
		for try := range 3 {
			a, b := e.PairWith(c, other, o)
			kit.Inject(c, kit.DropTo(b.QPN))
			begin := c.T.Now()
			a.Post(c, far.WriteTo(1, 32, mem.SGE(0, 8)))
			some, all := kit.AwaitCompletionsWithin(c, "an end with "+step, a.SendCQ, 1, max(kit.CompletionTimeout, 5*times*timer))
			t := c.T.Now() - begin
			kit.ClearRules(c)
			if !all {
				break
			}
			if wcs == nil || t < took {
				wcs, took = some, t
			}
			if c.Has(kit.ExactTime) || took < least || try == 0 && took > least*5/4 {
				break
			}
		}
		if wcs == nil {
			continue
		}
		c.Status("write into the void", wcs[0], verbs.WCRetryExcErr)
		c.True(step, took >= least && took <= 4*times*timer, "failed after %v, want %v to %v", took, least, 4*times*timer)
	}
}

func timeoutZero(c *spec.C) {
	o := kit.Default()
	o.Timeout = 0
	e := kit.Open(c)
	a, b := e.RemotePair(c, o)
	mem, far := e.Buffer(c, 64, kit.AllAccess), b.Process.Buffer(c, 64, kit.AllAccess, 0)
	kit.Inject(c, kit.DropTo(b.QPN))
	a.Post(c, far.WriteTo(1, 32, mem.SGE(0, 8)))
	kit.ExpectNoCompletion(c, a.SendCQ, 2*time.Second)
	met := kit.ClearRules(c)
	c.Equal("transmissions", met, []int{1})
}

func fence(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.WithLongTimeout(c, kit.Default()))
	dst, far := e.Buffer(c, 1<<16, kit.AllAccess), b.Process.Buffer(c, 1<<16, kit.AllAccess, 0)
	b.Recv(c, far, 1)
	packets := kit.Tap(c, func() {
		send := kit.Send(3, dst.SGE(0, 8))
		send.Flags |= verbs.SendFence
		a.Post(c, far.ReadFrom(1, 0, dst.All()), far.ReadFrom(2, 0, dst.All()), send)
		kit.ExpectSuccess(c, a.SendCQ, 3)
	})
	lastResponse, sendAt := -1, -1
	for i := range packets {
		switch q := &packets[i]; {
		case q.Op == roce.RCReadResponseLast && q.DestQPN() == a.QPN():
			lastResponse = i
		case q.Op == roce.RCSendOnly && q.DestQPN() == b.QPN && sendAt < 0:
			sendAt = i
		}
	}
	c.True("both on the wire", lastResponse >= 0 && sendAt >= 0, "last response at %d, send at %d of %d", lastResponse,
		sendAt, len(packets))
	c.True("the send follows the last response", sendAt > lastResponse, "last response at %d, send at %d", lastResponse, sendAt)
}

func responderInRTR(c *spec.C) {
	e := kit.Open(c)
	p := e.UnconnectedPair(c, kit.Default())
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTR)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)[:8]
	p.B.RecvInto(c, 1, mem.SGE(32, 8))
	c.Status("send", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 32, 8), want)
	event := "none"
	ev, err := e.Ctx.AsyncEvent(c.T, kit.QuietPeriod)
	if err == nil {
		event = fmt.Sprint(ev.Type)
		if ev.Type == verbs.EventCommEst {
			event = "COMM_EST"
			c.True("the event names the responder", ev.QP != nil && ev.QP.QPN() == p.B.QPN(), "it names another QP")
		}
		e.Ctx.AckAsyncEvent(c.T, ev)
	}
	c.True("event", event == "none" || event == "COMM_EST", "want COMM_EST or none, got event %s", event)
	c.Observe("event", event)
	p.B.StepTo(c, p.A.Peer(), verbs.QPSRTS)
	c.Status("the other way", p.B.PostAndPoll(c, kit.Write(2, mem, 0, mem.SGE(32, 8))), verbs.WCSuccess)
}

func responderNotReady(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	for _, s := range []verbs.QPState{verbs.QPSReset, verbs.QPSInit} {
		o := kit.Default()
		o.Timeout, o.RetryCnt = 10, 2
		p := e.UnconnectedPair(c, o)
		p.B.BringUp(c, p.A.Peer(), s)
		if s == verbs.QPSInit {
			p.B.RecvInto(c, 1, mem.SGE(0, 8))
		}
		p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
		c.Status(fmt.Sprintf("write to a responder in %v", s), p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCRetryExcErr)
		mem.ExpectContents(c, "memory", want)
		c.Equal("responder's state", p.B.QueryState(c), s)
	}
}
