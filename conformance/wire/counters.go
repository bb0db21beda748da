package wire

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// fcsSize is what the port's octet counters have of a frame beside the recorded bytes.
const fcsSize = 4

func portCounters(c *spec.C) {
	l := connect(c, options(c))
	far := kit.RemoteHost(c)
	near0, far0 := kit.Counters(c, 0), kit.Counters(c, far)
	packets := l.tap(c, func() {
		l.postSuccessfully(c, l.write(1, 10*mtu), l.read(2, 5*mtu), l.write(3, 7))
		c.T.Sleep(20 * time.Microsecond) // the last acknowledgement is polled before the port counts it
	})
	near1, far1 := kit.Counters(c, 0), kit.Counters(c, far)
	var count, octets [2]int // from and to the near port
	for _, p := range packets {
		way := 0
		if p.DestQPN() == l.a.QPN() {
			way = 1
		}
		count[way]++
		octets[way] += octetsOf(l, &p)
	}
	txPackets, txBytes, rxPackets, rxBytes := "tx_packets_phy", "tx_bytes_phy", "rx_packets_phy", "rx_bytes_phy"
	if l.IB {
		txPackets, txBytes, rxPackets, rxBytes = "port_xmit_packets", "port_xmit_data", "port_rcv_packets", "port_rcv_data"
	}
	c.True("traffic both ways", count[0] > 10 && count[1] > 5, "%d packets out, %d in", count[0], count[1])
	for _, x := range []struct {
		name          string
		before, after map[string]uint64
		want          int
	}{
		{txPackets, near0, near1, count[0]}, {txBytes, near0, near1, octets[0]},
		{rxPackets, near0, near1, count[1]}, {rxBytes, near0, near1, octets[1]},
		{rxPackets, far0, far1, count[0]}, {rxBytes, far0, far1, octets[0]},
		{txPackets, far0, far1, count[1]}, {txBytes, far0, far1, octets[1]},
	} {
		c.Equal(x.name, kit.CounterDelta(x.before, x.after, x.name), x.want)
	}
}

func hardwareCounters(c *spec.C) {
	o := options(c)
	o.MinRNRTimer = 12
	l := connect(c, o)
	far := kit.RemoteHost(c)
	// Each step does something n times, and says what must rise by how much.
	step := func(what, name string, host int, body func() int) {
		before := kit.Counters(c, host)
		want := body()
		c.T.Sleep(50 * time.Microsecond)
		kit.ClearRules(c)
		c.Equal(what+": "+name, kit.CounterDelta(before, kit.Counters(c, host), name), want)
	}
	psn := uint32(0) // of the next write
	write := func(n int) {
		l.postSuccessfully(c, l.write(1, n*mtu))
		psn += uint32(n)
	}
	drops := func(n int) {
		for range n {
			kit.Inject(c, l.ruleForRequest(psn+1, verbs.WireDrop))
			write(3)
		}
	}
	step("the second of three packets lost, 4 times", "packet_seq_err", 0, func() int { drops(4); return 4 })
	step("the second of three packets lost, 5 times", "out_of_sequence", far, func() int { drops(5); return 5 })
	step("the last packet lost, twice", "local_ack_timeout_err", 0, func() int {
		for range 2 {
			kit.Inject(c, l.ruleForRequest(psn+1, verbs.WireDrop))
			write(2)
		}
		return 2
	})
	step("5 packets repeated", "duplicate_request", far, func() int {
		r := l.ruleForRequest(psn, verbs.WireDuplicate)
		r.Match, r.Count = verbs.WireMatchDestQPN, 5
		kit.Inject(c, r)
		write(5)
		return 5
	})
	step("a receive posted late", "rnr_nak_retry_err", 0, func() int {
		packets := kit.Tap(c, func() {
			l.a.Post(c, kit.Send(2, l.mem.SGE(0, 8)))
			c.T.Sleep(2 * time.Millisecond)
			l.b.Recv(c, l.far, 1)
			kit.ExpectSuccess(c, l.a.SendCQ, 1)
		})
		naks := len(l.naks(packets, roce.RNRSyndrome(0).Type()))
		c.True("RNR NAKs", naks > 0, "there are none")
		return naks
	})
}

// octetsOf is what a port counts for a packet: bytes with the FCS, or on InfiniBand words
// from the LRH to the ICRC.
func octetsOf(l *link, p *kit.Packet) int {
	if l.IB {
		return p.Len() / 4
	}
	return len(p.B) + fcsSize
}
