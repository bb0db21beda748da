package random

import (
	"math/bits"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// What rules and packets are drawn from: values that differ in few bits, so that rules overlap and
// packets are close to them.
var (
	flowStations = [][6]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 3}, {2, 0, 0, 0, 0x80, 1}, {6, 0, 0, 0, 0, 1}}
	flowGroups   = [][6]byte{{1, 0, 0x5e, 0, 0, 5}, {1, 0, 0x5e, 0, 0, 4}, {0x33, 0x33, 0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	flowMACMasks = [][6]byte{{}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1}, {0xff, 0xff, 0xff}, {5: 1}, {4: 0x80}}
	flowTags     = []uint16{5, 4, 7<<13 | 5, 0x805, 1<<12 | 5, 0xfff, 0}
	flowTCIMasks = []uint16{0xfff, 0xe000, 0xffff, 1, 0x1000, 0x800}
	flowTypes    = []uint16{roce.EtherTypeIPv4, roce.EtherTypeIPv6, kit.TypeExperimental + 1, 0x0806}

	flowIPv4 = [][16]byte{{198, 18, 0, 1}, {198, 18, 0, 3}, {198, 18, 128, 1}, {198, 19, 0, 1}, {70, 18, 0, 1}}
	flowIPv6 = [][16]byte{{0x20, 1, 0xd, 0xb8, 15: 1}, {0x20, 1, 0xd, 0xb8, 15: 3}, {0x20, 1, 0xd, 0xb8, 7: 1, 15: 1}, {0x20, 1, 0xd, 0xb8, 8: 0x80, 15: 1}, {0xa0, 1, 0xd, 0xb8, 15: 1}}
	// Of groups, as destinations.
	flowGroupsIPv4 = [][16]byte{{224, 0, 0, 9}, {239, 18, 0, 1}}
	flowGroupsIPv6 = [][16]byte{{0xff, 2, 15: 5}}
	flowPrefixes   = []int{0, 0, 1, 15, 16, 17, 24, 31, 32, 64, 65, 127, 128}
	flowClasses    = []uint8{0, 1, 2, 3, 4, 0xa9, 0xfc, 0xff, 0x80}
	flowClassMasks = []uint8{0, 0, 0, 0xff, 0xfc, 3, 0x80, 4}
	flowProtos     = []uint8{ether.ProtoTCP, roce.ProtoUDP, roce.ProtoUDP, 253}
	flowPorts      = []uint16{1000, 1001, 0x83e8, 2000, 7, 0xffff}
	flowPortMasks  = []uint16{0, 0xffff, 0xffff, 1, 0x8000, 0xff00, 0x03e8}
	flowPriorities = []uint16{1, 1, 2, 2, 3, 7, 8, 14, 15, 16}
	flowLengths    = []int{60, 61, 64, 100, 127, 128, 255, 256, 1000, 1400}
)

// drawFlows draws a program: the same seed gives the same one.
func drawFlows(seed uint64) FlowProgram {
	r := source{spec.NewRand(seed*0x9e3779b97f4a7c15 + 16)}
	var p FlowProgram
	var rules []verbs.FlowAttr
	for range r.between(4, maxFlowSteps) {
		s := FlowStep{Kind: pick(r, []string{FlowCreate, FlowCreate, FlowDestroy, FlowSend, FlowSend, FlowSend, FlowSend})}
		if len(rules) == 0 {
			s.Kind = FlowCreate
		}
		switch s.Kind {
		case FlowCreate:
			s.QP, s.Rule = r.IntN(flowQPs), flowRule(r)
			if n := r.IntN(5); n == 0 && len(rules) > 0 { // one that is there, to the same or another queue pair
				s.Rule = pick(r, rules)
			} else if n < 3 && len(rules) > 0 {
				s.Rule = flowBeside(r, pick(r, rules))
			}
			if s.validRule() != nil {
				continue
			}
			rules = append(rules, s.Rule)
		case FlowDestroy:
			s.N = r.IntN(4)
		case FlowSend:
			for range 20 {
				s.Packet, s.Length = flowPacket(r, rules), pick(r, flowLengths)
				if s.validPacket() == nil {
					break
				}
			}
		}
		if s.valid() == nil {
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}

// flowRule is a rule.
func flowRule(r source) verbs.FlowAttr {
	a := verbs.FlowAttr{Priority: pick(r, flowPriorities)}
	switch r.IntN(12) {
	case 0:
		a.Type = verbs.FlowAllDefault
	case 1:
		a.Type = verbs.FlowMulticastDefault
	}
	base := flowBase(r)
	if r.oneIn(2) {
		a.Specs = append(a.Specs, ethernetSpec(r, &base))
	}
	if base.IP() != 0 && !r.oneIn(3) {
		a.Specs = append(a.Specs, ipSpec(r, &base))
	}
	if base.Ports() && r.oneIn(2) {
		t := verbs.FlowSpecTCP
		if base.Proto == roce.ProtoUDP != r.oneIn(12) { // seldom the other one
			t = verbs.FlowSpecUDP
		}
		a.Specs = append(a.Specs, verbs.FlowSpec{Type: t, Val: verbs.FlowFilter{SrcPort: base.SrcPort, DstPort: base.DstPort},
			Mask: verbs.FlowFilter{SrcPort: pick(r, flowPortMasks), DstPort: pick(r, flowPortMasks)}})
	}
	if r.oneIn(4) {
		r.Shuffle(len(a.Specs), func(i, k int) { a.Specs[i], a.Specs[k] = a.Specs[k], a.Specs[i] })
	}
	if r.oneIn(6) {
		a.Specs = append(a.Specs, verbs.FlowSpec{Type: verbs.FlowSpecDrop})
	}
	if r.oneIn(5) {
		a.Specs = append(a.Specs, verbs.FlowSpec{Type: verbs.FlowSpecTag, Tag: pick(r, []uint32{0, 1, 0x800000, 1<<24 - 1, 1 << 24})})
	}
	return a
}

// flowBeside is a rule with the masks of another one, and a value that differs in one bit.
func flowBeside(r source, a verbs.FlowAttr) verbs.FlowAttr {
	a.Specs = slices.Clone(a.Specs)
	if len(a.Specs) == 0 {
		return a
	}
	x := &a.Specs[r.IntN(len(a.Specs))]
	v, m := &x.Val, &x.Mask
	var ways []func()
	list := func(v, m []byte) {
		for i := range m {
			if m[i] != 0 {
				ways = append(ways, func() { v[i] ^= 1 << bits.TrailingZeros8(m[i]) }, func() { v[i] ^= 0x80 >> bits.LeadingZeros8(m[i]) })
			}
		}
	}
	word := func(v *uint16, m uint16) {
		if m != 0 {
			ways = append(ways, func() { *v ^= 1 << bits.TrailingZeros16(m) }, func() { *v ^= 0x8000 >> bits.LeadingZeros16(m) })
		}
	}
	list(v.SrcMAC[:], m.SrcMAC[:])
	list(v.SrcIP[:], m.SrcIP[:])
	list(v.DstIP[:], m.DstIP[:])
	word(&v.VLANTag, m.VLANTag)
	word(&v.SrcPort, m.SrcPort)
	word(&v.DstPort, m.DstPort)
	if m.TOS != 0 {
		ways = append(ways, func() { v.TOS ^= m.TOS & -m.TOS })
	}
	if len(ways) > 0 {
		pick(r, ways)()
	}
	return a
}

func ethernetSpec(r source, p *ether.Packet) verbs.FlowSpec {
	s := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{DstMAC: p.DstMAC, SrcMAC: p.SrcMAC, EtherType: p.EtherType, VLANTag: p.TCI},
		Mask: verbs.FlowFilter{DstMAC: pick(r, flowMACMasks), SrcMAC: pick(r, flowMACMasks), EtherType: pick(r, []uint16{0, 0xffff, 0xffff})}}
	if p.Tagged || r.oneIn(6) {
		s.Mask.VLANTag = pick(r, flowTCIMasks)
	}
	switch r.IntN(24) {
	case 0:
		s.Mask.EtherType = 0xff00
	case 1:
		s.Val.EtherType = pick(r, flowTypes)
	}
	return s
}

func ipSpec(r source, p *ether.Packet) verbs.FlowSpec {
	s := verbs.FlowSpec{Type: verbs.FlowSpecIPv6, Val: verbs.FlowFilter{SrcIP: p.SrcIP, DstIP: p.DstIP, Proto: p.Proto, TOS: p.TOS, TTL: p.TTL},
		Mask: verbs.FlowFilter{SrcIP: prefix(pick(r, flowPrefixes)), DstIP: prefix(pick(r, flowPrefixes)), Proto: pick(r, []uint8{0, 0, 0xff}), TOS: pick(r, flowClassMasks)}}
	if r.oneIn(30) {
		s.Mask.TTL = 0xff
	}
	if p.IP() == 4 {
		s.Type = verbs.FlowSpecIPv4Ext
		if r.oneIn(4) {
			s.Type = verbs.FlowSpecIPv4
		}
	}
	return s
}

// prefix is a mask of the first n bits.
func prefix(n int) (m [16]byte) {
	for i := range n {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// flowBase is a packet by itself.
func flowBase(r source) ether.Packet {
	p := ether.Packet{DstMAC: portMAC, SrcMAC: pick(r, flowStations), EtherType: pick(r, flowTypes)}
	if r.oneIn(3) {
		p.DstMAC = pick(r, flowGroups)
	}
	if r.oneIn(4) {
		p.Tagged, p.TCI = true, pick(r, flowTags)
	}
	if p.IP() == 0 {
		return p
	}
	stations, groups := flowIPv4, flowGroupsIPv4
	if p.IP() == 6 {
		stations, groups = flowIPv6, flowGroupsIPv6
	}
	p.SrcIP, p.DstIP = pick(r, stations), pick(r, stations)
	if r.oneIn(5) {
		p.DstIP = pick(r, groups)
	}
	p.Proto, p.TOS, p.TTL = pick(r, flowProtos), pick(r, flowClasses), pick(r, []uint8{64, 1, 255})
	if p.Ports() {
		p.SrcPort, p.DstPort = pick(r, flowPorts), pick(r, flowPorts)
	}
	return p
}

// flowPacket is a packet that a rule matches, or nearly.
func flowPacket(r source, rules []verbs.FlowAttr) ether.Packet {
	p := flowBase(r)
	if r.oneIn(8) {
		return p
	}
	rule := pick(r, rules)
	for i := range rule.Specs {
		fit(&p, &rule.Specs[i])
	}
	for range min(r.IntN(4), r.IntN(3)) {
		change(r, &p, rule)
	}
	return p
}

// fit makes a packet match a spec.
func fit(p *ether.Packet, s *verbs.FlowSpec) {
	word := func(to *uint16, v, m uint16) { *to = *to&^m | v&m }
	octet := func(to *uint8, v, m uint8) { *to = *to&^m | v&m }
	list := func(to, v, m []byte) {
		for i := range to {
			octet(&to[i], v[i], m[i])
		}
	}
	v, m := &s.Val, &s.Mask
	become := func(typ uint16) {
		if p.EtherType != typ {
			p.EtherType = typ
			p.Options, p.Offset, p.More = 0, 0, false
			if p.IP() == 0 {
				*p = ether.Packet{DstMAC: p.DstMAC, SrcMAC: p.SrcMAC, Tagged: p.Tagged, TCI: p.TCI, EtherType: typ}
			}
		}
	}
	switch s.Type {
	case verbs.FlowSpecEth:
		list(p.DstMAC[:], v.DstMAC[:], m.DstMAC[:])
		list(p.SrcMAC[:], v.SrcMAC[:], m.SrcMAC[:])
		if m.EtherType == 0xffff {
			become(v.EtherType)
		}
		if m.VLANTag != 0 {
			p.Tagged = true
			word(&p.TCI, v.VLANTag, m.VLANTag)
		}
	case verbs.FlowSpecIPv4, verbs.FlowSpecIPv4Ext, verbs.FlowSpecIPv6:
		typ, n := uint16(roce.EtherTypeIPv4), 4
		if s.Type == verbs.FlowSpecIPv6 {
			typ, n = roce.EtherTypeIPv6, 16
		}
		become(typ)
		list(p.SrcIP[:n], v.SrcIP[:], m.SrcIP[:])
		list(p.DstIP[:n], v.DstIP[:], m.DstIP[:])
		if n == 4 {
			clear(p.SrcIP[n:])
			clear(p.DstIP[n:])
		}
		if s.Type != verbs.FlowSpecIPv4 {
			octet(&p.Proto, v.Proto, m.Proto)
			octet(&p.TOS, v.TOS, m.TOS)
		}
	case verbs.FlowSpecTCP, verbs.FlowSpecUDP:
		if p.IP() == 0 {
			become(roce.EtherTypeIPv4)
		}
		p.Proto = ether.ProtoTCP
		if s.Type == verbs.FlowSpecUDP {
			p.Proto = roce.ProtoUDP
		}
		word(&p.SrcPort, v.SrcPort, m.SrcPort)
		word(&p.DstPort, v.DstPort, m.DstPort)
	}
}

// change changes something of a packet, mostly what a rule looks at.
func change(r source, p *ether.Packet, rule verbs.FlowAttr) {
	flip := func(b []byte) {
		i := r.IntN(8 * len(b))
		b[i/8] ^= 0x80 >> (i % 8)
	}
	n := 16
	if p.IP() == 4 {
		n = 4
	}
	// The lowest or highest bit of a mask, or the bit beside it.
	edge := func(to *uint16, m uint16) {
		switch bit := bits.TrailingZeros16(m); {
		case m == 0:
			*to ^= 1 << r.IntN(16)
		case r.oneIn(3) && bit > 0:
			*to ^= 1 << (bit - 1)
		case r.oneIn(2):
			*to ^= 1 << bit
		default:
			*to ^= 1 << (15 - bits.LeadingZeros16(m))
		}
	}
	var m verbs.FlowFilter
	if len(rule.Specs) > 0 {
		m = pick(r, rule.Specs).Mask
	}
	switch r.IntN(14) {
	case 0:
		flip(p.SrcMAC[3:])
	case 1:
		p.DstMAC = pick(r, append([][6]byte{portMAC}, flowGroups...))
	case 2:
		if p.Tagged = !p.Tagged; !p.Tagged {
			p.TCI = 0
		}
	case 3:
		if p.Tagged {
			edge(&p.TCI, m.VLANTag)
		}
	case 4:
		flip(p.SrcIP[:n])
	case 5:
		flip(p.DstIP[:n])
	case 6:
		p.TOS ^= 1 << r.IntN(8)
	case 7:
		p.TTL++
	case 8:
		edge(&p.SrcPort, m.SrcPort)
	case 9:
		edge(&p.DstPort, m.DstPort)
	case 10:
		p.Options = uint8(r.IntN(11))
	case 11:
		p.Offset, p.More = pick(r, []uint16{0, 1, 185}), r.oneIn(2)
		if p.Offset > 0 {
			p.SrcPort, p.DstPort = 0, 0
		}
	case 12:
		p.Proto = pick(r, flowProtos)
	case 13:
		p.BadPayload, p.BadHeader = r.oneIn(2), r.oneIn(2) && p.IP() == 4
	}
}
