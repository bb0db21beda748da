package roce

import (
	"errors"
	"fmt"
)

// Path is what a template needs to know about the way to the peer: an address
// vector with its addresses resolved, and the QP at the other end.
type Path struct {
	Framing      Framing
	SrcMAC       MAC
	DstMAC       MAC
	Tagged       bool   // with an 802.1Q tag
	VLANTCI      uint16 // priority, DEI and VLAN ID of the tag
	SrcGID       GID
	DstGID       GID
	TrafficClass uint8
	HopLimit     uint8
	FlowLabel    uint32 // 20 bits; IPv6 and RoCEv1 headers
	SrcPort      uint16 // UDP source port, see UDPSourcePort
	PKey         uint16
	DestQP       uint32
	MigReq       bool // path state MIGRATED, the normal one
	// CountIPID numbers the IPv4 datagrams from FirstIPID (as rxe does); otherwise
	// all carry FirstIPID, which DF permits (RFC 6864).
	CountIPID bool
	FirstIPID uint16

	// Of InfiniBand framing, which has no MACs, tag and port.
	SLID, DLID uint16
	SL, VL     uint8
	Global     bool // with a GRH: the GIDs, traffic class, hop limit and flow label
}

// Template is the header of a QP's packets, Ethernet header or LRH through BTH, made
// once. A packet is a copy of it with a few fields patched.
type Template struct {
	hdr    [templateSize]byte // zeroes behind the BTH
	bth    uint8              // offset of the BTH
	net    uint8
	frame  Framing
	v4     bool
	udp    bool
	lrh    bool
	migReq uint8
	count  bool
	ipID   uint16
	ipSum  uint32 // IPv4 header sum without length and ID
	total  int    // frame length for which hdr has its length fields; 0: none
}

// templateSize is not less than the longest header through the BTH, and not more than the
// smallest size of a frame's memory.
const templateSize = 80

// ErrPath says that a path does not fit into a header. The errors of NewTemplate wrap it.
var ErrPath = errors.New("roce: path cannot be put into a header")

// NewTemplate checks a path and makes its header. Its errors wrap ErrPath.
func NewTemplate(p Path) (Template, error) {
	var t Template
	if err := p.check(); err != nil {
		return t, err
	}
	at := 0
	if p.Framing == InfiniBand {
		at = t.putLRH(p)
	} else {
		at = t.putNetwork(p, t.putEthernet(p))
	}
	bth := BTH(t.hdr[at : at+BTHSize])
	bth.SetPKey(p.PKey)
	bth.SetDestQP(p.DestQP)
	t.bth = uint8(at)
	if p.MigReq {
		t.migReq = 0x40
	}
	t.count, t.ipID, t.frame = p.CountIPID, p.FirstIPID, p.Framing
	return t, nil
}

// putEthernet writes the Ethernet header and the tag, and returns where they end.
func (t *Template) putEthernet(p Path) int {
	eth := Ethernet(t.hdr[:EthernetSize])
	eth.SetDst(p.DstMAC)
	eth.SetSrc(p.SrcMAC)
	typ := [...]uint16{RoCEv2IPv4: EtherTypeIPv4, RoCEv2IPv6: EtherTypeIPv6, RoCEv1: EtherTypeRoCE}[p.Framing]
	at := EthernetSize
	if p.Tagged {
		eth.SetType(EtherTypeVLAN)
		tag := VLAN(t.hdr[at : at+VLANSize])
		tag.SetTCI(p.VLANTCI)
		tag.SetType(typ)
		at += VLANSize
	} else {
		eth.SetType(typ)
	}
	t.net = uint8(at)
	return at
}

// putLRH writes the LRH and the GRH, and returns where they end.
func (t *Template) putLRH(p Path) int {
	h := LRH(t.hdr[:LRHSize])
	h.SetVL(p.VL)
	h.SetSL(p.SL)
	h.SetLNH(LNHIBALocal)
	h.SetDLID(p.DLID)
	h.SetSLID(p.SLID)
	t.lrh = true
	if !p.Global {
		return LRHSize
	}
	h.SetLNH(LNHIBAGlobal)
	t.net = LRHSize
	return t.putIPv6(p, LRHSize, ProtoIBA)
}

func (p *Path) check() error {
	switch p.Framing {
	case RoCEv2IPv4:
		if !p.SrcGID.IsIPv4() || !p.DstGID.IsIPv4() {
			return fmt.Errorf("%w: %v needs IPv4-mapped GIDs, not %v and %v", ErrPath, p.Framing, p.SrcGID, p.DstGID)
		}
	case RoCEv2IPv6, RoCEv1:
	case InfiniBand:
		permissive := p.VL == ManagementVL // is possible
		if p.DLID == 0 || p.DLID == PermissiveLID && !permissive || p.SLID == 0 || p.SLID >= FirstMulticastLID && (p.SLID != PermissiveLID || !permissive) ||
			p.SL > 15 || p.VL > ManagementVL {
			return fmt.Errorf("%w: LID 0x%x to 0x%x, SL %d, VL %d", ErrPath, p.SLID, p.DLID, p.SL, p.VL)
		}
	default:
		return fmt.Errorf("%w: no template for %v", ErrPath, p.Framing)
	}
	if p.DestQP > PSNMask {
		return fmt.Errorf("%w: QPN 0x%x has more than 24 bits", ErrPath, p.DestQP)
	}
	if p.FlowLabel > 0xFFFFF {
		return fmt.Errorf("%w: flow label 0x%x has more than 20 bits", ErrPath, p.FlowLabel)
	}
	return nil
}

// putNetwork writes the IP, UDP or GRH headers at at and returns where they end.
func (t *Template) putNetwork(p Path, at int) int {
	if p.Framing == RoCEv2IPv4 {
		h := IPv4(t.hdr[at : at+IPv4Size])
		h[0] = 0x45
		h.SetTOS(p.TrafficClass)
		h.SetFlagsOffset(IPv4DontFragment)
		h.SetTTL(p.HopLimit)
		h.SetProtocol(ProtoUDP)
		h.SetSrc(p.SrcGID.IPv4())
		h.SetDst(p.DstGID.IPv4())
		t.v4, t.ipSum = true, uint32(fold(sum16(0, h)))
		at += IPv4Size
	} else {
		proto := uint8(ProtoUDP)
		if p.Framing == RoCEv1 {
			proto = ProtoIBA
		}
		at = t.putIPv6(p, at, proto)
	}
	if p.Framing != RoCEv1 {
		u := UDP(t.hdr[at : at+UDPSize])
		u.SetSrcPort(p.SrcPort)
		u.SetDstPort(UDPPort)
		t.udp = true
		at += UDPSize
	}
	return at
}

// putIPv6 writes an IPv6 header or a GRH at at and returns where it ends.
func (t *Template) putIPv6(p Path, at int, proto uint8) int {
	h := IPv6(t.hdr[at : at+IPv6Size])
	h.SetVersion(p.TrafficClass, p.FlowLabel)
	h.SetNextHeader(proto)
	h.SetHopLimit(p.HopLimit)
	h.SetSrc(p.SrcGID)
	h.SetDst(p.DstGID)
	return at + IPv6Size
}

// Flags are the bits of the BTH that differ between packets of a QP.
type Flags uint8

// Flags.
const (
	AckReq Flags = 1 << iota
	Solicited
	BECN
)

// FrameLen returns the length in bytes of a frame with this opcode and n bytes of payload, from its
// first byte through the ICRC.
func (t *Template) FrameLen(op Opcode, n int) int {
	return int(t.bth) + BTHSize + int(op.Info().HeaderLen) + n + PadCount(n) + ICRCSize
}

// New returns a frame from the pool with all headers through the BTH filled in, the extended
// headers and the pad zeroed, and room for n bytes of payload. The caller fills in Ext and Payload;
// the ICRC is pending.
func (t *Template) New(pool *Pool, op Opcode, psn uint32, n int, flags Flags) *Frame {
	ext := int(t.bth) + BTHSize
	payload := ext + int(op.Info().HeaderLen)
	pad := PadCount(n)
	total := payload + n + pad + ICRCSize
	f := pool.take(total)
	f.ICRC = ICRCPending
	f.Framing, f.Op, f.pad, f.net, f.bth = t.frame, op, uint8(pad), uint16(t.net), uint16(t.bth)
	f.payload, f.end = uint16(payload), uint16(total-ICRCSize)
	f.decoded, f.LRH = true, t.lrh
	if total != t.total || t.count { // streams have few lengths
		t.patchLengths(total)
	}
	b := f.B
	*(*[templateSize]byte)(b[:templateSize]) = t.hdr // what the payload overwrites included
	if payload > templateSize {
		clear(b[templateSize:payload])
	}
	if n == 0 {
		be.PutUint32(b[total-ICRCSize:], 0)
	} else { // the pad and the ICRC are the end of 8 bytes behind the headers
		be.PutUint64(b[total-2*ICRCSize:], 0)
	}
	h := b[ext-BTHSize : ext : ext]
	h[0] = byte(op)
	h[1] = t.migReq | byte(pad)<<4 | byte(flags&Solicited)<<6
	h[4] = byte(flags&BECN) << 4
	be.PutUint32(h[8:12], uint32(flags&AckReq)<<31|psn&PSNMask)
	return f
}

// patchLengths puts what depends on the frame's length into the header, and the IPv4
// ID. The header checksum is the template's sum with the two words added.
func (t *Template) patchLengths(total int) {
	b := t.hdr[:]
	t.total = total
	n := total - int(t.net)
	switch {
	case t.v4:
		h := IPv4(b[t.net : int(t.net)+IPv4Size])
		h.SetTotalLen(uint16(n))
		h.SetID(t.ipID)
		s := t.ipSum + uint32(uint16(n)) + uint32(t.ipID)
		s = s>>16 + s&0xFFFF
		s = s>>16 + s&0xFFFF
		h.SetChecksum(^uint16(s))
		if t.count {
			t.ipID++
		}
	case t.lrh && t.net == 0:
		be.PutUint16(b[4:], uint16(total/4))
	case t.lrh:
		be.PutUint16(b[4:], uint16(total/4))
		fallthrough
	default:
		be.PutUint16(b[t.net+4:], uint16(n-IPv6Size))
	}
	if t.udp {
		be.PutUint16(b[t.bth-4:], uint16(total-int(t.bth)+UDPSize))
	}
}

// SetDestQP changes the destination QPN: a UD QP sends to many QPs from one template per address
// handle.
func (t *Template) SetDestQP(qpn uint32) { BTH(t.hdr[t.bth:]).SetDestQP(qpn) }

// SetPKey changes the partition key.
func (t *Template) SetPKey(k uint16) { BTH(t.hdr[t.bth:]).SetPKey(k) }

// SetMigReq sets or clears the MigReq bit.
func (t *Template) SetMigReq(v bool) { setBit(&t.migReq, 0x40, v) }

// SetSrcPort changes the UDP source port; it does nothing without UDP.
func (t *Template) SetSrcPort(port uint16) {
	if t.udp {
		UDP(t.hdr[t.bth-UDPSize:]).SetSrcPort(port)
	}
}

// DstMAC returns the address of the next hop; not for InfiniBand framing.
func (t *Template) DstMAC() MAC { return Ethernet(t.hdr[:]).Dst() }
