package wire

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// sentOnce says that each PSN of the requests was sent once.
func (l *link) sentOnce(c *spec.C, packets []kit.Packet) {
	sent := l.psns(l.requests(packets))
	for i, n := range sent {
		for _, m := range sent[:i] {
			c.True("sent once", n != m, "PSN %d from the first was sent twice: %v", n, sent)
		}
	}
}

// ackBehindRead has acknowledgements wait behind the data of a READ: the one that leaves
// acknowledges the newest request.
func ackBehindRead(c *spec.C) {
	l := connect(c, options(c))
	var wrs []verbs.SendWR
	for i := range uint64(4) {
		wrs = append(wrs, l.read(i, 60<<10))
	}
	for i := range uint64(8) {
		wrs = append(wrs, l.far.WriteTo(4+i, 62<<10, l.mem.SGE(62<<10, 8)))
	}
	packets := l.tap(c, func() { l.postSuccessfully(c, wrs...) })
	l.sentOnce(c, packets)
	acks := l.responses(packets, roce.RCAcknowledge)
	c.True("acknowledgements", len(acks) > 0, "there is none")
	newest := l.psns(l.requests(packets))
	c.Equal("PSN of the last", l.psns(acks)[len(acks)-1], newest[len(newest)-1])
}

// gapAfterDuplicate loses a packet, the NAK that asks for it, and the packet again: what the
// timer has sent again begins with a duplicate, after which the gap is reported anew.
func gapAfterDuplicate(c *spec.C) {
	l := connect(c, options(c))
	lost := l.ruleForRequest(1, verbs.WireDrop)
	lost.Count = 2
	packets := l.writeUnderRules(c, 6*mtu, lost, l.ruleForResponse(roce.RCAcknowledge, verbs.WireDrop))
	naks := l.naks(packets, roce.SyndromeTypeNAK)
	c.Equal("PSNs of the NAKs", l.psns(naks), []int{1, 1})
	sent := l.requests(packets)
	var begins []time.Duration
	for _, p := range sent {
		if p.PSN() == l.psn(0) {
			begins = append(begins, p.At)
		}
	}
	c.Equal("transmissions of the first packet", len(begins), 2)
	rest := sent[len(sent)-1].At - begins[1]
	c.True("recovery", rest < l.ack.Least, "the last packet left %v after the duplicate, the timer is %v at least", rest, l.ack.Least)
}

// repeatedAtomic loses the answer to an atomic.
func repeatedAtomic(c *spec.C) {
	l := connect(c, options(c))
	l.far.SetWord(c, 0, 40)
	kit.Inject(c, l.ruleForResponse(roce.RCAtomicAcknowledge, verbs.WireDrop))
	l.postSuccessfully(c, l.far.FetchAdd(1, 0, 2, l.mem.SGE(0, 8)))
	c.Equal("answers lost or passed", kit.ClearRules(c), []int{2})
	c.Equal("value returned", l.mem.Word(c, 0), uint64(40))
	l.postSuccessfully(c, l.far.FetchAdd(2, 0, 0, l.mem.SGE(8, 8)))
	c.Equal("value in memory", l.mem.Word(c, 8), uint64(42))
}

// repeatedEmptyRead loses the answer to a READ of nothing, whose R_Key matters to nobody.
func repeatedEmptyRead(c *spec.C) {
	l := connect(c, options(c))
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseOnly, verbs.WireDrop))
	l.a.Post(c, l.read(1, 0))
	if wcs, all := kit.AwaitCompletions(c, "an end", l.a.SendCQ, 1); all {
		c.Status("read of 0 bytes", wcs[0], verbs.WCSuccess)
	}
	c.True("answers lost or passed", kit.ClearRules(c)[0] >= 1, "none")
}

// anotherReplay loses the answer to a READ, and has its repetition ask for another place: the
// responder serves what it has served before, or nothing.
func anotherReplay(c *spec.C) {
	l := connect(c, options(c))
	want := c.Rand().Bytes(8192)
	l.far.Set(c, 0, want)
	low := byte(l.far.Addr>>8) + 4 // 1024 bytes on; the buffer begins a page
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseOnly, verbs.WireDrop))
	r := l.ruleForRequest(0, verbs.WireEdit)
	r.Skip, r.Edits = 1, []verbs.ByteEdit{{Offset: roce.BTHSize + 6, Value: low}}
	kit.Inject(c, r)
	l.postSuccessfully(c, l.read(1, 64))
	met := kit.ClearRules(c)
	c.True("packets disturbed", met[0] >= 1 && met[1] >= 2, "rules met %v packets", met)
	c.Equal("bytes", l.mem.Get(c, 0, 64), want[:64])
}

// answerBehindRead loses the answer to a READ before that to a WRITE, which says so.
func answerBehindRead(c *spec.C) {
	l := connect(c, options(c))
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseOnly, verbs.WireDrop))
	packets := l.tap(c, func() { l.postSuccessfully(c, l.read(1, 64), l.far.WriteTo(2, 4096, l.mem.SGE(0, 8))) })
	kit.ClearRules(c)
	asked := l.requests(packets, roce.RCReadRequest)
	c.Equal("READ requests", len(asked), 2)
	c.True("without the timer", asked[1].At-asked[0].At < l.ack.Least/2, "asked again after %v, the timer is %v at least", asked[1].At-asked[0].At, l.ack.Least)
}

// timerRestarts has answers take most of the timer, with one request more under way all the
// time: none is sent again.
func timerRestarts(c *spec.C) {
	n := uint64(16) // of a third of the timer each, which may be four times as long as asked
	o := options(c)
	o.Timeout = max(o.Timeout, 14) // a device may have a shortest timer
	o.Cap.MaxSendWR = 128
	l := connect(c, o)
	late := l.ack.Timeout * 7 / 10
	if l.ack.Adapts {
		late = l.ack.Least * 7 / 10
		n = uint64(2*longestStep/late) + 1
	}
	r := l.ruleForResponse(roce.RCAcknowledge, verbs.WireDelay)
	r.Count, r.Delay = 0, late
	kit.Inject(c, r)
	packets := l.tap(c, func() {
		for i := range n {
			l.a.Post(c, l.write(i, 8))
			c.T.Sleep(late / 2)
		}
		kit.ExpectSuccess(c, l.a.SendCQ, int(n))
	})
	kit.ClearRules(c)
	c.Equal("PSNs sent", l.psns(l.requests(packets)), countUpTo(0, int(n)-1))
}

// longestStep is longer than the first wait of adaptive retransmission may be, of which 71.4 ms are
// published.
const longestStep = 100 * time.Millisecond

// ghost has an acknowledgement name a PSN that was never sent: it counts for nothing, and the
// timer sends the request again.
func ghost(c *spec.C) {
	l := connect(c, options(c))
	to := l.psn(5)
	r := l.ruleForResponse(roce.RCAcknowledge, verbs.WireEdit)
	r.Edits = []verbs.ByteEdit{{Offset: 9, Value: byte(to >> 16)}, {Offset: 10, Value: byte(to >> 8)}, {Offset: 11, Value: byte(to)}}
	kit.Inject(c, r)
	packets := kit.Tap(c, func() { l.postSuccessfully(c, l.write(1, 8)) })
	kit.ClearRules(c)
	sent := l.requests(packets)
	c.Equal("PSNs sent", l.psns(sent), []int{0, 0})
	if len(sent) == 2 { // of a device that is known to take it for an answer there is one
		l.sentAgain(c, sent[1].At-sent[0].At)
	}
}

// beyondResources asks for more READs at once than the responder remembers: the one that
// finds no room is refused.
func beyondResources(c *spec.C) {
	const asked, kept, n = 8, 2, 16 << 10
	e, other := open(c)
	o := options(c)
	o.RdAtomic = kept
	l := join(c, e, other, o, func(a *verbs.QPAttr) { a.MaxRdAtomic = asked })
	var wrs []verbs.SendWR
	for i := range uint64(asked) {
		wrs = append(wrs, l.read(i, n))
	}
	l.a.Post(c, wrs...)
	served := 0
	for _, wc := range kit.PollWithin(c, l.a.SendCQ, asked, 10*time.Second) {
		switch {
		case wc.Status == verbs.WCSuccess:
			served++
		case served == int(wc.ID):
			c.Status("the READ that finds no room", wc, verbs.WCRemInvReqErr)
		default:
			c.Status("the READs behind it", wc, verbs.WCWRFlushErr)
		}
	}
	c.True("READs served", served >= kept && served < asked, "%d of %d READs are served, the responder remembers %d", served, asked, kept)
}

// outstandingReads loses all READ requests, and counts how many are sent.
func outstandingReads(c *spec.C) {
	const limit, asked = 2, 6
	o := options(c)
	o.RdAtomic, o.Timeout = limit, 0
	l := connect(c, o)
	kit.Inject(c, kit.DropTo(l.b.QPN))
	packets := kit.Tap(c, func() {
		for i := range uint64(asked) {
			l.a.Post(c, l.read(i, 64))
		}
		awaitUnanswered(c)
	})
	kit.ClearRules(c)
	c.Equal("PSNs of READ requests", l.psns(l.requests(packets, roce.RCReadRequest)), countUpTo(0, limit-1))
}
