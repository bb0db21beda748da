package roce

// Corrupt flips the lowest bit of the last byte that the ICRC covers: payload, pad, or a header if
// there is neither.
func (p *Packet) Corrupt() { p.B[p.Len()-ICRCSize-1] ^= 1 }

// SetByte sets the byte at an offset from the first byte of the BTH; negative offsets reach the
// headers before it. Offsets outside the frame or in the ICRC change nothing. ICRC and IPv4
// checksum stay as they are; see FixICRC and FixChecksum.
func (p *Packet) SetByte(offset int, v byte) {
	if at := p.BTHOffset() + offset; at >= 0 && at < p.Len()-ICRCSize {
		p.B[at] = v
	}
}

// FixChecksum recomputes the checksum of an IPv4 header; other framings have none.
func (p *Packet) FixChecksum() {
	if p.Framing == RoCEv2IPv4 {
		h := p.IPv4()
		h.SetChecksum(h.ComputeChecksum())
	}
}

// FixICRC recomputes the ICRC over the bytes before it.
func (p *Packet) FixICRC() { PutICRC(p.B[p.Len()-ICRCSize:], p.ComputeICRC()) }

// MarkCongestion sets both ECN bits of the IP header (and mends an IPv4 checksum), or on InfiniBand
// the FECN bit of the BTH. The ICRC covers neither. It does nothing on RoCEv1.
func (p *Packet) MarkCongestion() {
	switch p.Framing {
	case RoCEv2IPv4:
		h := p.IPv4()
		h.SetTOS(h.TOS() | 3)
		h.SetChecksum(h.ComputeChecksum())
	case RoCEv2IPv6:
		h := p.IPv6()
		h.SetVersion(h.TrafficClass()|3, h.FlowLabel())
	case InfiniBand:
		p.BTH().SetFECN(true)
	}
}
