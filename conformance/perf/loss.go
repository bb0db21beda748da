package perf

import (
	"fmt"
	"math"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// mtu is the path MTU of the cases about loss.
const mtu = 1024

func optionsForLoss() kit.Options {
	o := options()
	o.MTU, o.Timeout = verbs.MTU1024, 10 // 4.2 ms
	return o
}

// writeLatency is the time of a small write, from post to completion.
func (b *bed) writeLatency(c *spec.C) time.Duration {
	start := now(c)
	b.q.Post(c, b.far.WriteTo(1, 0, b.mem.SGE(0, 8)))
	kit.ExpectSuccess(c, b.q.SendCQ, 1)
	return now(c) - start
}

// timeout is what the loss of a packet costs that nothing follows.
func (b *bed) timeout(c *spec.C) time.Duration {
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: b.b.QPN, Count: 1, Action: verbs.WireDrop})
	defer kit.ClearRules(c)
	return b.writeLatency(c)
}

// oneDrop loses one packet in the middle of a write and returns how long it took until
// it was sent again.
func (b *bed) oneDrop(c *spec.C) time.Duration {
	const packets = 32
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: b.b.QPN,
		Opcode: uint8(roce.RCWriteMiddle), Skip: 4, Count: 1, Action: verbs.WireDrop})
	ps := kit.Tap(c, func() {
		b.q.Post(c, b.far.WriteTo(1, 0, b.mem.SGE(0, packets*mtu)))
		kit.ExpectSuccess(c, b.q.SendCQ, 1)
	})
	kit.ClearRules(c)
	var lost *kit.Packet
	for _, p := range kit.PacketsTo(ps, b.b.QPN) {
		switch {
		case p.Acted == verbs.WireDrop:
			lost = &p
		case lost != nil && p.PSN() == lost.PSN():
			return p.At - lost.At
		}
	}
	c.Failf("the packet was not lost and sent again")
	return 0
}

func recovery(c *spec.C) {
	b := connect(c, optionsForLoss(), 64<<10)
	b.writeLatency(c) // the first is not like the others
	rtt := b.writeLatency(c)
	took := b.oneDrop(c)
	c.Observe("round trip and time to the retransmission, ns", []int64{rtt.Nanoseconds(), took.Nanoseconds()})
	c.True("retransmission", took < 10*rtt, "%v after the loss, ten round trips are %v", took, 10*rtt)
}

// goodputUnderLoss compares the time that a stream takes with that of go-back-N: each
// loss costs what one loss was measured to cost alone, and one that is lost again, as
// often as that may be expected and two sigma more, a timeout.
func goodputUnderLoss(c *spec.C) {
	const message, messages = 64 << 10, 512
	b := connect(c, optionsForLoss(), message)
	each, timeout := b.oneDrop(c), b.timeout(c)
	f := b.writes(message)
	f.window, f.signal = 16, 4
	clean := f.run(c, messages)
	before := perSecond(messages*message, clean)
	c.Observe("without loss, Gb/s", threeDigits(8*before/1e9))
	for _, perMillion := range []uint32{10, 100, 1000, 10_000} {
		kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: b.b.QPN,
			Opcode: uint8(roce.RCWriteMiddle), PerMillion: perMillion, Action: verbs.WireDrop})
		took := f.run(c, messages)
		kit.ClearRules(c)
		losses := float64(messages*message/mtu) * float64(perMillion) / 1e6
		again := losses * float64(perMillion) / 1e6
		model := clean + time.Duration((losses+1)*float64(each)+(again+2*math.Sqrt(again))*float64(timeout))
		rate := perSecond(messages*message, took)
		what := fmt.Sprintf("loss of %d in a million", perMillion)
		c.Observe(what+", Gb/s", threeDigits(8*rate/1e9))
		c.True(what, took <= 4*model, "%v, where go-back-N takes %v", took, model)
		c.True(what+" is not faster than less", rate <= before*(1+slack), "%.3g after %.3g Gb/s", 8*rate/1e9, 8*before/1e9)
		before = rate
	}
}
