package ether

import "github.com/rdmasim/rdmasim/roce"

// ICMP (RFC 792), ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861).
const (
	ProtoICMP   = 1
	ProtoICMPv6 = 58
	ICMPSize    = 8 // of the header of an echo message

	ICMPEchoReply   = 0
	ICMPEcho        = 8
	ICMPv6Echo      = 128
	ICMPv6EchoReply = 129

	NeighbourSolicitation  = 135
	NeighbourAdvertisement = 136
	NeighbourSize          = 24 // of either without options
	LinkAddressSize        = 8  // of an option with an Ethernet address
	LinkHopLimit           = 255

	SourceLinkAddress = 1 // options
	TargetLinkAddress = 2

	NeighbourSolicited = 0x40 // flags of an advertisement
	NeighbourOverride  = 0x20
)

// ICMP is a message of ICMP or ICMPv6.
type ICMP []byte

// ICMP is the message in a packet of that protocol; false: the packet is none, or a fragment, or
// cut off in the header of an echo message.
func (h *Headers) ICMP(b []byte) (ICMP, bool) {
	at := h.Net + roce.IPv6Size
	switch {
	case h.Fragment || h.Short:
		return nil, false
	case h.Version == 4 && h.Proto == ProtoICMP:
		at = h.Net + roce.IPv4(b[h.Net:]).HeaderLen()
	case h.Version == 6 && roce.IPv6(b[h.Net:]).NextHeader() == ProtoICMPv6: // behind no other header
	default:
		return nil, false
	}
	return ICMP(b[min(at, h.End):h.End]), h.End-at >= ICMPSize
}

// ICMPOK says whether the message's checksum is right.
func (h *Headers) ICMPOK(b []byte) bool {
	m, ok := h.ICMP(b)
	return ok && fold(sum(h.icmpPseudo(b, m), m)) == 0xffff
}

// FillICMP writes the message's checksum.
func (h *Headers) FillICMP(b []byte) {
	if m, ok := h.ICMP(b); ok {
		be.PutUint16(m[2:], 0)
		be.PutUint16(m[2:], ^fold(sum(h.icmpPseudo(b, m), m)))
	}
}

// icmpPseudo is the sum of the pseudo header, which ICMPv6 alone has.
func (h *Headers) icmpPseudo(b []byte, m ICMP) uint64 {
	if h.Version == 4 {
		return 0
	}
	return sum(sum(uint64(ProtoICMPv6)+uint64(len(m)), h.SrcIP(b)), h.DstIP(b))
}

// Type returns the type.
func (m ICMP) Type() uint8 { return m[0] }

// SetType sets the type.
func (m ICMP) SetType(v uint8) { m[0] = v }

// SetFlags sets the flags of a neighbour advertisement.
func (m ICMP) SetFlags(v uint8) { m[4] = v }

// Target returns the address that a message of neighbour discovery, of at least NeighbourSize
// bytes, is about.
func (m ICMP) Target() [16]byte { return [16]byte(m[8:24]) }

// SetTarget sets it.
func (m ICMP) SetTarget(v [16]byte) { copy(m[8:], v[:]) }

// LinkAddress returns the Ethernet address of an option of such a message.
func (m ICMP) LinkAddress(option uint8) (mac roce.MAC, ok bool) {
	for o := m[NeighbourSize:]; len(o) >= LinkAddressSize && o[1] > 0; o = o[min(len(o), LinkAddressSize*int(o[1])):] {
		if o[0] == option && o[1] == 1 {
			return roce.MAC(o[2:8]), true
		}
	}
	return mac, false
}

// SetLinkAddress makes the bytes behind the message such an option.
func (m ICMP) SetLinkAddress(option uint8, mac roce.MAC) {
	o := m[NeighbourSize:]
	o[0], o[1] = option, 1
	copy(o[2:], mac[:])
}
