package roce

// Packet is a decoded frame: where its parts are. It points into the frame and
// lives as long as it.
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

// Ethernet is the frame's Ethernet header; not for InfiniBand framing.
func (p *Packet) Ethernet() Ethernet { return Ethernet(p.B[:EthernetSize]) }

// VLAN is the 802.1Q tag, nil if there is none.
func (p *Packet) VLAN() VLAN {
	if p.Framing == InfiniBand || p.net == EthernetSize {
		return nil
	}
	return VLAN(p.B[EthernetSize : EthernetSize+VLANSize])
}

// VLANID is the VLAN that the frame is on; 0: none.
func (p *Packet) VLANID() uint16 {
	if v := p.VLAN(); v != nil {
		return v.TCI() & VLANMask
	}
	return 0
}

// IPv4 is the IPv4 header; only for RoCEv2IPv4.
func (p *Packet) IPv4() IPv4 { return IPv4(p.B[p.net : p.net+IPv4Size]) }

// IPv6 is the IPv6 header or GRH; only for the framings that have one.
func (p *Packet) IPv6() IPv6 { return IPv6(p.B[p.net : p.net+IPv6Size]) }

// UDP is the UDP header; only for RoCEv2.
func (p *Packet) UDP() UDP { return UDP(p.B[p.bth-UDPSize : p.bth]) }

// LRH is the local route header; only for InfiniBand.
func (p *Packet) LRH() LRH { return LRH(p.B[:LRHSize]) }

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
func (p *Packet) BTH() BTH {
	at := int(p.bth)
	return p.B[at : at+BTHSize : at+BTHSize]
}

// Info is the row of the opcode table.
func (p *Packet) Info() *OpInfo { return p.Op.Info() }

// Has says whether the packet has all these extended headers.
func (p *Packet) Has(h Headers) bool { return p.Op.Info().Headers.Has(h) }

// at is where extended header h begins; that of one that the opcode lacks is behind every frame.
// The views below are of constant length, so that their fields need no further check of bounds.
func (p *Packet) at(h Headers) int { return int(p.bth) + BTHSize + p.Op.Info().Offset(h) }

// The extended headers. Only those that the opcode has may be asked for (Has); others panic.

// RDETH returns the extended header; the opcode must have it.
func (p *Packet) RDETH() RDETH {
	at := p.at(HasRDETH)
	return p.B[at : at+RDETHSize : at+RDETHSize]
}

// DETH returns the extended header; the opcode must have it.
func (p *Packet) DETH() DETH {
	at := p.at(HasDETH)
	return p.B[at : at+DETHSize : at+DETHSize]
}

// XRCETH returns the extended header; the opcode must have it.
func (p *Packet) XRCETH() XRCETH {
	at := p.at(HasXRCETH)
	return p.B[at : at+XRCETHSize : at+XRCETHSize]
}

// DCETH returns the extended header; the opcode must have it.
func (p *Packet) DCETH() DCETH {
	at := p.at(HasDCETH)
	return p.B[at : at+DCETHSize : at+DCETHSize]
}

// FETH returns the extended header; the opcode must have it.
func (p *Packet) FETH() FETH {
	at := p.at(HasFETH)
	return p.B[at : at+FETHSize : at+FETHSize]
}

// RETH returns the extended header; the opcode must have it.
func (p *Packet) RETH() RETH {
	at := p.at(HasRETH)
	return p.B[at : at+RETHSize : at+RETHSize]
}

// AtomicETH returns the extended header; the opcode must have it.
func (p *Packet) AtomicETH() AtomicETH {
	at := p.at(HasAtomicETH)
	return p.B[at : at+AtomicETHSize : at+AtomicETHSize]
}

// AETH returns the extended header; the opcode must have it.
func (p *Packet) AETH() AETH {
	at := p.at(HasAETH)
	return p.B[at : at+AETHSize : at+AETHSize]
}

// AtomicAckETH returns the extended header; the opcode must have it.
func (p *Packet) AtomicAckETH() AtomicAckETH {
	at := p.at(HasAtomicAckETH)
	return p.B[at : at+AtomicAckETHSize : at+AtomicAckETHSize]
}

// ImmDt returns the extended header; the opcode must have it.
func (p *Packet) ImmDt() ImmDt {
	at := p.at(HasImmDt)
	return p.B[at : at+ImmDtSize : at+ImmDtSize]
}

// IETH returns the extended header; the opcode must have it.
func (p *Packet) IETH() IETH {
	at := p.at(HasIETH)
	return p.B[at : at+IETHSize : at+IETHSize]
}

// Ext is all extended headers.
func (p *Packet) Ext() []byte { return p.B[p.bth+BTHSize : p.payload] }

// Payload is the payload without its pad.
func (p *Packet) Payload() []byte {
	at, n := int(p.payload), p.PayloadLen()
	return p.B[at : at+n]
}

// PayloadLen is len(Payload()).
func (p *Packet) PayloadLen() int { return int(p.end) - int(p.pad) - int(p.payload) }

// PadCount is the number of pad bytes.
func (p *Packet) PadCount() int { return int(p.pad) }

// PayloadOK says whether the payload obeys the opcode's rule at path MTU m.
func (p *Packet) PayloadOK(m int) bool { return p.Op.Info().Payload.Allows(p.PayloadLen(), m) }

// Len is the length from the first byte of the frame through the ICRC.
func (p *Packet) Len() int { return int(p.end) + ICRCSize }

// StoredICRC is the ICRC that the frame carries.
func (p *Packet) StoredICRC() uint32 { return GetICRC(p.B[p.end:]) }

// ComputeICRC is the ICRC that belongs to the frame's bytes.
func (p *Packet) ComputeICRC() uint32 {
	if p.Framing == InfiniBand {
		return ICRCInfiniBand(p.B[:p.end])
	}
	return ICRC(p.B[p.net:p.end])
}

// VCRC is the variant CRC behind an InfiniBand packet, and the one that belongs there;
// ok is false when the frame ends before it.
func (p *Packet) VCRC() (stored, want uint16, ok bool) {
	n := p.Len()
	if p.Framing != InfiniBand || len(p.B) < n+VCRCSize {
		return 0, 0, false
	}
	return GetVCRC(p.B[n:]), VCRC(p.B[:n]), true
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
