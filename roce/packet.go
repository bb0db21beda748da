package roce

// Packet is a decoded frame: it knows where the parts are. It points into the frame and is valid as
// long as the frame is.
type Packet struct {
	B       []byte // the frame that was parsed
	Framing Framing
	Op      Opcode
	pad     uint8
	net     uint16 // IP or GRH header; for InfiniBand without GRH the LRH
	bth     uint16
	payload uint16
	end     uint16 // behind the pad: where the ICRC is
}

// Ethernet returns the Ethernet header; not for InfiniBand framing.
func (p *Packet) Ethernet() Ethernet { return Ethernet(p.B[:EthernetSize]) }

// VLAN returns the 802.1Q tag, or nil if there is none.
func (p *Packet) VLAN() VLAN {
	if p.Framing == InfiniBand || p.net == EthernetSize {
		return nil
	}
	return VLAN(p.B[EthernetSize : EthernetSize+VLANSize])
}

// VLANID returns the VLAN that the frame is on, or 0 without a tag.
func (p *Packet) VLANID() uint16 {
	if v := p.VLAN(); v != nil {
		return v.TCI() & VLANMask
	}
	return 0
}

// IPv4 returns the IPv4 header; only for RoCEv2IPv4.
func (p *Packet) IPv4() IPv4 { return IPv4(p.B[p.net : p.net+IPv4Size]) }

// IPv6 returns the IPv6 header or GRH; only for packets that have one.
func (p *Packet) IPv6() IPv6 { return IPv6(p.B[p.net : p.net+IPv6Size]) }

// UDP returns the UDP header; only for RoCEv2.
func (p *Packet) UDP() UDP { return UDP(p.B[p.bth-UDPSize : p.bth]) }

// LRH returns the local route header; only for InfiniBand.
func (p *Packet) LRH() LRH { return LRH(p.B[:LRHSize]) }

// HasGRH reports whether the packet has a GRH or an IP header in its place.
func (p *Packet) HasGRH() bool { return p.Framing != InfiniBand || p.net != 0 }

// SrcGID returns the source address, an IPv4 address as its mapped GID, or the zero GID without a
// GRH.
func (p *Packet) SrcGID() GID {
	switch {
	case p.Framing == RoCEv2IPv4:
		return GIDFromIPv4(p.IPv4().Src())
	case p.HasGRH():
		return p.IPv6().Src()
	}
	return GID{}
}

// DstGID returns the destination address in the form of SrcGID.
func (p *Packet) DstGID() GID {
	switch {
	case p.Framing == RoCEv2IPv4:
		return GIDFromIPv4(p.IPv4().Dst())
	case p.HasGRH():
		return p.IPv6().Dst()
	}
	return GID{}
}

// TrafficClass returns the byte with DSCP and ECN: IPv4 TOS, IPv6 traffic class or GRH TClass; 0
// without a GRH.
func (p *Packet) TrafficClass() uint8 {
	switch {
	case p.Framing == RoCEv2IPv4:
		return p.IPv4().TOS()
	case p.HasGRH():
		return p.IPv6().TrafficClass()
	}
	return 0
}

// BTH returns the base transport header.
func (p *Packet) BTH() BTH {
	at := int(p.bth)
	return p.B[at : at+BTHSize : at+BTHSize]
}

// Info returns the row of the opcode table for the packet's opcode; it must not be changed.
func (p *Packet) Info() *OpInfo { return p.Op.Info() }

// Has reports whether the packet has all extended headers in h.
func (p *Packet) Has(h Headers) bool { return p.Op.Info().Headers.Has(h) }

// at is where extended header h begins; that of one that the opcode lacks is behind every frame.
// The views below are of constant length, so that their fields need no further check of bounds.
func (p *Packet) at(h Headers) int { return int(p.bth) + BTHSize + p.Op.Info().Offset(h) }

// The extended headers. Only those that the opcode has may be asked for (Has); others panic.

// RDETH returns the reliable datagram header; it panics if the opcode has none (see Has).
func (p *Packet) RDETH() RDETH {
	at := p.at(HasRDETH)
	return p.B[at : at+RDETHSize : at+RDETHSize]
}

// DETH returns the datagram header; it panics if the opcode has none (see Has).
func (p *Packet) DETH() DETH {
	at := p.at(HasDETH)
	return p.B[at : at+DETHSize : at+DETHSize]
}

// XRCETH returns the XRC header; it panics if the opcode has none (see Has).
func (p *Packet) XRCETH() XRCETH {
	at := p.at(HasXRCETH)
	return p.B[at : at+XRCETHSize : at+XRCETHSize]
}

// DCETH returns the DC header; it panics if the opcode has none (see Has).
func (p *Packet) DCETH() DCETH {
	at := p.at(HasDCETH)
	return p.B[at : at+DCETHSize : at+DCETHSize]
}

// FETH returns the FLUSH header; it panics if the opcode has none (see Has).
func (p *Packet) FETH() FETH {
	at := p.at(HasFETH)
	return p.B[at : at+FETHSize : at+FETHSize]
}

// RETH returns the RDMA header; it panics if the opcode has none (see Has).
func (p *Packet) RETH() RETH {
	at := p.at(HasRETH)
	return p.B[at : at+RETHSize : at+RETHSize]
}

// AtomicETH returns the atomic request header; it panics if the opcode has none (see Has).
func (p *Packet) AtomicETH() AtomicETH {
	at := p.at(HasAtomicETH)
	return p.B[at : at+AtomicETHSize : at+AtomicETHSize]
}

// AETH returns the acknowledge header; it panics if the opcode has none (see Has).
func (p *Packet) AETH() AETH {
	at := p.at(HasAETH)
	return p.B[at : at+AETHSize : at+AETHSize]
}

// SACKETH returns the header of a NAK with SACK; it panics if the opcode has none (see Has).
func (p *Packet) SACKETH() SACKETH {
	at := p.at(HasSACKETH)
	return p.B[at : at+SACKETHSize : at+SACKETHSize]
}

// AtomicAckETH returns the atomic acknowledgement header; it panics if the opcode has none (see
// Has).
func (p *Packet) AtomicAckETH() AtomicAckETH {
	at := p.at(HasAtomicAckETH)
	return p.B[at : at+AtomicAckETHSize : at+AtomicAckETHSize]
}

// ImmDt returns the immediate data header; it panics if the opcode has none (see Has).
func (p *Packet) ImmDt() ImmDt {
	at := p.at(HasImmDt)
	return p.B[at : at+ImmDtSize : at+ImmDtSize]
}

// IETH returns the invalidate header; it panics if the opcode has none (see Has).
func (p *Packet) IETH() IETH {
	at := p.at(HasIETH)
	return p.B[at : at+IETHSize : at+IETHSize]
}

// Ext returns the bytes of all extended headers.
func (p *Packet) Ext() []byte { return p.B[p.bth+BTHSize : p.payload] }

// Payload returns the payload without its pad.
func (p *Packet) Payload() []byte {
	at, n := int(p.payload), p.PayloadLen()
	return p.B[at : at+n]
}

// PayloadLen returns the length of the payload in bytes, without its pad.
func (p *Packet) PayloadLen() int { return int(p.end) - int(p.pad) - int(p.payload) }

// PadCount returns the number of pad bytes.
func (p *Packet) PadCount() int { return int(p.pad) }

// PayloadOK reports whether the payload obeys the opcode's rule at a path MTU of m bytes.
func (p *Packet) PayloadOK(m int) bool { return p.Op.Info().Payload.Allows(p.PayloadLen(), m) }

// Len returns the length in bytes from the start of the frame through the ICRC.
func (p *Packet) Len() int { return int(p.end) + ICRCSize }

// StoredICRC returns the ICRC that the frame carries.
func (p *Packet) StoredICRC() uint32 { return GetICRC(p.B[p.end:]) }

// ComputeICRC returns the ICRC over the frame's bytes.
func (p *Packet) ComputeICRC() uint32 {
	if p.Framing == InfiniBand {
		return ICRCInfiniBand(p.B[:p.end])
	}
	return ICRC(p.B[p.net:p.end])
}

// VCRC returns the variant CRC behind an InfiniBand packet and the one over its bytes; ok is false
// for other framings, and if the frame ends before it.
func (p *Packet) VCRC() (stored, want uint16, ok bool) {
	n := p.Len()
	if p.Framing != InfiniBand || len(p.B) < n+VCRCSize {
		return 0, 0, false
	}
	return GetVCRC(p.B[n:]), VCRC(p.B[:n]), true
}

// ICRCOK reports whether the frame carries the right ICRC, which it computes at every call.
func (p *Packet) ICRCOK() bool { return p.StoredICRC() == p.ComputeICRC() }

// PutGRH writes to dst the 40 bytes that a UD receive gets before its payload: the GRH or IPv6
// header, or 20 zero bytes and the IPv4 header (as rxe does). It returns false, and writes nothing,
// for an InfiniBand packet without GRH.
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

// BTHOffset returns the offset of the BTH in the frame, in bytes.
func (p *Packet) BTHOffset() int { return int(p.bth) }
