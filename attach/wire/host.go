package wire

import (
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// host answers on an Ethernet for a device that has an address of its own and no other host for its
// packets of IP: to ARP (RFC 826), to neighbour discovery (RFC 4861) and to echo requests (RFC 792,
// RFC 4443). It remembers who answered it.
type host struct {
	own        netip.Addr
	mac        roce.MAC
	neighbours map[netip.Addr]*neighbour
	last       *neighbour // whose packet came last
	conflict   roce.MAC   // of another host that has the address; zero: none was seen
}

// neighbour is what is known of an address.
type neighbour struct {
	addr   netip.Addr
	mac    roce.MAC  // zero: it does not answer
	proved time.Time // when it last said so, or did not
}

// Times after which a neighbour is asked again (30 s is Linux's base_reachable_time), and after
// which one that did not answer is.
const (
	neighbourFresh  = 30 * time.Second
	neighbourSilent = time.Second
)

func newHost(own netip.Addr) *host {
	return &host{own: own, mac: MACOf(own), neighbours: map[netip.Addr]*neighbour{}}
}

// verdict is what a frame is.
type verdict uint8

const (
	ignored   verdict = iota // other hosts', or of no concern
	answered                 // taken by the host
	forDevice                // a packet to port 4791 of the device's address or of a group
	stranger                 // from an address that --allow leaves out
	tagged                   // of a VLAN
	malformed
)

var broadcastMAC = roce.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// take looks at a frame of at least an Ethernet header. answer is a frame to send; nil: none.
func (h *host) take(b []byte, allow []netip.Prefix) (v verdict, answer []byte) {
	e := roce.Ethernet(b)
	if d := e.Dst(); d != h.mac && !d.IsGroup() {
		return ignored, nil
	}
	switch e.Type() {
	case roce.EtherTypeVLAN, ether.TypeSTag:
		return tagged, nil
	case ether.TypeARP:
		return h.arp(b, allow)
	}
	p := ether.Parse(b)
	if p.Version == 0 {
		if e.Type() == roce.EtherTypeIPv4 || e.Type() == roce.EtherTypeIPv6 {
			return malformed, nil
		}
		return ignored, nil
	}
	if (p.Version == 4) != h.own.Is4() {
		return ignored, nil
	}
	from, to := addresses(b, &p)
	if to != h.own && !to.IsMulticast() {
		return ignored, nil
	}
	neighbourly := p.Proto == ether.ProtoICMPv6 // these come from link-local addresses, too
	if !neighbourly && !allows(allow, from) {
		return stranger, nil
	}
	switch {
	case p.Short || !p.NetworkOK(b):
		return malformed, nil
	case p.Proto == roce.ProtoUDP:
		if p.Fragment || p.Transport > 0 && p.DstPort == roce.UDPPort {
			return forDevice, nil
		}
	case p.Proto == ether.ProtoICMP, p.Proto == ether.ProtoICMPv6:
		return h.icmp(b[:p.End], &p, from, to, allow)
	}
	return ignored, nil
}

// addresses are those of a packet of IP.
func addresses(b []byte, p *ether.Headers) (from, to netip.Addr) {
	if p.Version == 4 {
		ip := roce.IPv4(b[p.Net:])
		return netip.AddrFrom4(ip.Src()), netip.AddrFrom4(ip.Dst())
	}
	ip := roce.IPv6(b[p.Net:])
	return netip.AddrFrom16(ip.Src()).Unmap(), netip.AddrFrom16(ip.Dst()).Unmap()
}

// learn notes where an address is. In passing means that a packet came from there: of a neighbour
// that has answered, another address is not believed then.
func (h *host) learn(a netip.Addr, mac roce.MAC, inPassing bool) {
	if n := h.last; inPassing && n != nil && n.addr == a && n.mac == mac {
		return
	}
	if mac.IsGroup() || mac == (roce.MAC{}) || a == h.own || a.IsUnspecified() || a.IsMulticast() {
		return
	}
	n := h.neighbours[a]
	switch {
	case n == nil:
		if len(h.neighbours) >= mostPeers {
			clear(h.neighbours)
		}
		n = &neighbour{addr: a}
		h.neighbours[a] = n
	case inPassing && n.mac != roce.MAC{} && n.mac != mac:
		return
	}
	n.mac, n.proved = mac, time.Now()
	h.last = n
}

// silent notes that an address does not answer.
func (h *host) silent(a netip.Addr) {
	if len(h.neighbours) >= mostPeers {
		clear(h.neighbours)
	}
	h.neighbours[a] = &neighbour{addr: a, proved: time.Now()}
}

// neighbour is where an address is. Not known: it has to be asked for.
func (h *host) neighbour(a netip.Addr) (mac roce.MAC, known bool) {
	n := h.neighbours[a]
	if n == nil {
		return roce.MAC{}, false
	}
	if n.mac == (roce.MAC{}) {
		return n.mac, time.Since(n.proved) < neighbourSilent
	}
	return n.mac, time.Since(n.proved) < neighbourFresh
}

// fresh is where an address is that answers.
func (h *host) fresh(a netip.Addr) (roce.MAC, bool) {
	mac, known := h.neighbour(a)
	return mac, known && mac != roce.MAC{}
}

// arp takes a packet of ARP.
func (h *host) arp(b []byte, allow []netip.Prefix) (verdict, []byte) {
	if len(b) < roce.EthernetSize+ether.ARPSize {
		return malformed, nil
	}
	p := ether.ARP(b[roce.EthernetSize:])
	if !p.Known() || !h.own.Is4() {
		return ignored, nil
	}
	mac, ip := p.Sender()
	from := netip.AddrFrom4(ip)
	if from == h.own && (mac != h.mac || p.Op() == ether.ARPReply) { // another session at the address has the same Ethernet address
		h.conflict = mac
	}
	if netip.AddrFrom4(p.Target()) != h.own || from == h.own {
		return ignored, nil
	}
	if !from.IsUnspecified() { // which asks whether somebody has the address
		if !allows(allow, from) {
			return stranger, nil
		}
		h.learn(from, mac, false)
	}
	if p.Op() != ether.ARPRequest {
		return answered, nil
	}
	return answered, h.arpFrame(ether.ARPReply, mac, h.own.As4(), mac, ip)
}

// arpFrame is a frame of ARP.
func (h *host) arpFrame(op uint16, dst roce.MAC, from [4]byte, target roce.MAC, to [4]byte) []byte {
	b := h.ethernet(dst, ether.TypeARP, ether.ARPSize)
	ether.ARP(b[roce.EthernetSize:]).Set(op, h.mac, from, target, to)
	return b
}

func (h *host) ethernet(dst roce.MAC, typ uint16, payload int) []byte {
	b := make([]byte, roce.EthernetSize+payload)
	e := roce.Ethernet(b)
	e.SetDst(dst)
	e.SetSrc(h.mac)
	e.SetType(typ)
	return b
}

// probe asks whether another host has the address (RFC 5227, RFC 4862). Whoever has, answers.
func (h *host) probe() []byte {
	if h.own.Is4() {
		return h.arpFrame(ether.ARPRequest, broadcastMAC, [4]byte{}, roce.MAC{}, h.own.As4())
	}
	return h.solicitation(netip.IPv6Unspecified(), h.own)
}

// solicit asks for an address.
func (h *host) solicit(a netip.Addr) []byte {
	if a.Is4() {
		return h.arpFrame(ether.ARPRequest, broadcastMAC, h.own.As4(), roce.MAC{}, a.As4())
	}
	return h.solicitation(h.own, a)
}

// solicitation is a neighbour solicitation. One from no address has no option.
func (h *host) solicitation(from, target netip.Addr) []byte {
	t := target.As16()
	group := roce.GID{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]}
	n := ether.NeighbourSize
	if !from.IsUnspecified() {
		n += ether.LinkAddressSize
	}
	b, m := h.discovery(group.MulticastMAC(), from, netip.AddrFrom16(group), ether.NeighbourSolicitation, n)
	m.SetTarget(t)
	if n > ether.NeighbourSize {
		m.SetLinkAddress(ether.SourceLinkAddress, h.mac)
	}
	return filled(b)
}

// discovery is a frame with a message of neighbour discovery of n bytes.
func (h *host) discovery(dst roce.MAC, from, to netip.Addr, typ uint8, n int) ([]byte, ether.ICMP) {
	b := h.ethernet(dst, roce.EtherTypeIPv6, roce.IPv6Size+n)
	ip := roce.IPv6(b[roce.EthernetSize:])
	ip.SetVersion(0, 0)
	ip.SetPayloadLen(uint16(n))
	ip.SetNextHeader(ether.ProtoICMPv6)
	ip.SetHopLimit(ether.LinkHopLimit)
	ip.SetSrc(roce.GID(from.As16()))
	ip.SetDst(roce.GID(to.As16()))
	m := ether.ICMP(ip[roce.IPv6Size:])
	m.SetType(typ)
	return b, m
}

// filled is a frame with the checksums of IP and ICMP.
func filled(b []byte) []byte {
	p := ether.Parse(b)
	p.FillNetwork(b)
	p.FillICMP(b)
	return b
}

// icmp takes a packet of ICMP or ICMPv6.
func (h *host) icmp(b []byte, p *ether.Headers, from, to netip.Addr, allow []netip.Prefix) (verdict, []byte) {
	m, ok := p.ICMP(b)
	if !ok {
		return ignored, nil
	}
	if !p.ICMPOK(b) {
		return malformed, nil
	}
	if p.Version == 6 && !from.IsUnspecified() && !from.IsLinkLocalUnicast() && !allows(allow, from) {
		return stranger, nil
	}
	echo, reply := uint8(ether.ICMPEcho), uint8(ether.ICMPEchoReply)
	if p.Version == 6 {
		echo, reply = ether.ICMPv6Echo, ether.ICMPv6EchoReply
	}
	discovery := p.Version == 6 && (m.Type() == ether.NeighbourSolicitation || m.Type() == ether.NeighbourAdvertisement)
	switch {
	case discovery && (p.TTL != ether.LinkHopLimit || len(m) < ether.NeighbourSize):
		return malformed, nil
	case discovery && m.Type() == ether.NeighbourSolicitation:
		return h.solicited(b, m, from)
	case discovery:
		return h.advertised(m)
	case m.Type() == echo && to == h.own && !from.IsUnspecified():
		return answered, h.echo(b, p, reply)
	}
	return ignored, nil
}

// echo is the answer to an echo request: the frame, sent back.
func (h *host) echo(b []byte, p *ether.Headers, reply uint8) []byte {
	r := append([]byte(nil), b...)
	e := roce.Ethernet(r)
	e.SetDst(e.Src())
	e.SetSrc(h.mac)
	if p.Version == 4 {
		ip := roce.IPv4(r[p.Net:])
		ip.SetTTL(defaultTTL)
		src := ip.Src()
		ip.SetSrc(ip.Dst())
		ip.SetDst(src)
	} else {
		ip := roce.IPv6(r[p.Net:])
		ip.SetHopLimit(defaultTTL)
		src := ip.Src()
		ip.SetSrc(ip.Dst())
		ip.SetDst(src)
	}
	m, _ := p.ICMP(r)
	m.SetType(reply)
	return filled(r)
}

// solicited answers to a neighbour solicitation.
func (h *host) solicited(b []byte, m ether.ICMP, from netip.Addr) (verdict, []byte) {
	if netip.AddrFrom16(m.Target()) != h.own {
		return ignored, nil
	}
	dst, to, flags := roce.Ethernet(b).Src(), from, uint8(ether.NeighbourSolicited|ether.NeighbourOverride)
	if from.IsUnspecified() { // somebody asks whether the address is free: all are told
		to, flags = netip.IPv6LinkLocalAllNodes(), ether.NeighbourOverride
		dst = roce.GID(to.As16()).MulticastMAC()
	} else if mac, ok := m.LinkAddress(ether.SourceLinkAddress); ok {
		h.learn(from, mac, false)
		dst = mac
	}
	r, a := h.discovery(dst, h.own, to, ether.NeighbourAdvertisement, ether.NeighbourSize+ether.LinkAddressSize)
	a.SetFlags(flags)
	a.SetTarget(h.own.As16())
	a.SetLinkAddress(ether.TargetLinkAddress, h.mac)
	return answered, filled(r)
}

// advertised takes a neighbour advertisement.
func (h *host) advertised(m ether.ICMP) (verdict, []byte) {
	target := netip.AddrFrom16(m.Target())
	mac, ok := m.LinkAddress(ether.TargetLinkAddress)
	switch {
	case !ok:
		return ignored, nil
	case target == h.own:
		h.conflict = mac
	default:
		h.learn(target, mac, false)
	}
	return answered, nil
}
