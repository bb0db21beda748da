package wire

import (
	"bytes"

	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// atLength is the offset of the length in a RETH behind the base transport header.
const atLength = roce.BTHSize + 12

// withLength are the edits that put another length into a RETH.
func withLength(n uint32) []verbs.ByteEdit {
	var edits []verbs.ByteEdit
	for i := range 4 {
		edits = append(edits, verbs.ByteEdit{Offset: atLength + i, Value: byte(n >> (24 - 8*i))})
	}
	return edits
}

// writeLength edits the length that a WRITE announces: its packets bring less, or more.
func writeLength(c *spec.C) {
	e, other := open(c)
	for _, tc := range []struct {
		n, length int
		refused   uint32 // packet
	}{{64, 65, 0}, {64, 67, 0}, {mtu + 8, mtu + 9, 1}, {3 * mtu, mtu + 10, 1}, {3 * mtu, 2*mtu + 1, 2}} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		l.mem.FillRandom(c)
		before := c.Rand().Bytes(4 * mtu)
		l.far.Set(c, 0, before)
		r := l.ruleForRequest(0, verbs.WireEdit)
		r.Edits = withLength(uint32(tc.length))
		l.refused(c, r, l.write(1, tc.n), tc.refused)
		kit.ClearRules(c)
		behind := min(tc.length, tc.n)
		c.Equal(fmt.Sprintf("memory behind the first %d bytes of a WRITE of %d", behind, tc.n), l.far.Get(c, behind, 4*mtu-behind), before[behind:])
	}
}

// wholeRange has a WRITE and a READ end a packet beyond the region: neither is begun.
func wholeRange(c *spec.C) {
	e, other := open(c)
	const inside, n = 2 * mtu, 3 * mtu
	l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
	l.mem.FillRandom(c)
	before := c.Rand().Bytes(inside)
	l.far.Set(c, size-inside, before)
	packets := kit.Tap(c, func() {
		c.Status("write beyond the end", l.a.PostAndPoll(c, l.far.WriteTo(1, size-inside, l.mem.SGE(0, n))), verbs.WCRemAccessErr)
	})
	naks := l.naks(packets, roce.SyndromeTypeNAK)
	c.Equal("NAKs", len(naks), 1)
	c.Equal("PSN of the NAK", naks[0].PSN(), l.psn(0))
	got := l.far.Get(c, size-inside, inside)
	c.True("nothing is written", bytes.Equal(got, before), "of %d bytes before the end of the region some have changed", inside)

	l = join(c, e, other, options(c), func(*verbs.QPAttr) {})
	mine := l.mem.FillRandom(c)[:n]
	packets = kit.Tap(c, func() {
		c.Status("read beyond the end", l.a.PostAndPoll(c, l.far.ReadFrom(2, size-inside, l.mem.SGE(0, n))), verbs.WCRemAccessErr)
	})
	c.Equal("responses with data", len(l.responses(packets, roce.RCReadResponseFirst, roce.RCReadResponseMiddle)), 0)
	c.Equal("memory of the requester", l.mem.Get(c, 0, n), mine)
}

// badReadData edits the first packet of a READ's data: it claims to be all of it, is a byte
// short, or comes with a NAK.
func badReadData(c *spec.C) {
	e, other := open(c)
	for _, tc := range []struct {
		name string
		edit verbs.ByteEdit
	}{
		{"Only", verbs.ByteEdit{Offset: atOpcode, Value: uint8(roce.RCReadResponseOnly)}},
		{"one byte of padding", verbs.ByteEdit{Offset: 1, Value: 0x50}},
		{"the syndrome of a NAK", verbs.ByteEdit{Offset: roce.BTHSize, Value: uint8(roce.NAKRemoteAccess)}},
	} {
		l := join(c, e, other, options(c), func(*verbs.QPAttr) {})
		r := l.ruleForResponse(roce.RCReadResponseFirst, verbs.WireEdit)
		r.Edits = []verbs.ByteEdit{tc.edit}
		kit.Inject(c, r)
		c.Status("first of three packets edited: "+tc.name, l.a.PostAndPoll(c, l.read(1, 3*mtu)), verbs.WCBadRespErr)
		c.Equal("packets edited", kit.ClearRules(c), []int{1})
	}
}
