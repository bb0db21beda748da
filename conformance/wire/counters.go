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
	l := connect(c, options())
<<<<<<< HEAD
	far := kit.Far(c)
	near0, far0 := kit.Counters(c, 0), kit.Counters(c, far)
	packets := l.tap(c, func() {
		l.good(c, l.write(1, 10*mtu), l.read(2, 5*mtu), l.write(3, 7))
		c.T.Sleep(20 * time.Microsecond) // the last acknowledgement is polled before the port counts it
=======
	names := []string{"port_xmit_packets", "port_rcv_packets", "port_xmit_data", "port_rcv_data"}
	near, far := kit.Counters(c, 0, names...), kit.Counters(c, kit.Far(c), names...)
	packets := l.tap(c, func() { l.good(c, l.write(1, 10_000), l.read(2, 5_000), l.write(3, 1), l.write(4, 64)) })
	settle(c)
	ways := []struct {
		name     string
		ps       []kit.Packet
		from, to int
	}{{"requests", l.requests(packets), 0, kit.Far(c)}, {"responses", l.responses(packets), kit.Far(c), 0}}
	before := map[int]map[string]uint64{0: near, kit.Far(c): far}
	for _, w := range ways {
		bytes := 0
		for i := range w.ps {
			bytes += len(w.ps[i].Frame)
		}
		rose := func(host int, name string) uint64 { return kit.Counter(c, host, name) - before[host][name] }
		c.Equal(w.name+": port_xmit_packets", rose(w.from, "port_xmit_packets"), uint64(len(w.ps)))
		c.Equal(w.name+": port_rcv_packets", rose(w.to, "port_rcv_packets"), uint64(len(w.ps)))
		for i, name := range []string{"port_xmit_data", "port_rcv_data"} {
			octets := int(4 * rose([]int{w.from, w.to}[i], name))
			least, most := bytes-len(w.ps)*(roce.EthernetSize+roce.ICRCSize+4), bytes+24*len(w.ps)
			c.True(w.name+": "+name, octets >= least && octets <= most, "%d bytes, the frames have %d in %d packets", octets, bytes, len(w.ps))
		}
	}
}

// errorCounters are the counters that a fault on the wire moves.
var errorCounters = []string{"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "duplicate_request", "rnr_nak_retry_err"}

// injectedErrors makes each error a known number of times and looks at the counters of
// both ends.
func injectedErrors(c *spec.C) {
	e, other := open(c)
	for _, x := range []struct {
		name      string
		do        func(l *link)
		near, far map[string]uint64
	}{
		{"a packet lost before the last", func(l *link) {
			kit.Inject(c, l.toFar(1, verbs.WireDrop))
			l.good(c, l.write(1, 3*mtu))
		}, map[string]uint64{"packet_seq_err": 1}, map[string]uint64{"out_of_sequence": 1}},
		{"the only packet lost twice", func(l *link) {
			r := l.toFar(0, verbs.WireDrop)
			r.Count = 2
			kit.Inject(c, r)
			l.good(c, l.write(1, 10))
		}, map[string]uint64{"local_ack_timeout_err": 2}, nil},
		{"a packet that arrives twice", func(l *link) {
			kit.Inject(c, l.toFar(1, verbs.WireDuplicate))
			l.good(c, l.write(1, 3*mtu))
		}, nil, map[string]uint64{"duplicate_request": 1}},
		{"an acknowledgement lost", func(l *link) {
			kit.Inject(c, l.toNear(roce.RCAcknowledge, verbs.WireDrop))
			l.good(c, l.write(1, 10))
		}, map[string]uint64{"local_ack_timeout_err": 1}, map[string]uint64{"duplicate_request": 1}},
	} {
		l := join(c, e, other, options(), func(*verbs.QPAttr) {})
		before := [2]map[string]uint64{kit.Counters(c, 0, errorCounters...), kit.Counters(c, kit.Far(c), errorCounters...)}
		x.do(l)
		settle(c)
		kit.ClearRules(c)
		rose(c, x.name, before, x.near, x.far)
	}
	notReady(c, e, other)
}

// rose compares what counters grew by with what is due; the rest must stand still.
func rose(c *spec.C, what string, before [2]map[string]uint64, near, far map[string]uint64) {
	for i, want := range []map[string]uint64{near, far} {
		host := []int{0, kit.Far(c)}[i]
		for _, n := range errorCounters {
			c.Equal(fmt.Sprintf("%s: %s of host %d", what, n, i), kit.Counter(c, host, n)-before[i][n], want[n])
		}
	}
}

// notReady sends to a QP without receives for a while; the wire says how often.
func notReady(c *spec.C, e *kit.Env, other *kit.Other) {
	o := options()
	o.MinRNRTimer = 14 // 1.28 ms
	l := join(c, e, other, o, func(*verbs.QPAttr) {})
	before := [2]map[string]uint64{kit.Counters(c, 0, errorCounters...), kit.Counters(c, kit.Far(c), errorCounters...)}
	packets := kit.Tap(c, func() {
		l.a.Post(c, kit.Send(1, l.mem.SGE(0, 8)))
		c.T.Sleep(5 * time.Millisecond)
		l.b.Recv(c, l.far, 1)
		kit.Good(c, l.a.SCQ, 1)
>>>>>>> f8d597b (PERF: cases that do not depend on ties; threads end in the order of the clocks)
	})
	near1, far1 := kit.Counters(c, 0), kit.Counters(c, far)
	var count, octets [2]int // from and to the near port
	for _, p := range packets {
		way := 0
		if p.To() == l.a.QPN() {
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
		c.Equal(x.name, kit.Growth(x.before, x.after, x.name), x.want)
	}
}

func hardwareCounters(c *spec.C) {
	o := options()
	o.MinRNRTimer = 12
	l := connect(c, o)
	far := kit.Far(c)
	// Each step does something n times, and says what must rise by how much.
	step := func(what, name string, host int, body func() int) {
		before := kit.Counters(c, host)
		want := body()
		c.T.Sleep(50 * time.Microsecond)
		kit.ClearRules(c)
		c.Equal(what+": "+name, kit.Growth(before, kit.Counters(c, host), name), want)
	}
	psn := uint32(0) // of the next write
	write := func(n int) {
		l.good(c, l.write(1, n*mtu))
		psn += uint32(n)
	}
	drops := func(n int) {
		for range n {
			kit.Inject(c, l.toFar(psn+1, verbs.WireDrop))
			write(3)
		}
	}
	step("the second of three packets lost, 3 times", "packet_seq_err", 0, func() int { drops(3); return 3 })
	step("the second of three packets lost, 4 times", "out_of_sequence", far, func() int { drops(4); return 4 })
	step("the last packet lost, twice", "local_ack_timeout_err", 0, func() int {
		for range 2 {
			kit.Inject(c, l.toFar(psn+1, verbs.WireDrop))
			write(2)
		}
		return 2
	})
	step("5 packets repeated", "duplicate_request", far, func() int {
		r := l.toFar(psn, verbs.WireDuplicate)
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
			kit.Good(c, l.a.SCQ, 1)
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
	return len(p.Frame) + fcsSize
}
