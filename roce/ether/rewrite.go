package ether

import "github.com/rdmasim/rdmasim/roce"

// Lengths and the port of a VXLAN tunnel (RFC 7348).
const (
	VXLANSize = 8
	VXLANPort = 4789
)

// addressesSize is the length of the two addresses that a frame begins with.
const addressesSize = 12

// Tunnel is the frame inside a VXLAN packet and its network: where it begins in b; false: b is no
// whole one.
func (h *Headers) Tunnel(b []byte) (at int, vni uint32, ok bool) {
	const valid = 0x08 // the flag of a network identifier
	at = h.Payload + VXLANSize
	if h.Transport == 0 || h.Proto != roce.ProtoUDP || h.DstPort != VXLANPort || h.Fragment || h.Short || at+roce.EthernetSize > h.End || b[h.Payload]&valid == 0 {
		return 0, 0, false
	}
	return at, be.Uint32(b[h.Payload+4:]) >> 8, true
}

// PutTag writes b with a tag behind the addresses to into, which is as much longer: EtherType and
// TCI.
func PutTag(into, b []byte, tag uint32) {
	copy(into, b[:addressesSize])
	be.PutUint32(into[addressesSize:], tag)
	copy(into[addressesSize+roce.VLANSize:], b[addressesSize:])
}

// TakeTag writes b without its first tag to into, which is as much shorter.
func TakeTag(into, b []byte) {
	copy(into, b[:addressesSize])
	copy(into[addressesSize:], b[addressesSize+roce.VLANSize:])
}

// Encapsulate writes b behind the headers of a tunnel to into, which has the length of both, and
// fills in what follows from the length: those of IP and UDP, and the checksum of IPv4. That of UDP
// stays as it is.
func Encapsulate(into, headers, b []byte) {
	copy(into[copy(into, headers):], b)
	h := parse(into, true)
	switch h.Version {
	case 4:
		roce.IPv4(into[h.Net:]).SetTotalLen(uint16(len(into) - h.Net))
		h.FillNetwork(into)
	case 6:
		roce.IPv6(into[h.Net:]).SetPayloadLen(uint16(len(into) - h.Net - roce.IPv6Size))
	}
	if h.Transport > 0 && h.Proto == roce.ProtoUDP {
		roce.UDP(into[h.Transport:]).SetLen(uint16(len(into) - h.Transport))
	}
}

// Field is up to 64 bits of the headers of a packet that lie together, as adapters read and write
// them.
type Field uint8

// Fields. The numbers are those of ConnectX-5's steering entries.
const (
	FieldDMAC  Field = 0x00
	FieldSMAC  Field = 0x01
	FieldL2    Field = 0x02 // TCI of the first tag, and EtherType from bit 32 on
	FieldIP0   Field = 0x03 // addresses of IPv4, the destination from bit 32 on; upper half of the destination of IPv6
	FieldIP1   Field = 0x04 // DSCP, ECN from bit 6 on, TTL from bit 8 on
	FieldIP2   Field = 0x05 // lower half of the destination of IPv6
	FieldIP3   Field = 0x06 // upper half of its source
	FieldIP4   Field = 0x07 // lower half of it
	FieldPorts Field = 0x08 // source, destination from bit 16 on, and TCP flags from bit 48 on
	FieldTCP   Field = 0x09 // acknowledgement, and sequence number from bit 32 on
)

func mac(b []byte) uint64 { return uint64(be.Uint16(b))<<32 | uint64(be.Uint32(b[2:])) }

func putMAC(b []byte, v uint64) {
	be.PutUint16(b, uint16(v>>32))
	be.PutUint32(b[2:], uint32(v))
}

// half is 8 bytes of an IPv6 header.
func (h *Headers) half(b []byte, at int) (uint64, bool) {
	if h.Version != 6 {
		return 0, false
	}
	return be.Uint64(b[h.Net+at:]), true
}

// Load reads a field of a frame with these headers, which has the length of an Ethernet header at
// least; false: it has no such header.
func (h *Headers) Load(b []byte, x Field) (v uint64, ok bool) {
	switch x {
	case FieldDMAC:
		return mac(b), true
	case FieldSMAC:
		return mac(b[6:]), true
	case FieldL2:
		return uint64(h.Type)<<32 | uint64(h.TCI), true
	case FieldIP0:
		if h.Version == 4 {
			v = be.Uint64(b[h.Net+12:])
			return v<<32 | v>>32, true
		}
		return h.half(b, 24)
	case FieldIP1:
		return uint64(h.TTL)<<8 | uint64(h.TOS&3)<<6 | uint64(h.TOS>>2), h.Version != 0
	case FieldIP2:
		return h.half(b, 32)
	case FieldIP3:
		return h.half(b, 8)
	case FieldIP4:
		return h.half(b, 16)
	case FieldPorts:
		return uint64(h.TCPFlags)<<48 | uint64(h.DstPort)<<16 | uint64(h.SrcPort), h.Transport > 0
	case FieldTCP:
		if h.Transport > 0 && h.Proto == ProtoTCP {
			return be.Uint64(b[h.Transport+4:]), true
		}
	}
	return 0, false
}

// Store writes a field that Load has read. Checksums stay as they are, and the headers are to be
// parsed again.
func (h *Headers) Store(b []byte, x Field, v uint64) {
	switch x {
	case FieldDMAC:
		putMAC(b, v)
	case FieldSMAC:
		putMAC(b[6:], v)
	case FieldL2:
		be.PutUint16(b[h.Net-2:], uint16(v>>32))
		if h.Tagged || h.STagged {
			roce.VLAN(b[roce.EthernetSize:]).SetTCI(uint16(v))
		}
	case FieldIP0:
		if h.Version == 4 {
			be.PutUint64(b[h.Net+12:], v<<32|v>>32)
		} else {
			be.PutUint64(b[h.Net+24:], v)
		}
	case FieldIP1:
		tos := uint8(v&0x3f<<2 | v>>6&3)
		if h.Version == 4 {
			b[h.Net+1], b[h.Net+8] = tos, uint8(v>>8)
		} else {
			be.PutUint16(b[h.Net:], be.Uint16(b[h.Net:])&0xf00f|uint16(tos)<<4)
			b[h.Net+7] = uint8(v >> 8)
		}
	case FieldIP2:
		be.PutUint64(b[h.Net+32:], v)
	case FieldIP3:
		be.PutUint64(b[h.Net+8:], v)
	case FieldIP4:
		be.PutUint64(b[h.Net+16:], v)
	case FieldPorts:
		be.PutUint16(b[h.Transport:], uint16(v))
		be.PutUint16(b[h.Transport+2:], uint16(v>>16))
		if h.Proto == ProtoTCP {
			be.PutUint16(b[h.Transport+12:], be.Uint16(b[h.Transport+12:])&0xfe00|uint16(v>>48)&0x1ff)
		}
	case FieldTCP:
		be.PutUint64(b[h.Transport+4:], v)
	}
}
