package ether

import "github.com/rdmasim/rdmasim/roce"

// Packet is the headers of a packet to be built. Numbers are in host order.
type Packet struct {
	DstMAC, SrcMAC [6]byte
	Tagged         bool // of 802.1Q, with TCI
	TCI            uint16
	EtherType      uint16 // behind the tag

	// Of IP, whose version EtherType says. The addresses of IPv4 are the first 4 bytes.
	SrcIP, DstIP    [16]byte
	Proto, TOS, TTL uint8
	// Options is how many words of options IPv4 has, Offset where in the packet its fragment
	// begins, in units of 8 bytes, and More says that others follow.
	Options uint8
	Offset  uint16
	More    bool

	// Of TCP and UDP.
	SrcPort, DstPort uint16

	// BadHeader and BadPayload say that the checksum of the IPv4 header, or that of TCP or UDP, is
	// wrong.
	BadHeader, BadPayload bool
}

// IP is the version of IP; 0: another packet.
func (p *Packet) IP() uint8 {
	switch p.EtherType {
	case roce.EtherTypeIPv4:
		return 4
	case roce.EtherTypeIPv6:
		return 6
	}
	return 0
}

// Fragment says whether the packet is a part of a longer one, or may be.
func (p *Packet) Fragment() bool { return p.IP() == 4 && (p.Offset != 0 || p.More) }

// Ports says whether the packet has the header of TCP or UDP: of fragments the first has.
func (p *Packet) Ports() bool {
	return p.IP() != 0 && (p.Proto == ProtoTCP || p.Proto == roce.ProtoUDP) && (p.IP() == 6 || p.Offset == 0)
}

// Build returns the bytes of the packet with a payload. It computes checksums by itself, not as
// Headers does.
func (p *Packet) Build(payload []byte) []byte {
	b := append(append([]byte(nil), p.DstMAC[:]...), p.SrcMAC[:]...)
	if p.Tagged {
		b = be.AppendUint16(be.AppendUint16(b, roce.EtherTypeVLAN), p.TCI)
	}
	b = be.AppendUint16(b, p.EtherType)
	if p.IP() == 0 {
		return append(b, payload...)
	}
	body := p.body(payload)
	at := len(b)
	if p.IP() == 6 {
		b = append(b, make([]byte, roce.IPv6Size)...)
		h := roce.IPv6(b[at:])
		h.SetVersion(p.TOS, 0)
		h.SetPayloadLen(uint16(len(body)))
		h.SetNextHeader(p.Proto)
		h.SetHopLimit(p.TTL)
		h.SetSrc(roce.GID(p.SrcIP))
		h.SetDst(roce.GID(p.DstIP))
	} else {
		const noOperation = 1
		n := roce.IPv4Size + 4*int(p.Options)
		b = append(b, make([]byte, n)...)
		h := roce.IPv4(b[at:])
		for i := roce.IPv4Size; i < n; i++ {
			h[i] = noOperation
		}
		h[0] = 4<<4 | byte(n/4)
		h.SetTOS(p.TOS)
		h.SetTotalLen(uint16(n + len(body)))
		flags := p.Offset
		if p.More {
			flags |= roce.IPv4MoreFragments
		}
		h.SetFlagsOffset(flags)
		h.SetTTL(p.TTL)
		h.SetProtocol(p.Proto)
		h.SetSrc([4]byte(p.SrcIP[:]))
		h.SetDst([4]byte(p.DstIP[:]))
		h.SetChecksum(rfc1071(0, b[at:]))
		if p.BadHeader {
			h.SetChecksum(h.Checksum() ^ 0x0100)
		}
	}
	return append(b, body...)
}

// body is what is behind the header of IP.
func (p *Packet) body(payload []byte) []byte {
	if !p.Ports() {
		return payload
	}
	const tcpChecksum, udpChecksum = 16, 6
	size, at := roce.UDPSize, udpChecksum
	if p.Proto == ProtoTCP {
		size, at = tcpSize, tcpChecksum
	}
	b := make([]byte, size, size+len(payload))
	be.PutUint16(b, p.SrcPort)
	be.PutUint16(b[2:], p.DstPort)
	if p.Proto == ProtoTCP {
		b[12], b[13] = tcpSize/4<<4, TCPACK
	} else {
		be.PutUint16(b[4:], uint16(size+len(payload)))
	}
	b = append(b, payload...)
	n := 16
	if p.IP() == 4 {
		n = 4
	}
	pseudo := append(append([]byte(nil), p.SrcIP[:n]...), p.DstIP[:n]...)
	pseudo = be.AppendUint16(append(pseudo, 0, p.Proto), uint16(len(b)))
	sum := rfc1071(words(0, pseudo), b)
	if p.BadPayload {
		sum ^= 0x0100
	}
	be.PutUint16(b[at:], sum)
	return b
}

// words adds the words of b to a sum.
func words(sum uint32, b []byte) uint32 {
	for i, x := range b {
		sum += uint32(x) << (8 * (1 - i&1))
	}
	return sum
}

// rfc1071 is the checksum of IP over what is in sum and b (RFC 1071).
func rfc1071(sum uint32, b []byte) uint16 {
	sum = words(sum, b)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
