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

// DropReason is why a frame is not a whole RDMA packet. Real ports drop such
// frames silently and count them. It is an error without allocation.
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

// DropReasons is the number of reasons, for arrays of counters.
const DropReasons = int(dropReasons)

func (d DropReason) Error() string { return "roce: " + d.String() }

func (d DropReason) String() string {
	if d == 0 || d >= dropReasons {
		return fmt.Sprintf("DropReason(%d)", uint8(d))
	}
	return dropTexts[d]
}

// Packet is a decoded frame: where its parts are. It points into the frame and
// lives as long as it.
type Packet struct {
	Frame   []byte // the frame that was parsed
	Framing Framing
	Op      Opcode
	pad     uint8
	net     uint16 // IP or GRH header; for InfiniBand without GRH the LRH
	bth     uint16
	payload uint16
	end     uint16 // behind the pad: where the ICRC is
}

// Parse decodes an Ethernet frame (without FCS) and checks everything that the
// frame alone can show, except the ICRC. The error, if any, is a DropReason; no
// input makes it panic and nothing is allocated. Bytes behind the IP length
// (Ethernet padding) are ignored.
//
// What depends on a QP (transport, P_Key, path MTU against payload) is the
// receiver's to check; see Packet.PayloadOK.
func Parse(frame []byte) (Packet, error) {
	p := Packet{Frame: frame}
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
	p := Packet{Frame: packet, Framing: InfiniBand}
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
	h := UDP(p.Frame[at : at+UDPSize])
	if h.DstPort() != UDPPort {
		return DropNotRDMA
	}
	if n := int(h.Len()); n != end-at || n%4 != 0 || n < UDPSize+BTHSize+ICRCSize {
		return DropUDPLength
	}
	if h.Checksum() != 0 && udpSum(addrs, nil, p.Frame[at:end]) != 0xFFFF {
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
	bth := BTH(p.Frame[at : at+BTHSize])
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

// Ethernet is the frame's Ethernet header; not for InfiniBand framing.
func (p *Packet) Ethernet() Ethernet { return Ethernet(p.Frame[:EthernetSize]) }

// VLAN is the 802.1Q tag, nil if there is none.
func (p *Packet) VLAN() VLAN {
	if p.Framing == InfiniBand || p.net == EthernetSize {
		return nil
	}
	return VLAN(p.Frame[EthernetSize : EthernetSize+VLANSize])
}

// IPv4 is the IPv4 header; only for RoCEv2IPv4.
func (p *Packet) IPv4() IPv4 { return IPv4(p.Frame[p.net : p.net+IPv4Size]) }

// IPv6 is the IPv6 header or GRH; only for the framings that have one.
func (p *Packet) IPv6() IPv6 { return IPv6(p.Frame[p.net : p.net+IPv6Size]) }

// UDP is the UDP header; only for RoCEv2.
func (p *Packet) UDP() UDP { return UDP(p.Frame[p.bth-UDPSize : p.bth]) }

// LRH is the local route header; only for InfiniBand.
func (p *Packet) LRH() LRH { return LRH(p.Frame[:LRHSize]) }

// HasGRH says whether the packet has a GRH or an IP header that stands in for it.
func (p *Packet) HasGRH() bool { return p.Framing != InfiniBand || p.net != 0 }

// SrcGID and DstGID are the addresses, IPv4 ones mapped; zero without a GRH.
func (p *Packet) SrcGID() GID {
	switch {
	case p.Framing == RoCEv2IPv4:
		return GIDFromIPv4(p.IPv4().Src())
	case p.HasGRH():
		return p.IPv6().Src()
	}
	return GID{}
}

// DstGID is the destination address, see SrcGID.
func (p *Packet) DstGID() GID {
	switch {
	case p.Framing == RoCEv2IPv4:
		return GIDFromIPv4(p.IPv4().Dst())
	case p.HasGRH():
		return p.IPv6().Dst()
	}
	return GID{}
}

// TrafficClass is the ToS, traffic class or GRH TClass: DSCP and ECN.
func (p *Packet) TrafficClass() uint8 {
	switch {
	case p.Framing == RoCEv2IPv4:
		return p.IPv4().TOS()
	case p.HasGRH():
		return p.IPv6().TrafficClass()
	}
	return 0
}

// BTH is the base transport header.
func (p *Packet) BTH() BTH { return BTH(p.Frame[p.bth : p.bth+BTHSize]) }

// Info is the row of the opcode table.
func (p *Packet) Info() *OpInfo { return p.Op.Info() }

// Has says whether the packet has all these extended headers.
func (p *Packet) Has(h Headers) bool { return p.Op.Info().Headers.Has(h) }

// ext is extended header h; asking for one that the opcode lacks panics.
func (p *Packet) ext(h Headers, size int) []byte {
	at := int(p.bth) + BTHSize + p.Op.Info().Offset(h)
	return p.Frame[at : at+size]
}

// The extended headers. Only those that the opcode has may be asked for (Has).

func (p *Packet) RDETH() RDETH         { return p.ext(HasRDETH, RDETHSize) }
func (p *Packet) DETH() DETH           { return p.ext(HasDETH, DETHSize) }
func (p *Packet) XRCETH() XRCETH       { return p.ext(HasXRCETH, XRCETHSize) }
func (p *Packet) FETH() FETH           { return p.ext(HasFETH, FETHSize) }
func (p *Packet) RETH() RETH           { return p.ext(HasRETH, RETHSize) }
func (p *Packet) AtomicETH() AtomicETH { return p.ext(HasAtomicETH, AtomicETHSize) }
func (p *Packet) AETH() AETH           { return p.ext(HasAETH, AETHSize) }
func (p *Packet) AtomicAckETH() AtomicAckETH {
	return p.ext(HasAtomicAckETH, AtomicAckETHSize)
}
func (p *Packet) ImmDt() ImmDt { return p.ext(HasImmDt, ImmDtSize) }
func (p *Packet) IETH() IETH   { return p.ext(HasIETH, IETHSize) }

// Ext is all extended headers.
func (p *Packet) Ext() []byte { return p.Frame[p.bth+BTHSize : p.payload] }

// Payload is the payload without its pad.
func (p *Packet) Payload() []byte { return p.Frame[p.payload : p.end-uint16(p.pad)] }

// PayloadLen is len(Payload()).
func (p *Packet) PayloadLen() int { return int(p.end) - int(p.pad) - int(p.payload) }

// PadCount is the number of pad bytes.
func (p *Packet) PadCount() int { return int(p.pad) }

// PayloadOK says whether the payload obeys the opcode's rule at path MTU m.
func (p *Packet) PayloadOK(m int) bool { return p.Op.Info().Payload.Allows(p.PayloadLen(), m) }

// Len is the length from the first byte of the frame through the ICRC.
func (p *Packet) Len() int { return int(p.end) + ICRCSize }

// StoredICRC is the ICRC that the frame carries.
func (p *Packet) StoredICRC() uint32 { return GetICRC(p.Frame[p.end:]) }

// ComputeICRC is the ICRC that belongs to the frame's bytes.
func (p *Packet) ComputeICRC() uint32 {
	if p.Framing == InfiniBand {
		return ICRCInfiniBand(p.Frame[:p.end])
	}
	return ICRC(p.Frame[p.net:p.end])
}

// ICRCOK says whether the frame carries the right ICRC.
func (p *Packet) ICRCOK() bool { return p.StoredICRC() == p.ComputeICRC() }

// PutGRH writes the 40 bytes that a UD receive finds before its payload: the
// GRH or IPv6 header, or 20 zero bytes and the IPv4 header (as rxe does). It
// returns false, and writes nothing, for an InfiniBand packet without GRH.
func (p *Packet) PutGRH(dst []byte) bool {
	switch {
	case p.Framing == RoCEv2IPv4:
		clear(dst[:GRHSize-IPv4Size])
		copy(dst[GRHSize-IPv4Size:GRHSize], p.IPv4())
	case p.HasGRH():
		copy(dst[:GRHSize], p.IPv6())
	default:
		return false
	}
	return true
}

// BTHOffset is where the BTH is in the frame.
func (p *Packet) BTHOffset() int { return int(p.bth) }
