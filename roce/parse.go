package roce

import "fmt"

// Framing is how a packet is carried.
type Framing uint8

// Framings.
const (
	RoCEv2IPv4 Framing = 1 + iota
	RoCEv2IPv6
	RoCEv1
	InfiniBand // native, LRH first
)

// String returns the name, such as "RoCEv2/IPv4".
func (f Framing) String() string {
	switch f {
	case RoCEv2IPv4:
		return "RoCEv2/IPv4"
	case RoCEv2IPv6:
		return "RoCEv2/IPv6"
	case RoCEv1:
		return "RoCEv1"
	case InfiniBand:
		return "InfiniBand"
	}
	return fmt.Sprintf("Framing(%d)", uint8(f))
}

// DropReason is the reason why a frame is not a whole RDMA packet, an error without allocation.
// Real ports drop such frames silently and count them.
type DropReason uint8

// Drop reasons. With DropOpcode, DropLength and DropBTHVersion the BTH of the
// returned Packet may be read.
const (
	DropNotRDMA     DropReason = 1 + iota // another protocol's frame, not broken
	DropShort                             // the frame ends inside a header or before its stated length
	DropLong                              // longer than 65535 bytes
	DropIPVersion                         // version field does not fit the EtherType
	DropIPOptions                         // IPv4 header longer than 20 bytes
	DropIPChecksum                        // IPv4 header checksum wrong
	DropIPFragment                        // MF set or offset not zero
	DropIPLength                          // IP length smaller than its headers
	DropUDPLength                         // UDP length unlike the IP payload, or not 8 and a multiple of 4
	DropUDPChecksum                       // non-zero and wrong
	DropGRH                               // RoCEv1 or InfiniBand: version, next header or length wrong
	DropLRH                               // InfiniBand: version, LNH or length wrong
	DropBTHVersion                        // TVer is not 0
	DropOpcode                            // reserved opcode
	DropLength                            // shorter than the opcode's headers, pad and ICRC
	DropICRC                              // for callers that check the ICRC; Parse does not

	dropReasons
)

var dropTexts = [dropReasons]string{
	DropNotRDMA: "not an RDMA frame", DropShort: "frame too short", DropLong: "frame too long", DropIPVersion: "wrong IP version",
	DropIPOptions: "IPv4 options", DropIPChecksum: "wrong IPv4 header checksum", DropIPFragment: "IP fragment",
	DropIPLength: "wrong IP length", DropUDPLength: "wrong UDP length", DropUDPChecksum: "wrong UDP checksum",
	DropGRH: "malformed GRH", DropLRH: "malformed LRH", DropBTHVersion: "transport version not 0",
	DropOpcode: "reserved opcode", DropLength: "too short for its opcode", DropICRC: "wrong ICRC",
}

// DropReasons is one more than the highest reason, the size of an array of counters by reason.
const DropReasons = int(dropReasons)

// Error returns the reason in words, behind "roce: ".
func (d DropReason) Error() string { return "roce: " + d.String() }

// String returns the reason in words.
func (d DropReason) String() string {
	if d == 0 || d >= dropReasons {
		return fmt.Sprintf("DropReason(%d)", uint8(d))
	}
	return dropTexts[d]
}

// Parse decodes an Ethernet frame (without FCS) and checks everything that the
// frame alone can show, except the ICRC. The error, if any, is a DropReason; no
// input makes it panic and nothing is allocated. Bytes behind the IP length
// (Ethernet padding) are ignored.
//
// What depends on a QP (transport, P_Key, path MTU against payload) is the
// receiver's to check; see Packet.PayloadOK.
func Parse(frame []byte) (Packet, error) {
	p := Packet{B: frame}
	if len(frame) < EthernetSize {
		return p, DropShort
	}
	if len(frame) > 0xFFFF {
		return p, DropLong
	}
	at, typ := EthernetSize, Ethernet(frame).Type()
	if typ == EtherTypeVLAN {
		if len(frame) < at+VLANSize {
			return p, DropShort
		}
		typ = VLAN(frame[at:]).Type()
		at += VLANSize
	}
	p.net = uint16(at)
	switch typ {
	case EtherTypeIPv4:
		return p, p.parseIPv4(frame[at:])
	case EtherTypeIPv6:
		return p, p.parseIPv6(frame[at:])
	case EtherTypeRoCE:
		p.Framing = RoCEv1
		return p, p.parseGRH(frame[at:])
	}
	return p, DropNotRDMA
}

// ParseInfiniBand decodes a native InfiniBand packet, LRH through ICRC and, if
// present, VCRC (two bytes behind the stated length).
func ParseInfiniBand(packet []byte) (Packet, error) {
	p := Packet{B: packet, Framing: InfiniBand}
	if len(packet) < LRHSize {
		return p, DropShort
	}
	h := LRH(packet)
	n := int(h.PktLen()) * 4
	if h.Version() != 0 || h.LNH() < LNHIBALocal {
		return p, DropLRH
	}
	if n > len(packet) {
		return p, DropShort
	}
	if n < LRHSize+BTHSize+ICRCSize {
		return p, DropLRH
	}
	if h.LNH() == LNHIBAGlobal {
		p.net = LRHSize
		// The two lengths must agree: parseGRH would accept a shorter one as padding.
		if n-LRHSize >= GRHSize && int(GRH(packet[LRHSize:]).PayloadLen()) != n-LRHSize-GRHSize {
			return p, DropGRH
		}
		return p, p.parseGRH(packet[LRHSize:n])
	}
	return p, p.parseTransport(LRHSize, n)
}

func (p *Packet) parseIPv4(b []byte) error {
	if len(b) < IPv4Size {
		return DropShort
	}
	h := IPv4(b[:IPv4Size])
	if h.Version() != 4 {
		return DropIPVersion
	}
	if h.Protocol() != ProtoUDP {
		return DropNotRDMA
	}
	if h.HeaderLen() != IPv4Size {
		return DropIPOptions
	}
	if !h.ChecksumOK() {
		return DropIPChecksum
	}
	if h.FlagsOffset()&(IPv4MoreFragments|IPv4OffsetMask) != 0 {
		return DropIPFragment
	}
	n := int(h.TotalLen())
	if n < IPv4Size+UDPSize {
		return DropIPLength
	}
	if n > len(b) {
		return DropShort
	}
	p.Framing = RoCEv2IPv4
	return p.parseUDP(int(p.net)+IPv4Size, int(p.net)+n, b[12:20])
}

func (p *Packet) parseIPv6(b []byte) error {
	if len(b) < IPv6Size {
		return DropShort
	}
	h := IPv6(b[:IPv6Size])
	if h.Version() != 6 {
		return DropIPVersion
	}
	if h.NextHeader() != ProtoUDP {
		return DropNotRDMA
	}
	n := int(h.PayloadLen())
	if n < UDPSize {
		return DropIPLength
	}
	if n > len(b)-IPv6Size {
		return DropShort
	}
	p.Framing = RoCEv2IPv6
	return p.parseUDP(int(p.net)+IPv6Size, int(p.net)+IPv6Size+n, b[8:40])
}

// parseUDP decodes the datagram at at..end of the frame; addrs is both addresses.
func (p *Packet) parseUDP(at, end int, addrs []byte) error {
	h := UDP(p.B[at : at+UDPSize])
	if h.DstPort() != UDPPort {
		return DropNotRDMA
	}
	if n := int(h.Len()); n != end-at || n%4 != 0 || n < UDPSize+BTHSize+ICRCSize {
		return DropUDPLength
	}
	if h.Checksum() != 0 && udpSum(addrs, nil, p.B[at:end]) != 0xFFFF {
		return DropUDPChecksum
	}
	return p.parseTransport(at+UDPSize, end)
}

func (p *Packet) parseGRH(b []byte) error {
	if len(b) < GRHSize {
		return DropShort
	}
	h := GRH(b[:GRHSize])
	n := int(h.PayloadLen())
	if h.Version() != 6 || h.NextHeader() != ProtoIBA || n%4 != 0 || n < BTHSize+ICRCSize {
		return DropGRH
	}
	if n > len(b)-GRHSize {
		return DropShort
	}
	return p.parseTransport(int(p.net)+GRHSize, int(p.net)+GRHSize+n)
}

// parseTransport decodes BTH through ICRC at at..end of the frame; the caller has
// checked that these two fit.
func (p *Packet) parseTransport(at, end int) error {
	bth := BTH(p.B[at : at+BTHSize])
	p.bth, p.Op, p.pad = uint16(at), bth.Opcode(), uint8(bth.PadCount())
	p.payload, p.end = uint16(at+BTHSize), uint16(end-ICRCSize)
	if bth.Version() != 0 {
		p.pad = 0
		return DropBTHVersion
	}
	info := p.Op.Info()
	if !info.Valid() {
		p.pad = 0
		return DropOpcode
	}
	body := at + BTHSize + int(info.HeaderLen)
	if body+int(p.pad)+ICRCSize > end {
		p.pad = 0
		return DropLength
	}
	p.payload = uint16(body)
	return nil
}
