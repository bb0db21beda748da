package raw

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// isSuccess is the name of no errno.
var isSuccess = match.Satisfy("success", func(errno string) bool { return errno == "0" })

// matches checks that a rule to the first QP takes a packet, and not the packet with each of some
// changes. The second QP gets what the rule does not.
func matches(c *spec.C, s *kit.Steered, what string, specs []verbs.FlowSpec, p ether.Packet, no, yes []func(p *ether.Packet)) {
	destroy := s.To[0].NewFlow(c, with(kit.FlowOf(specs...), func(a *verbs.FlowAttr) { a.Priority = 1 }))
	s.ExpectAt(c, what+": the packet", build(c, &p, 60), 0)
	for i, change := range no {
		q := p
		change(&q)
		s.ExpectAt(c, fmt.Sprintf("%s: another one, %d", what, i+1), build(c, &q, 60), 1)
	}
	for i, change := range yes {
		q := p
		change(&q)
		s.ExpectAt(c, fmt.Sprintf("%s: what is not masked, %d", what, i+1), build(c, &q, 60), 0)
	}
	destroy(c)
}

// steeredTwice is two receivers, of which the second has the packets from src that no other rule
// takes.
func steeredTwice(c *spec.C) *kit.Steered {
	s := kit.NewSteered(c, 2)
	all := verbs.FlowSpec{Type: verbs.FlowSpecEth, Val: verbs.FlowFilter{SrcMAC: src}, Mask: verbs.FlowFilter{SrcMAC: [6]byte{0xff, 0xff, 0xff, 0xff}}}
	s.To[1].NewFlow(c, with(kit.FlowOf(all), func(a *verbs.FlowAttr) { a.Priority = lastPriority }))
	return s
}

type change = func(p *ether.Packet)

func vlans(c *spec.C) {
	s := steeredTwice(c)
	const tci = 5<<13 | 1<<12 | 0x7a5
	p := *plain(s)
	p.Tagged, p.TCI = true, tci
	eth := func(mask uint16) []verbs.FlowSpec {
		e := kit.EthFlow(kit.TypeExperimental)
		e.Val.VLANTag, e.Mask.VLANTag = tci, mask
		return []verbs.FlowSpec{e}
	}
	flip := func(bit int) change { return func(p *ether.Packet) { p.TCI ^= 1 << bit } }
	untagged := func(p *ether.Packet) { p.Tagged = false }
	inner := func(p *ether.Packet) { p.EtherType++ }
	matches(c, s, "all of the tag", eth(0xffff), p, []change{flip(0), flip(11), flip(12), flip(13), flip(15), untagged, inner}, nil)
	matches(c, s, "the number", eth(0x0fff), p, []change{flip(0), flip(7), flip(11), untagged}, []change{flip(12), flip(13), flip(15)})
	matches(c, s, "the priority", eth(0xe000), p, []change{flip(13), flip(15), untagged}, []change{flip(0), flip(12)})
	matches(c, s, "one bit of the number", eth(0x0100), p, []change{flip(8), untagged}, []change{flip(0), flip(7), flip(9), flip(15)})
	matches(c, s, "no tag", eth(0), p, []change{inner}, []change{untagged, flip(0), flip(15)})
}

// address flips a bit of an address, counted from its first.
func address(get func(p *ether.Packet) *[16]byte, bit int) change {
	return func(p *ether.Packet) { get(p)[bit/8] ^= 0x80 >> (bit % 8) }
}

func srcIP(p *ether.Packet) *[16]byte { return &p.SrcIP }

func dstIP(p *ether.Packet) *[16]byte { return &p.DstIP }

// ones is a mask of the first n bits of an address.
func ones(n int) (m [16]byte) {
	for i := range n {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// otherType is a packet of another kind with the same bytes.
func otherType(p *ether.Packet) { p.EtherType = kit.TypeExperimental + 1 }

func fieldsOfIPv4(c *spec.C) {
	s := steeredTwice(c)
	p := *plain(s)
	p.EtherType, p.Proto, p.TOS, p.TTL, p.SrcPort, p.DstPort = roce.EtherTypeIPv4, roce.ProtoUDP, 0xa9, 64, 1000, 2000
	p.SrcIP, p.DstIP = [16]byte{198, 18, 5, 7}, [16]byte{198, 19, 250, 129}
	proto := func(p *ether.Packet) { p.Proto ^= 1 }
	tos := func(bit int) change { return func(p *ether.Packet) { p.TOS ^= 1 << bit } }
	ttl := func(p *ether.Packet) { p.TTL-- }
	options := func(p *ether.Packet) { p.Options = 3 }
	val := verbs.FlowFilter{SrcIP: p.SrcIP, DstIP: p.DstIP, Proto: p.Proto, TOS: p.TOS, TTL: p.TTL}
	one := func(mask verbs.FlowFilter) []verbs.FlowSpec { return []verbs.FlowSpec{ipv4(val, mask)} }
	matches(c, s, "any IPv4", one(verbs.FlowFilter{}), p, []change{otherType}, []change{ttl, options, proto, address(srcIP, 0)})
	matches(c, s, "source", one(verbs.FlowFilter{SrcIP: ones(32)}), p, []change{address(srcIP, 0), address(srcIP, 15), address(srcIP, 31)}, []change{address(dstIP, 31), proto, tos(0), ttl, options})
	matches(c, s, "destination", one(verbs.FlowFilter{DstIP: ones(32)}), p, []change{address(dstIP, 2), address(dstIP, 23), address(dstIP, 31)}, []change{address(srcIP, 31), proto, tos(7), ttl})
	matches(c, s, "a network", one(verbs.FlowFilter{SrcIP: ones(15), DstIP: ones(25)}), p, []change{address(srcIP, 14), address(dstIP, 24)}, []change{address(srcIP, 15), address(dstIP, 25), address(dstIP, 31)})
	matches(c, s, "protocol", one(verbs.FlowFilter{Proto: 0xff}), p, []change{proto}, []change{address(srcIP, 8), tos(2)})
	matches(c, s, "class", one(verbs.FlowFilter{TOS: 0xff}), p, []change{tos(0), tos(1), tos(2), tos(7)}, []change{proto, ttl})
	matches(c, s, "class without congestion", one(verbs.FlowFilter{TOS: 0xfc}), p, []change{tos(2), tos(7)}, []change{tos(0), tos(1)})
	matches(c, s, "congestion", one(verbs.FlowFilter{TOS: 3}), p, []change{tos(0), tos(1)}, []change{tos(2), tos(7)})
	old := verbs.FlowSpec{Type: verbs.FlowSpecIPv4, Val: val, Mask: verbs.FlowFilter{SrcIP: ones(32), DstIP: ones(32), Proto: 0xff}}
	matches(c, s, "addresses in a spec without the rest", []verbs.FlowSpec{old}, p, []change{address(srcIP, 31), address(dstIP, 30)}, []change{proto, tos(1)})
	matches(c, s, "behind Ethernet", []verbs.FlowSpec{kit.EthFlow(roce.EtherTypeIPv4), ipv4(val, verbs.FlowFilter{SrcIP: ones(32)})}, p, []change{address(srcIP, 3), otherType}, []change{proto, func(p *ether.Packet) { p.Tagged = true }})
}

func fieldsOfIPv6(c *spec.C) {
	s := steeredTwice(c)
	p := *plain(s)
	p.EtherType, p.Proto, p.TOS, p.TTL, p.SrcPort, p.DstPort = roce.EtherTypeIPv6, ether.ProtoTCP, 0x56, 64, 1000, 2000
	p.SrcIP = [16]byte{0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	p.DstIP = [16]byte{0x20, 1, 0xd, 0xb8, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81}
	next := func(p *ether.Packet) { p.Proto ^= 1 }
	class := func(bit int) change { return func(p *ether.Packet) { p.TOS ^= 1 << bit } }
	val := verbs.FlowFilter{SrcIP: p.SrcIP, DstIP: p.DstIP, Proto: p.Proto, TOS: p.TOS}
	one := func(mask verbs.FlowFilter) []verbs.FlowSpec { return []verbs.FlowSpec{ipv6(val, mask)} }
	matches(c, s, "any IPv6", one(verbs.FlowFilter{}), p, []change{otherType}, []change{next, address(srcIP, 0)})
	matches(c, s, "source", one(verbs.FlowFilter{SrcIP: ones(128)}), p, []change{address(srcIP, 0), address(srcIP, 63), address(srcIP, 64), address(srcIP, 127)}, []change{address(dstIP, 0), next})
	matches(c, s, "destination", one(verbs.FlowFilter{DstIP: ones(128)}), p, []change{address(dstIP, 0), address(dstIP, 95), address(dstIP, 96), address(dstIP, 127)}, []change{address(srcIP, 127), class(0)})
	matches(c, s, "networks", one(verbs.FlowFilter{SrcIP: ones(48), DstIP: ones(121)}), p, []change{address(srcIP, 47), address(dstIP, 120)}, []change{address(srcIP, 48), address(dstIP, 121)})
	matches(c, s, "next header", one(verbs.FlowFilter{Proto: 0xff}), p, []change{next}, []change{class(3)})
	matches(c, s, "class", one(verbs.FlowFilter{TOS: 0xff}), p, []change{class(0), class(1), class(2), class(7)}, []change{next})
	matches(c, s, "class without congestion", one(verbs.FlowFilter{TOS: 0xfc}), p, []change{class(2), class(7)}, []change{class(0), class(1)})
}

func ports(c *spec.C) {
	s := steeredTwice(c)
	for _, v := range []struct {
		name  string
		typ   uint16
		proto uint8
		spec  verbs.FlowSpecType
	}{
		{"TCP over IPv4", roce.EtherTypeIPv4, ether.ProtoTCP, verbs.FlowSpecTCP}, {"UDP over IPv4", roce.EtherTypeIPv4, roce.ProtoUDP, verbs.FlowSpecUDP},
		{"TCP over IPv6", roce.EtherTypeIPv6, ether.ProtoTCP, verbs.FlowSpecTCP}, {"UDP over IPv6", roce.EtherTypeIPv6, roce.ProtoUDP, verbs.FlowSpecUDP},
	} {
		p := *plain(s)
		p.EtherType, p.Proto, p.TTL, p.SrcPort, p.DstPort = v.typ, v.proto, 64, 0x8d31, 0x4e25
		p.SrcIP, p.DstIP = [16]byte{198, 18, 0, 1}, [16]byte{198, 18, 0, 2}
		from := func(bit int) change { return func(p *ether.Packet) { p.SrcPort ^= 1 << bit } }
		to := func(bit int) change { return func(p *ether.Packet) { p.DstPort ^= 1 << bit } }
		other := func(p *ether.Packet) { p.Proto = ether.ProtoTCP + roce.ProtoUDP - p.Proto }
		neither := func(p *ether.Packet) { p.Proto = 253 }
		val := verbs.FlowFilter{SrcPort: p.SrcPort, DstPort: p.DstPort}
		one := func(mask verbs.FlowFilter) []verbs.FlowSpec { return []verbs.FlowSpec{l4(v.spec, val, mask)} }
		matches(c, s, v.name+", any port", one(verbs.FlowFilter{}), p, []change{other, neither}, []change{from(0), to(15)})
		matches(c, s, v.name+", source", one(verbs.FlowFilter{SrcPort: 0xffff}), p, []change{from(0), from(7), from(8), from(15), other, neither}, []change{to(0), to(15)})
		matches(c, s, v.name+", destination", one(verbs.FlowFilter{DstPort: 0xffff}), p, []change{to(0), to(7), to(8), to(15), other, neither}, []change{from(0), from(15)})
		matches(c, s, v.name+", parts", one(verbs.FlowFilter{SrcPort: 0x8001, DstPort: 0x0ff0}), p, []change{from(0), from(15), to(5), to(11)}, []change{from(1), from(14), to(3), to(12)})
		if v.typ == roce.EtherTypeIPv4 {
			matches(c, s, v.name+", behind options", one(verbs.FlowFilter{SrcPort: 0xffff, DstPort: 0xffff}), p, []change{from(1), to(1)},
				[]change{func(p *ether.Packet) { p.Options = 1 }, func(p *ether.Packet) { p.Options = 10 }})
		}
	}
}

func fragments(c *spec.C) {
	s := steeredTwice(c)
	p := *plain(s)
	p.EtherType, p.Proto, p.TTL, p.SrcPort, p.DstPort = roce.EtherTypeIPv4, roce.ProtoUDP, 64, 0x8d31, 0x4e25
	p.SrcIP, p.DstIP = [16]byte{198, 18, 0, 1}, [16]byte{198, 18, 0, 2}
	first := func(p *ether.Packet) { p.More = true }
	middle := func(p *ether.Packet) { p.More, p.Offset = true, 185 }
	last := func(p *ether.Packet) { p.Offset = 1 }
	val := verbs.FlowFilter{SrcPort: p.SrcPort, DstPort: p.DstPort}
	addresses := ipv4(verbs.FlowFilter{SrcIP: p.SrcIP, DstIP: p.DstIP, Proto: p.Proto}, verbs.FlowFilter{SrcIP: ones(32), DstIP: ones(32), Proto: 0xff})
	matches(c, s, "addresses", []verbs.FlowSpec{addresses}, p, nil, []change{first, middle, last})
	matches(c, s, "ports", []verbs.FlowSpec{addresses, l4(verbs.FlowSpecUDP, val, verbs.FlowFilter{SrcPort: 0xffff, DstPort: 0xffff})}, p, []change{middle, last}, []change{first})
}

// manyMasks has more masks in one priority than a driver makes room for at first, and several rules
// of each.
func manyMasks(c *spec.C) {
	const masks, values = 10, 3
	s := steeredTwice(c)
	p := *plain(s)
	p.EtherType, p.Proto, p.TTL, p.SrcPort = roce.EtherTypeIPv4, roce.ProtoUDP, 64, 7
	p.SrcIP = [16]byte{198, 18, 0, 1}
	rule := func(i, k int) verbs.FlowAttr {
		a := with(kit.FlowOf(ipv4(verbs.FlowFilter{DstIP: [16]byte{198, 19, byte(i), byte(k)<<6 | 0x2a}}, verbs.FlowFilter{SrcIP: ones(i + 1), DstIP: ones(32)})), func(a *verbs.FlowAttr) { a.Priority = 1 })
		a.Specs[0].Val.SrcIP = p.SrcIP
		return a
	}
	check := func(step string, there func(i, k int) bool) {
		for i := range masks {
			for k := range values {
				q, want := p, 1
				q.DstIP = rule(i, k).Specs[0].Val.DstIP
				if there(i, k) {
					want = 0
				}
				s.ExpectAt(c, fmt.Sprintf("%s: mask %d, value %d", step, i, k), build(c, &q, 60), want)
			}
		}
	}
	var destroy [masks][values]func(c *spec.C)
	for k := range values {
		for i := range masks {
			destroy[i][k] = s.To[0].NewFlow(c, rule(i, k))
		}
	}
	check("all rules", func(int, int) bool { return true })
	for i := range masks {
		destroy[i][i%values](c)
	}
	check("without one of each mask", func(i, k int) bool { return k != i%values })
	for i := range masks {
		destroy[i][i%values] = s.To[0].NewFlow(c, rule(i, i%values))
		destroy[i][(i+1)%values](c)
	}
	check("with others of each mask", func(i, k int) bool { return k != (i+1)%values })
}

// checksummed are packets of which a device knows checksums.
func checksummed(s *kit.Steered) []ether.Packet {
	var l []ether.Packet
	for _, typ := range []uint16{roce.EtherTypeIPv4, roce.EtherTypeIPv6} {
		for _, proto := range []uint8{ether.ProtoTCP, roce.ProtoUDP} {
			p := *plain(s)
			p.EtherType, p.Proto, p.TTL, p.SrcPort, p.DstPort = typ, proto, 64, 7, 8
			p.SrcIP, p.DstIP = [16]byte{198, 18, 0, 1, 5}, [16]byte{198, 18, 0, 2, 6}
			l = append(l, p)
		}
	}
	return l
}

func name(p *ether.Packet) string {
	return fmt.Sprintf("protocol %d of IPv%d, tagged: %v", p.Proto, p.IP(), p.Tagged)
}

func checksumFlag(c *spec.C) {
	s := kit.NewSteered(c, 1)
	rule := experimental()
	rule.Specs[0].Mask.EtherType = 0
	rule.Priority = 1
	s.To[0].NewFlow(c, rule)
	for _, p := range checksummed(s) {
		for _, tagged := range []bool{false, true} {
			for _, x := range []struct {
				what                 string
				header, payload, odd bool
			}{{what: "right"}, {what: "right, of odd length", odd: true}, {what: "a wrong header", header: true}, {what: "a wrong payload", payload: true}, {what: "both wrong", header: true, payload: true}} {
				q := p
				q.Tagged, q.TCI, q.BadHeader, q.BadPayload = tagged, 9, x.header && p.IP() == 4, x.payload
				n := 100
				if x.odd {
					n++
				}
				got := s.Deliver(c, build(c, &q, n))[0]
				c.Equal(name(&q)+", "+x.what+": packets", len(got), 1)
				want := verbs.WCFlags(0)
				if q.IP() == 4 && !q.BadHeader && !q.BadPayload {
					want = verbs.WCIPCsumOK
				}
				c.Equal(name(&q)+", "+x.what+": flag", got[0].WC.Flags&verbs.WCIPCsumOK, want)
			}
		}
	}
}

func filledChecksums(c *spec.C) {
	s := kit.NewSteered(c, 1)
	rule := experimental()
	rule.Specs[0].Mask.EtherType = 0
	rule.Priority = 1
	s.To[0].NewFlow(c, rule)
	buf := s.From.Env.Buffer(c, 2048, kit.AllAccess)
	for _, p := range checksummed(s) {
		for n := range 4 {
			payload := c.Rand().Bytes(90 + n)
			p.Tagged = n > 1
			right := p.Build(payload)
			wrong := p
			wrong.BadHeader, wrong.BadPayload = p.IP() == 4, true
			send := func(flags verbs.SendFlags) []byte {
				b := wrong.Build(payload)
				buf.Set(c, 0, b)
				w := kit.Send(1, buf.SGE(0, len(b)))
				w.Flags |= flags
				c.Status("send", s.From.PostAndPoll(c, w), verbs.WCSuccess)
				got := s.Deliver(c)[0]
				c.Equal("packets", len(got), 1)
				return got[0].Bytes
			}
			c.True(name(&p)+": as it was without the flag", bytes.Equal(send(0), wrong.Build(payload)), "the packet has changed")
			got := send(verbs.SendIPCsum)
			c.True(name(&p)+": filled in", bytes.Equal(got, right), "want %s, got %s", hex.EncodeToString(right), hex.EncodeToString(got))
		}
	}
}
