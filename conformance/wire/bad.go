package wire

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Offsets in the base transport header, for edits.
const (
	atOpcode = 0
	atPKey   = 2
	atDestQP = 5
)

// edited sends a write whose first transmission is edited on its way, and returns the
// recording. What arrives is not in it, so the oracle is not asked.
func (l *link) edited(c *spec.C, edits ...verbs.ByteEdit) []kit.Packet {
	want := l.mem.FillRandom(c)[:64]
	r := l.ruleForRequest(0, verbs.WireEdit)
	r.Edits = edits
	kit.Inject(c, r)
	packets := kit.Tap(c, func() { l.postSuccessfully(c, l.write(1, 64)) })
	c.Equal("packets edited", kit.ClearRules(c), []int{2}) // met twice, acted once
	c.Equal("bytes", l.far.Get(c, 0, 64), want)
	return packets
}

// ignored says that the edited packet drew no answer: only the second did.
func (l *link) ignored(c *spec.C, packets []kit.Packet) {
	sent := l.requests(packets)
	c.Equal("transmissions", len(sent), 2)
	l.sentAgain(c, sent[1].At-sent[0].At)
	for _, p := range packets {
		if p.DestQPN() != l.b.QPN && p.At < sent[1].At {
			c.Failf("%s to QPN %#x answers the bad packet", p.Info().Name, p.DestQPN())
		}
	}
}

func wrongPKey(c *spec.C) {
	for _, key := range []uint16{0x8001, 0x80ff, 0xff01} { // both bytes, one of them each
		l := connect(c, options(c))
		l.ignored(c, l.edited(c, verbs.ByteEdit{Offset: atPKey, Value: byte(key >> 8)}, verbs.ByteEdit{Offset: atPKey + 1, Value: byte(key)}))
	}
	c.Observe("violation counter", "not read: the target has no counters")
}

func unknownQPN(c *spec.C) {
	l := connect(c, options(c))
	l.ignored(c, l.edited(c, verbs.ByteEdit{Offset: atDestQP, Value: 0x7f}, verbs.ByteEdit{Offset: atDestQP + 1, Value: 0xff}))
}

func otherTransport(c *spec.C) {
	l := connect(c, options(c))
	l.ignored(c, l.edited(c, verbs.ByteEdit{Offset: atOpcode, Value: uint8(roce.UC.Opcode(roce.OpWriteOnly))}))
}

func middleFirst(c *spec.C) {
	l := connect(c, options(c))
	l.b.Recv(c, l.far, 1)
	r := l.ruleForRequest(0, verbs.WireEdit)
	r.Edits = []verbs.ByteEdit{{Offset: atOpcode, Value: uint8(roce.RCSendMiddle)}}
	l.refused(c, r, kit.Send(1, l.mem.SGE(0, 3*mtu)), 0)
	c.Equal("the receive", l.b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCWRFlushErr})
}

func shortMiddle(c *spec.C) {
	l := connect(c, options(c))
	r := l.ruleForRequest(1, verbs.WireEdit)
	r.Edits = []verbs.ByteEdit{{Offset: atOpcode, Value: uint8(roce.RCWriteMiddle)}}
	l.refused(c, r, l.write(1, mtu+100), 1)
}

// refused sends a request whose nth packet is edited; it draws an invalid request NAK.
func (l *link) refused(c *spec.C, r verbs.WireRule, wr verbs.SendWR, n uint32) {
	kit.Inject(c, r)
	packets := kit.Tap(c, func() { c.Status("request", l.a.PostAndPoll(c, wr), verbs.WCRemInvReqErr) })
	naks := l.naks(packets, roce.SyndromeTypeNAK)
	c.Equal("NAKs", len(naks), 1)
	for _, nak := range naks {
		c.Equal("syndrome", nak.AETH().Syndrome(), roce.NAKInvalidRequest)
		c.Equal("PSN of the NAK", nak.PSN(), l.psn(n))
	}
	c.Equal("state", l.a.QueryState(c), verbs.QPSErr)
}

// Offsets before the base transport header: IPv4 and IPv6 headers end with the destination address,
// 8 bytes of UDP before it.
const (
	atLastOfDestination = -9
	atTTL               = -20 // of IPv4
	atHopLimit          = -41 // of IPv6
)

// otherDestination has a packet name another IP address as its destination.
func otherDestination(c *spec.C) {
	l := connect(c, options(c))
	l.ignored(c, l.edited(c, verbs.ByteEdit{Offset: atLastOfDestination, Value: l.far.Process.GID[15] ^ 0x40}))
}

// changedOnTheWay changes a byte of a packet's headers, one after the other, and leaves the ICRC as
// it was: the packet is dropped and sent again. The TTL, which routers change, is not covered.
func changedOnTheWay(c *spec.C) {
	l := connect(c, options(c))
	covered := []int{atOpcode, 1, atPKey, atPKey + 1, atDestQP, atDestQP + 2, 8, 9, 11, roce.BTHSize, roce.BTHSize + 7, roce.BTHSize + 8, roce.BTHSize + 15}
	n := uint32(0)
	for _, at := range covered {
		l.changedOnce(c, n, at, false)
		n++
	}
	at := atTTL
	if !roce.GID(l.GID.GID).IsIPv4() {
		at = atHopLimit
	}
	l.changedOnce(c, n, at, true)
}

// changedOnce sends the nth packet with one byte changed, and says whether it is to be taken at
// once.
func (l *link) changedOnce(c *spec.C, n uint32, at int, taken bool) {
	var was byte
	packets := kit.Tap(c, func() { l.postSuccessfully(c, l.write(1, 64)) })
	for _, p := range l.requests(packets) {
		was = p.B[p.BTHOffset()+at]
	}
	want := l.mem.FillRandom(c)[:64]
	r := l.ruleForRequest(2*n+1, verbs.WireSpoil)
	if at == 11 { // the PSN of this one is one higher
		was++
	}
	r.Edits = []verbs.ByteEdit{{Offset: at, Value: was ^ 0x20}}
	kit.Inject(c, r)
	packets = kit.Tap(c, func() { l.postSuccessfully(c, l.write(2, 64)) })
	kit.ClearRules(c)
	times := 2
	if taken {
		times = 1
	}
	c.Equal(fmt.Sprintf("transmissions with the byte at %d changed", at), len(l.requests(packets)), times)
	c.Equal("bytes", l.far.Get(c, 0, 64), want)
}
