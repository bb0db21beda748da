package wire

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// cnpInterval is the least time between two notifications that mlx5 devices keep by
// default (Yu et al., Lumina, SIGCOMM 2023, section 6.3).
const cnpInterval = 4 * time.Microsecond

// markRequests marks the first n requests "congestion experienced".
func (l *link) markRequests(n int) verbs.WireRule {
	return verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: l.b.QPN, Count: n, Action: verbs.WireMark}
}

func notification(c *spec.C) {
	l := connect(c, options(c))
	kit.Inject(c, l.markRequests(1000))
	var writes []verbs.SendWR
	for i := range 16 {
		writes = append(writes, l.write(uint64(i), 16*mtu))
	}
	packets := l.tap(c, func() { l.postSuccessfully(c, writes...) })
	kit.ClearRules(c)
	cnps := l.responses(packets, roce.CNPacket)
	c.True("notified", len(cnps) >= 2, "%d notifications for %d marked packets", len(cnps), len(l.requests(packets)))
	c.True("fewer notifications than marks", len(cnps) < len(l.requests(packets)), "%d notifications for %d marked packets", len(cnps), len(l.requests(packets)))
	least := time.Duration(1<<63 - 1)
	for i, p := range cnps {
		h := p.BTH()
		c.True("BECN, and no AckReq", h.BECN() && !h.AckReq(), "BECN %t, AckReq %t", h.BECN(), h.AckReq())
		c.Equal("PSN", p.PSN(), uint32(0))
		c.Equal("reserved bytes", p.Ext(), make([]byte, roce.CNPReservedSize))
		c.True("not marked itself", p.TrafficClass()&3 != 3, "traffic class %#x", p.TrafficClass())
		if i > 0 {
			least = min(least, p.At-cnps[i-1].At)
		}
	}
	c.True("interval", least >= cnpInterval, "two notifications within %v, at least %v are due", least, cnpInterval)
	c.Observe("least interval", least)

	packets = kit.Tap(c, func() { l.postSuccessfully(c, l.write(99, 16*mtu)) })
	c.Equal("notifications without marks", len(l.responses(packets, roce.CNPacket)), 0)
}

// requestSpan is the time between the first and the last request packet of a long write.
func (l *link) requestSpan(c *spec.C) time.Duration {
	packets := l.requests(kit.Tap(c, func() { l.postSuccessfully(c, l.write(1, size)) }))
	return packets[len(packets)-1].At - packets[0].At
}

func reaction(c *spec.C) {
	l := connect(c, options(c))
	before := l.requestSpan(c)
	kit.Inject(c, l.markRequests(16))
	l.postSuccessfully(c, l.write(1, size))
	kit.ClearRules(c)
	slow := l.requestSpan(c)
	c.True("slower after notifications", slow > before+before/4, "%d bytes took %v before, %v after notifications", size, before, slow)
	c.T.Sleep(20 * time.Millisecond)
	later := l.requestSpan(c)
	c.True("faster again later", later < slow, "%d bytes took %v after notifications, %v 20 ms later", size, slow, later)
	c.Observe("times", []time.Duration{before, slow, later})
}
