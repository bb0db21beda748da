package roce

// crcPoly is the polynomial of the CRC-32 (IEEE 802.3), reflected: bit 31 is the coefficient of 1,
// bit 0 that of x^31.
const crcPoly = 0xEDB88320

// crcOrder is the order of x modulo the polynomial, which is primitive: x to this power is 1.
const crcOrder = 1<<32 - 1

// crcMul is the product of two polynomials modulo that of the CRC.
func crcMul(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		if a&0x8000_0000 != 0 {
			p ^= b
		}
		b = b>>1 ^ crcPoly&-(b&1)
	}
	return p
}

// crcPower is x to the power n.
func crcPower(n uint64) uint32 {
	result, square := uint32(0x8000_0000), uint32(0x4000_0000)
	for ; n != 0; n >>= 1 {
		if n&1 != 0 {
			result = crcMul(result, square)
		}
		square = crcMul(square, square)
	}
	return result
}

// HiddenIPv4 tells with which identification and fragment flags the ICRC of RoCEv2/IPv4 packets was
// computed. A socket does not show these four bytes of the header to the receiver, and the ICRC
// covers them. The zero value is ready; it keeps what the last lengths of packets need, and is not
// for concurrent use.
type HiddenIPv4 struct {
	known [8]struct {
		n   int
		inv uint32
	}
}

// Solve returns the identification and the flags with which the packet's ICRC is right if its other
// bytes are, and those that the header has when it is right as it is. ok is false if no
// identification makes it right, with the flag DF or none at all: such an ICRC is wrong. A packet
// that was damaged otherwise passes with a probability of 2^-15, where an ICRC whose identification
// is known lets pass 2^-32. The packet must be RoCEv2IPv4.
func (s *HiddenIPv4) Solve(p *Packet) (id, flags uint16, ok bool) {
	h := p.IPv4()
	diff := p.StoredICRC() ^ p.ComputeICRC()
	if diff == 0 {
		return h.ID(), h.FlagsOffset(), true
	}
	// A CRC is linear: the difference is that of the four bytes, moved by the bytes behind them and
	// by itself.
	v := crcMul(diff, s.inverse(int(p.end)-int(p.net)-8+4))
	id = h.ID() ^ uint16(v&0xFF)<<8 ^ uint16(v>>8&0xFF)
	flags = h.FlagsOffset() ^ uint16(v>>16&0xFF)<<8 ^ uint16(v>>24)
	return id, flags, flags == 0 || flags == IPv4DontFragment
}

// inverse is x to the power of minus 8 n.
func (s *HiddenIPv4) inverse(n int) uint32 {
	k := &s.known[n>>2&7]
	if k.n != n || k.inv == 0 {
		k.n, k.inv = n, crcPower(crcOrder-uint64(8*n))
	}
	return k.inv
}

// PutIPv4Hidden sets the identification and the flags of an IPv4 header, and makes its checksum
// right.
func (p *Packet) PutIPv4Hidden(id, flags uint16) {
	h := p.IPv4()
	h.SetID(id)
	h.SetFlagsOffset(flags)
	h.SetChecksum(h.ComputeChecksum())
}
