package roce

import "hash/crc32"

// icrcSeed is the state of the CRC-32, in the convention of hash/crc32, after
// eight bytes of ones: they stand in place of an LRH.
const icrcSeed = ^uint32(0xDEBB20E3)

// ICRC returns the invariant CRC of a RoCE frame. net is the frame from its IPv4, IPv6 or GRH
// header through the last pad byte, without the ICRC; it must hold whole headers through the BTH
// (Parse checks that). ICRC allocates nothing and leaves the frame unchanged.
//
// Fields that change on the way count as ones: traffic class, flow label, TTL, the checksums, and
// the byte of the BTH with the congestion bits.
func ICRC(net []byte) uint32 {
	if len(net) == 0 {
		return 0
	}
	if net[0]>>4 == 4 {
		return icrcIPv4(net)
	}
	return icrcIPv6(icrcSeed, net)
}

// PutICRC stores an ICRC as it is on the wire, least significant byte first.
func PutICRC(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

// GetICRC reads an ICRC as it is on the wire, least significant byte first.
func GetICRC(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func icrcIPv4(p []byte) uint32 {
	const bth = IPv4Size + UDPSize
	var h [bth + 8]byte
	copy(h[:], p)
	h[1], h[8], h[10], h[11] = 0xFF, 0xFF, 0xFF, 0xFF
	h[IPv4Size+6], h[IPv4Size+7] = 0xFF, 0xFF
	h[bth+4] = 0xFF
	return crcRest(icrcSeed, h[:], p)
}

func icrcIPv6(seed uint32, p []byte) uint32 {
	var h [IPv6Size + UDPSize + 8]byte
	bth := IPv6Size
	copy(h[:], p)
	h[0], h[1], h[2], h[3], h[7] = h[0]|0x0F, 0xFF, 0xFF, 0xFF, 0xFF
	if h[6] == ProtoUDP {
		h[IPv6Size+6], h[IPv6Size+7] = 0xFF, 0xFF
		bth += UDPSize
	}
	h[bth+4] = 0xFF
	n := bth + 8
	return crcRest(seed, h[:n], p)
}

// ICRCInfiniBand returns the invariant CRC of a native InfiniBand packet, LRH through pad. With a
// GRH the whole LRH counts as ones, without one only its VL. This follows from the kernel's headers
// by analogy; no capture of such a packet was available to check it.
func ICRCInfiniBand(p []byte) uint32 {
	if len(p) < LRHSize {
		return 0
	}
	if LRH(p).LNH() == LNHIBAGlobal {
		return icrcIPv6(icrcSeed, p[LRHSize:])
	}
	var h [LRHSize + 8]byte
	copy(h[:], p)
	h[0] |= 0xF0
	h[LRHSize+4] = 0xFF
	return crcRest(0, h[:], p)
}

// crcRest is the CRC of the masked copy h of p's beginning, and of the rest of p.
func crcRest(seed uint32, h, p []byte) uint32 {
	n := min(len(h), len(p))
	return crc32.Update(crcBytes(seed, h[:n]), crc32.IEEETable, p[n:])
}

// crcBytes is crc32.Update byte by byte. The masked headers go through it because
// crc32.Update makes its argument escape, and they live on the stack.
func crcBytes(crc uint32, p []byte) uint32 {
	crc = ^crc
	for _, b := range p {
		crc = crc32.IEEETable[byte(crc)^b] ^ crc>>8
	}
	return ^crc
}

// vcrcTable is of CRC-16 with polynomial 0x100B, reflected.
var vcrcTable = makeVCRCTable()

func makeVCRCTable() *[256]uint16 {
	t := new([256]uint16)
	for i := range t {
		c := uint16(i)
		for range 8 {
			if c&1 != 0 {
				c = c>>1 ^ 0xD008
			} else {
				c >>= 1
			}
		}
		t[i] = c
	}
	return t
}

// VCRC returns the variant CRC of a native InfiniBand packet, LRH through ICRC.
func VCRC(p []byte) uint16 {
	c := uint16(0xFFFF)
	for _, b := range p {
		c = vcrcTable[byte(c)^b] ^ c>>8
	}
	return ^c
}

// PutVCRC stores a variant CRC as it is on the wire, least significant byte first.
func PutVCRC(b []byte, v uint16) { b[0], b[1] = byte(v), byte(v>>8) }

// GetVCRC reads a variant CRC as it is on the wire, least significant byte first.
func GetVCRC(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
