package roce

// Sizes of the link and network headers in bytes.
const (
	EthernetSize = 14
	VLANSize     = 4
	IPv4Size     = 20
	IPv6Size     = 40
	GRHSize      = 40
	UDPSize      = 8
	LRHSize      = 8
)

// EtherTypes and protocol numbers.
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeVLAN = 0x8100
	EtherTypeIPv6 = 0x86DD
	EtherTypeRoCE = 0x8915 // RoCEv1

	ProtoUDP = 17
	ProtoIBA = 0x1B // GRH next header: IBA transport

	UDPPort = 4791 // destination port of RoCEv2 in both directions
)

// Ethernet is an Ethernet header without the 802.1Q tag, 14 bytes.
type Ethernet []byte

// Dst returns the destination address: bytes 0 to 5.
func (h Ethernet) Dst() MAC { return MAC(h[0:6]) }

// Src returns the source address: bytes 6 to 11.
func (h Ethernet) Src() MAC { return MAC(h[6:12]) }

// ToGroup reports whether the destination is a multicast or the broadcast address, as
// Dst().IsGroup() does.
func (h Ethernet) ToGroup() bool { return h[0]&1 != 0 }

// Type returns the EtherType: 16 bits at byte 12.
func (h Ethernet) Type() uint16 { return be.Uint16(h[12:14]) }

// SetDst sets the destination address.
func (h Ethernet) SetDst(v MAC) { copy(h[0:6], v[:]) }

// SetSrc sets the source address.
func (h Ethernet) SetSrc(v MAC) { copy(h[6:12], v[:]) }

// SetType sets the EtherType.
func (h Ethernet) SetType(v uint16) { be.PutUint16(h[12:14], v) }

// VLANMask selects the VLAN ID in a tag's TCI; the priority is in bits 15:13.
const VLANMask = 0x0fff

// VLAN is what follows EtherType 0x8100 in an 802.1Q tag, 4 bytes: TCI and inner EtherType.
type VLAN []byte

// TCI returns the tag control information (priority, DEI, VLAN ID): 16 bits at byte 0.
func (h VLAN) TCI() uint16 { return be.Uint16(h[0:2]) }

// Type returns the inner EtherType: 16 bits at byte 2.
func (h VLAN) Type() uint16 { return be.Uint16(h[2:4]) }

// SetTCI sets the tag control information.
func (h VLAN) SetTCI(v uint16) { be.PutUint16(h[0:2], v) }

// SetType sets the inner EtherType.
func (h VLAN) SetType(v uint16) { be.PutUint16(h[2:4], v) }

// IPv4 is an IPv4 header without options, 20 bytes.
type IPv4 []byte

// Version returns the IP version: bits 7:4 of byte 0.
func (h IPv4) Version() uint8 { return h[0] >> 4 }

// HeaderLen returns the header length in bytes: four times bits 3:0 of byte 0.
func (h IPv4) HeaderLen() int { return int(h[0]&0xF) * 4 }

// TOS returns the type of service, DSCP and ECN: byte 1.
func (h IPv4) TOS() uint8 { return h[1] }

// TotalLen returns the length of header and payload in bytes: 16 bits at byte 2.
func (h IPv4) TotalLen() uint16 { return be.Uint16(h[2:4]) }

// ID returns the identification: 16 bits at byte 4.
func (h IPv4) ID() uint16 { return be.Uint16(h[4:6]) }

// FlagsOffset returns the flags and the fragment offset: 16 bits at byte 6.
func (h IPv4) FlagsOffset() uint16 { return be.Uint16(h[6:8]) }

// TTL returns the time to live in hops: byte 8.
func (h IPv4) TTL() uint8 { return h[8] }

// Protocol returns the protocol of the payload: byte 9.
func (h IPv4) Protocol() uint8 { return h[9] }

// Checksum returns the header checksum: 16 bits at byte 10.
func (h IPv4) Checksum() uint16 { return be.Uint16(h[10:12]) }

// Src returns the source address: bytes 12 to 15.
func (h IPv4) Src() [4]byte { return [4]byte(h[12:16]) }

// Dst returns the destination address: bytes 16 to 19.
func (h IPv4) Dst() [4]byte { return [4]byte(h[16:20]) }

// SrcDst returns both addresses in one word, as IPv4SrcDst does.
func (h IPv4) SrcDst() uint64 { return be.Uint64(h[12:20]) }

// IPv4SrcDst packs a source (upper half) and a destination into one word.
func IPv4SrcDst(src, dst [4]byte) uint64 {
	return uint64(be.Uint32(src[:]))<<32 | uint64(be.Uint32(dst[:]))
}

// SetTOS sets the type of service, DSCP and ECN.
func (h IPv4) SetTOS(v uint8) { h[1] = v }

// SetTotalLen sets the length of header and payload in bytes.
func (h IPv4) SetTotalLen(v uint16) { be.PutUint16(h[2:4], v) }

// SetID sets the identification.
func (h IPv4) SetID(v uint16) { be.PutUint16(h[4:6], v) }

// SetFlagsOffset sets the flags and the fragment offset.
func (h IPv4) SetFlagsOffset(v uint16) { be.PutUint16(h[6:8], v) }

// SetTTL sets the time to live in hops.
func (h IPv4) SetTTL(v uint8) { h[8] = v }

// SetProtocol sets the protocol of the payload.
func (h IPv4) SetProtocol(v uint8) { h[9] = v }

// SetChecksum sets the header checksum.
func (h IPv4) SetChecksum(v uint16) { be.PutUint16(h[10:12], v) }

// SetSrc sets the source address.
func (h IPv4) SetSrc(v [4]byte) { copy(h[12:16], v[:]) }

// SetDst sets the destination address.
func (h IPv4) SetDst(v [4]byte) { copy(h[16:20], v[:]) }

// Flags of IPv4.FlagsOffset.
const (
	IPv4DontFragment  = 0x4000
	IPv4MoreFragments = 0x2000
	IPv4OffsetMask    = 0x1FFF
)

// ComputeChecksum returns the header checksum of the other fields and changes nothing.
func (h IPv4) ComputeChecksum() uint16 {
	return ^fold(sum16(0, h[:10]) + sum16(0, h[12:20]))
}

// ChecksumOK reports whether the header checksum is right.
func (h IPv4) ChecksumOK() bool { return fold(sum16(0, h[:20])) == 0xFFFF }

// IPv6 is an IPv6 header or, with next header 0x1B, a GRH; 40 bytes.
type IPv6 []byte

// Version returns the IP version: bits 7:4 of byte 0.
func (h IPv6) Version() uint8 { return h[0] >> 4 }

// TrafficClass returns the traffic class, DSCP and ECN: bits 27:20 of the first word.
func (h IPv6) TrafficClass() uint8 { return h[0]<<4 | h[1]>>4 }

// FlowLabel returns the flow label: bits 19:0 of the first word.
func (h IPv6) FlowLabel() uint32 { return be.Uint32(h[0:4]) & 0xFFFFF }

// PayloadLen returns the number of bytes behind the header: 16 bits at byte 4.
func (h IPv6) PayloadLen() uint16 { return be.Uint16(h[4:6]) }

// NextHeader returns the protocol of the payload: byte 6.
func (h IPv6) NextHeader() uint8 { return h[6] }

// HopLimit returns the hop limit: byte 7.
func (h IPv6) HopLimit() uint8 { return h[7] }

// Src returns the source address: 16 bytes from byte 8 on.
func (h IPv6) Src() GID { return GID(h[8:24]) }

// Dst returns the destination address: 16 bytes from byte 24 on.
func (h IPv6) Dst() GID { return GID(h[24:40]) }

// SetPayloadLen sets the number of bytes behind the header.
func (h IPv6) SetPayloadLen(v uint16) { be.PutUint16(h[4:6], v) }

// SetNextHeader sets the protocol of the payload.
func (h IPv6) SetNextHeader(v uint8) { h[6] = v }

// SetHopLimit sets the hop limit.
func (h IPv6) SetHopLimit(v uint8) { h[7] = v }

// SetSrc sets the source address.
func (h IPv6) SetSrc(v GID) { copy(h[8:24], v[:]) }

// SetDst sets the destination address.
func (h IPv6) SetDst(v GID) { copy(h[24:40], v[:]) }

// SetVersion writes version 6 with the traffic class and the flow label.
func (h IPv6) SetVersion(tc uint8, flow uint32) {
	be.PutUint32(h[0:4], 6<<28|uint32(tc)<<20|flow&0xFFFFF)
}

// GRH is the global routing header; it has the layout of IPv6.
type GRH = IPv6

// UDP is a UDP header, 8 bytes.
type UDP []byte

// SrcPort returns the source port: 16 bits at byte 0.
func (h UDP) SrcPort() uint16 { return be.Uint16(h[0:2]) }

// DstPort returns the destination port: 16 bits at byte 2.
func (h UDP) DstPort() uint16 { return be.Uint16(h[2:4]) }

// Len returns the length of header and payload in bytes: 16 bits at byte 4.
func (h UDP) Len() uint16 { return be.Uint16(h[4:6]) }

// Checksum returns the checksum: 16 bits at byte 6.
func (h UDP) Checksum() uint16 { return be.Uint16(h[6:8]) }

// SetSrcPort sets the source port.
func (h UDP) SetSrcPort(v uint16) { be.PutUint16(h[0:2], v) }

// SetDstPort sets the destination port.
func (h UDP) SetDstPort(v uint16) { be.PutUint16(h[2:4], v) }

// SetLen sets the length of header and payload in bytes.
func (h UDP) SetLen(v uint16) { be.PutUint16(h[4:6], v) }

// SetChecksum sets the checksum.
func (h UDP) SetChecksum(v uint16) { be.PutUint16(h[6:8], v) }

// LRH is the local route header of native InfiniBand, 8 bytes.
type LRH []byte

// Values of LRH.LNH.
const (
	LNHRaw       = 0
	LNHIPv6      = 1
	LNHIBALocal  = 2
	LNHIBAGlobal = 3
)

// LIDs with a meaning of their own: multicast groups have those from
// FirstMulticastLID to the one before PermissiveLID.
const (
	FirstMulticastLID = 0xC000
	PermissiveLID     = 0xFFFF
)

// ManagementVL is the lane of packets to QP0, which has no credits.
const ManagementVL = 15

// IsMulticastLID reports whether a LID belongs to a multicast group.
func IsMulticastLID(lid uint16) bool { return lid >= FirstMulticastLID && lid != PermissiveLID }

// VL returns the virtual lane: bits 7:4 of byte 0.
func (h LRH) VL() uint8 { return h[0] >> 4 }

// Version returns the link version (LVer): bits 3:0 of byte 0.
func (h LRH) Version() uint8 { return h[0] & 0xF }

// SL returns the service level: bits 7:4 of byte 1.
func (h LRH) SL() uint8 { return h[1] >> 4 }

// LNH returns the link next header, LNHRaw to LNHIBAGlobal: bits 1:0 of byte 1.
func (h LRH) LNH() uint8 { return h[1] & 3 }

// DLID returns the destination LID: 16 bits at byte 2.
func (h LRH) DLID() uint16 { return be.Uint16(h[2:4]) }

// PktLen returns the length in 4-byte words, LRH through ICRC: bits 10:0 of the 16 at byte 4.
func (h LRH) PktLen() uint16 { return be.Uint16(h[4:6]) & 0x7FF }

// SLID returns the source LID: 16 bits at byte 6.
func (h LRH) SLID() uint16 { return be.Uint16(h[6:8]) }

// SetVL sets the virtual lane.
func (h LRH) SetVL(v uint8) { h[0] = h[0]&0xF | v<<4 }

// SetVersion sets the link version.
func (h LRH) SetVersion(v uint8) { h[0] = h[0]&0xF0 | v&0xF }

// SetSL sets the service level.
func (h LRH) SetSL(v uint8) { h[1] = h[1]&0xF | v<<4 }

// SetLNH sets the link next header.
func (h LRH) SetLNH(v uint8) { h[1] = h[1]&^3 | v&3 }

// SetDLID sets the destination LID.
func (h LRH) SetDLID(v uint16) { be.PutUint16(h[2:4], v) }

// SetSLID sets the source LID.
func (h LRH) SetSLID(v uint16) { be.PutUint16(h[6:8], v) }

// SetPktLen sets the length in 4-byte words, LRH through ICRC.
func (h LRH) SetPktLen(words uint16) {
	be.PutUint16(h[4:6], be.Uint16(h[4:6])&^0x7FF|words&0x7FF)
}

// sum16 adds p to a ones' complement sum that is folded later; an odd last byte
// counts as the high byte of a word.
func sum16(s uint64, p []byte) uint64 {
	for len(p) >= 4 {
		s += uint64(be.Uint32(p))
		p = p[4:]
	}
	if len(p) >= 2 {
		s += uint64(be.Uint16(p))
		p = p[2:]
	}
	if len(p) == 1 {
		s += uint64(p[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	s = s>>32 + s&0xFFFFFFFF
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	return uint16(s)
}

// udpSum is the folded sum of a UDP datagram and its pseudo header, 0xFFFF if the checksum in it is
// right. u is the datagram, src and dst are the addresses.
func udpSum(src, dst, u []byte) uint16 {
	s := sum16(0, src) + sum16(0, dst) + ProtoUDP + uint64(len(u))
	return fold(sum16(s, u))
}
