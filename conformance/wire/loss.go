package wire

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// writeUnderRules writes n bytes under rules, which must all act as often as they say, and
// compares the bytes.
func (l *link) writeUnderRules(c *spec.C, n int, rules ...verbs.WireRule) []kit.Packet {
	want := l.mem.FillRandom(c)[:n]
	kit.Inject(c, rules...)
	packets := l.tap(c, func() { l.postSuccessfully(c, l.write(1, n)) })
	kit.ClearRules(c)
	c.Equal("bytes", l.far.Get(c, 0, n), want)
	acted := 0
	for _, p := range packets {
		if p.Acted != verbs.WirePass {
			acted++
		}
	}
	due := 0
	for _, r := range rules {
		due += r.Count
	}
	c.Equal("packets disturbed", acted, due)
	return packets
}

func corruption(c *spec.C) {
	l := connect(c, options(c))
	packets := l.writeUnderRules(c, 4*mtu, l.ruleForRequest(2, verbs.WireCorrupt))
	sent := 0
	for _, p := range l.requests(packets) {
		if p.PSN() == l.psn(2) {
			sent++
		}
	}
	c.True("sent again", sent >= 2, "the corrupted packet was sent %d times", sent)
}

func dropMiddle(c *spec.C) {
	l := connect(c, options(c))
	packets := l.writeUnderRules(c, 10*mtu, l.ruleForRequest(4, verbs.WireDrop)) // the fifth
	naks := l.naks(packets, roce.SyndromeTypeNAK)
	c.Equal("NAKs", len(naks), 1)
	c.Equal("syndrome", naks[0].AETH().Syndrome(), roce.NAKSequence)
	c.Equal("PSN of the NAK", naks[0].PSN(), l.psn(4))
	sent := l.psns(l.requests(packets))
	again := len(sent) - 6
	c.True("go back", again > 0, "requests %v", sent)
	c.Equal("PSNs after going back", sent[again:], countUpTo(4, 9))
	c.Equal("PSNs before", sent[:again], countUpTo(0, again-1))
}

func dropLast(c *spec.C) {
	l := connect(c, options(c))
	packets := l.writeUnderRules(c, 4*mtu, l.ruleForRequest(3, verbs.WireDrop))
	c.Equal("NAKs", len(l.naks(packets, roce.SyndromeTypeNAK)), 0)
	var at []time.Duration
	for _, p := range l.requests(packets) {
		if p.PSN() == l.psn(3) {
			at = append(at, p.At)
		}
	}
	c.Equal("transmissions of the last packet", len(at), 2)
	l.sentAgain(c, at[1]-at[0])
}

func dropTwice(c *spec.C) {
	l := connect(c, options(c))
	packets := l.writeUnderRules(c, 6*mtu, kit.ParseRules(c, `
faults:
  - {do: drop, direction: requests, flow: 1, packet: 3, iteration: 1, count: 1}
  - {do: drop, direction: requests, flow: 1, packet: 3, iteration: 2, count: 1}
`)...)
	sent := 0
	for _, p := range l.requests(packets) {
		if p.PSN() == l.psn(2) {
			sent++
		}
	}
	c.True("transmissions", sent >= 3, "sent %d times, dropped twice", sent)
	kit.ExpectNoCompletion(c, l.a.SendCQ, kit.QuietPeriod)
}

func oneNAK(c *spec.C) {
	l := connect(c, options(c))
	packets := l.writeUnderRules(c, 60*mtu, l.ruleForRequest(1, verbs.WireDrop))
	open, naks := false, 0
	for _, p := range packets {
		switch {
		case p.DestQPN() == l.b.QPN && p.PSN() == l.psn(1):
			open = false
		case p.DestQPN() == l.a.QPN() && p.Op == roce.RCAcknowledge && p.AETH().Syndrome() == roce.NAKSequence:
			c.True("NAK", !open, "a second NAK before PSN %#x came again", p.PSN())
			open = true
			naks++
		}
	}
	c.Equal("NAKs", naks, 1)
}

func dropReadResponse(c *spec.C) {
	l := connect(c, options(c))
	want := c.Rand().Bytes(5 * mtu)
	l.far.Set(c, 0, want)
	r := l.ruleForResponse(roce.RCReadResponseMiddle, verbs.WireDrop)
	r.Skip = 1 // the third response
	kit.Inject(c, r)
	packets := l.tap(c, func() { l.postSuccessfully(c, l.read(1, 5*mtu)) })
	c.Equal("bytes", l.mem.Get(c, 0, 5*mtu), want)
	requests := l.requests(packets, roce.RCReadRequest)
	c.Equal("requests", len(requests), 2)
	again := requests[1]
	c.Equal("PSN", again.PSN(), l.psn(2))
	c.Equal("address", again.RETH().VA()-l.far.Addr, uint64(2*mtu))
	c.Equal("length", again.RETH().Length(), uint32(3*mtu))
}

func dropACK(c *spec.C) {
	l := connect(c, options(c))
	kit.Inject(c, l.ruleForResponse(roce.RCAcknowledge, verbs.WireDrop))
	packets := l.tap(c, func() {
		l.a.Post(c, l.write(1, 8))
		l.unanswered(c, 4)
		l.a.Post(c, l.write(2, 8))
		kit.ExpectSuccess(c, l.a.SendCQ, 2)
		kit.ExpectNoCompletion(c, l.a.SendCQ, 2*l.ack.Timeout)
	})
	sent := l.requests(packets)
	if l.ack.Adapts && len(sent) > 2 && sent[2].PSN() == l.psn(1) { // the thread took longer than the timer; the oracle judges the wait
		sent = slices.Delete(sent, 1, 2)
	}
	c.Equal("PSNs sent", l.psns(sent), []int{0, 1})
}

func reorder(c *spec.C) {
	l := connect(c, options(c))
	r := l.ruleForRequest(2, verbs.WireDelay)
	r.Delay = 5 * time.Microsecond
	packets := l.writeUnderRules(c, 8*mtu, r)
	naks := l.psns(l.naks(packets, roce.SyndromeTypeNAK))
	// The second is for what was dropped before the packet came, if something is behind that.
	c.True("NAKs", len(naks) <= 2 && len(slices.Compact(slices.Sorted(slices.Values(naks)))) == len(naks), "NAKs of the packets %v", naks)
	c.Observe("overtaken packet", map[bool]string{true: "NAK", false: "tolerated"}[len(naks) > 0])
}

func duplicateWrite(c *spec.C) {
	l := connect(c, options(c))
	l.mem.FillRandom(c)
	kit.Inject(c, l.ruleForResponse(roce.RCAcknowledge, verbs.WireDrop))
	later := c.Rand().Bytes(64)
	packets := l.tap(c, func() {
		l.a.Post(c, l.write(1, 64))
		l.unanswered(c, 2)
		l.far.Set(c, 0, later) // the request is executed, and its acknowledgement lost
		kit.ExpectSuccess(c, l.a.SendCQ, 1)
	})
	sent, acks := l.requests(packets), l.responses(packets, roce.RCAcknowledge)
	c.Equal("transmissions", len(sent), 2)
	c.Equal("acknowledgements", len(acks), 2)
	c.Equal("PSN of the second", acks[1].PSN(), l.psn(0))
	c.Equal("MSN of the second", acks[1].AETH().MSN(), uint32(1))
	c.Equal("later data", l.far.Get(c, 0, 64), later)
}

func duplicateRead(c *spec.C) {
	l := connect(c, options(c))
	want := c.Rand().Bytes(64)
	l.far.Set(c, 0, want)
	kit.Inject(c, l.ruleForResponse(roce.RCReadResponseOnly, verbs.WireDrop))
	packets := l.tap(c, func() { l.postSuccessfully(c, l.read(1, 64)) })
	c.Equal("requests", l.psns(l.requests(packets, roce.RCReadRequest)), []int{0, 0})
	c.Equal("responses", l.psns(l.responses(packets, roce.RCReadResponseOnly)), []int{0, 0})
	c.Equal("bytes", l.mem.Get(c, 0, 64), want)
}

func rnrTimer(c *spec.C) {
	e, other := open(c)
	for _, code := range []uint8{1, 5, 12, 14, 20} {
		o := options(c)
		o.MinRNRTimer, o.RNRRetry = code, 2
		l := join(c, e, other, o, func(*verbs.QPAttr) {})
		packets := l.tap(c, func() {
			c.Status("send with no receive", l.a.PostAndPoll(c, kit.Send(1, l.mem.SGE(0, 8))), verbs.WCRNRRetryExcErr)
		})
		naks, sent := l.naks(packets, roce.SyndromeTypeRNR), l.requests(packets)
		c.Equal("RNR NAKs", len(naks), 3)
		c.Equal("transmissions", len(sent), 3)
		least := time.Duration(roce.RNRTimer(code))
		longest := time.Duration(0)
		for i, nak := range naks {
			c.Equal(fmt.Sprintf("timer code %d", code), nak.AETH().Syndrome().Value(), code)
			if i+1 < len(sent) {
				wait := sent[i+1].At - nak.At
				longest = max(longest, wait)
				c.True("wait", wait >= least, "sent again %v after the NAK, the timer is %v", wait, least)
			}
		}
		c.Observe(fmt.Sprintf("wait of code %d within twice the timer", code), longest <= 2*least)
	}
}
