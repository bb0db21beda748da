package layers

import (
	"fmt"

	"github.com/google/gopacket"
	gplayers "github.com/google/gopacket/layers"

	"github.com/rdmasim/rdmasim/roce"
)

// IPv4 serialises as gopacket's and then, with ComputeChecksums, completes the
// ICRC. It decodes as gopacket's.
type IPv4 struct{ gplayers.IPv4 }

// SerializeTo puts the header before a UDP datagram of RoCEv2.
func (ip *IPv4) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if err := ip.IPv4.SerializeTo(b, opts); err != nil {
		return err
	}
	return completeICRC(b, opts, roce.IPv4Size+roce.UDPSize)
}

// IPv6 serialises as gopacket's and then, with ComputeChecksums, completes the
// ICRC. It decodes as gopacket's.
type IPv6 struct{ gplayers.IPv6 }

// SerializeTo puts the header before a UDP datagram of RoCEv2.
func (ip *IPv6) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if err := ip.IPv6.SerializeTo(b, opts); err != nil {
		return err
	}
	return completeICRC(b, opts, roce.IPv6Size+roce.UDPSize)
}

// UDP serialises with the checksum of its field, 0 in RoCEv2, also when checksums
// are computed.
type UDP struct{ gplayers.UDP }

// SerializeTo puts the header before the BTH.
func (u *UDP) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	opts.ComputeChecksums = false
	return u.UDP.SerializeTo(b, opts)
}

// completeICRC fills in the last four bytes of a packet that begins with an IP
// header or a GRH; before is what precedes the BTH.
func completeICRC(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions, before int) error {
	if !opts.ComputeChecksums {
		return nil
	}
	p := b.Bytes()
	if len(p) < before+roce.BTHSize+roce.ICRCSize {
		return fmt.Errorf("no room for a BTH and an ICRC in %d bytes", len(p))
	}
	at := len(p) - roce.ICRCSize
	roce.PutICRC(p[at:], roce.ICRC(p[:at]))
	return nil
}

// GRH is the global routing header of RoCEv1 and native InfiniBand.
type GRH struct {
	gplayers.BaseLayer
	Version      uint8
	TrafficClass uint8
	FlowLabel    uint32
	PayloadLen   uint16
	NextHeader   uint8
	HopLimit     uint8
	Src, Dst     roce.GID
}

var _ interface {
	gopacket.DecodingLayer
	gopacket.SerializableLayer
} = (*GRH)(nil)

// LayerType is LayerTypeGRH.
func (g *GRH) LayerType() gopacket.LayerType { return LayerTypeGRH }

// CanDecode is LayerTypeGRH.
func (g *GRH) CanDecode() gopacket.LayerClass { return LayerTypeGRH }

// NextLayerType is BTH, or a payload if the next header is another.
func (g *GRH) NextLayerType() gopacket.LayerType {
	if g.NextHeader == roce.ProtoIBA {
		return LayerTypeBTH
	}
	return gopacket.LayerTypePayload
}

func decodeGRH(data []byte, p gopacket.PacketBuilder) error {
	g := new(GRH)
	if err := g.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(g)
	return p.NextDecoder(g.NextLayerType())
}

// DecodeFromBytes decodes the header and cuts the payload to its stated length.
func (g *GRH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < roce.GRHSize {
		df.SetTruncated()
		return fmt.Errorf("GRH of %d bytes, needs %d", len(data), roce.GRHSize)
	}
	h := roce.GRH(data[:roce.GRHSize])
	*g = GRH{
		Version: h.Version(), TrafficClass: h.TrafficClass(), FlowLabel: h.FlowLabel(), PayloadLen: h.PayloadLen(),
		NextHeader: h.NextHeader(), HopLimit: h.HopLimit(), Src: h.Src(), Dst: h.Dst(),
	}
	g.Contents, g.Payload = data[:roce.GRHSize], data[roce.GRHSize:]
	if n := int(g.PayloadLen); n < len(g.Payload) {
		g.Payload = g.Payload[:n]
	} else if n > len(g.Payload) {
		df.SetTruncated()
	}
	return nil
}

// SerializeTo puts the header before the BTH and, with ComputeChecksums, completes
// the ICRC as RoCEv1 has it, which is also that of InfiniBand behind an LRH.
func (g *GRH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		n := len(b.Bytes())
		if n > 0xFFFF {
			return fmt.Errorf("GRH payload of %d bytes", n)
		}
		g.PayloadLen = uint16(n)
	}
	head, err := b.PrependBytes(roce.GRHSize)
	if err != nil {
		return err
	}
	h := roce.GRH(head)
	h.SetVersion(g.TrafficClass, g.FlowLabel)
	h.SetPayloadLen(g.PayloadLen)
	h.SetNextHeader(g.NextHeader)
	h.SetHopLimit(g.HopLimit)
	h.SetSrc(g.Src)
	h.SetDst(g.Dst)
	return completeICRC(b, opts, roce.GRHSize)
}

// LRH is the local route header of native InfiniBand. Its payload ends before the
// VCRC.
type LRH struct {
	gplayers.BaseLayer
	VL, Version, SL, LNH uint8
	DLID, PktLen, SLID   uint16
	HasVCRC              bool // false when the capture was cut before it
	VCRC                 uint16
}

var _ interface {
	gopacket.DecodingLayer
	gopacket.SerializableLayer
} = (*LRH)(nil)

// LayerType is LayerTypeLRH.
func (l *LRH) LayerType() gopacket.LayerType { return LayerTypeLRH }

// CanDecode is LayerTypeLRH.
func (l *LRH) CanDecode() gopacket.LayerClass { return LayerTypeLRH }

// NextLayerType is GRH or BTH; raw packets have a payload.
func (l *LRH) NextLayerType() gopacket.LayerType {
	switch l.LNH {
	case roce.LNHIBAGlobal:
		return LayerTypeGRH
	case roce.LNHIBALocal:
		return LayerTypeBTH
	}
	return gopacket.LayerTypePayload
}

func decodeLRH(data []byte, p gopacket.PacketBuilder) error {
	l := new(LRH)
	if err := l.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(l)
	return p.NextDecoder(l.NextLayerType())
}

// DecodeFromBytes decodes the header and the VCRC.
func (l *LRH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < roce.LRHSize {
		df.SetTruncated()
		return fmt.Errorf("LRH of %d bytes, needs %d", len(data), roce.LRHSize)
	}
	h := roce.LRH(data[:roce.LRHSize])
	*l = LRH{VL: h.VL(), Version: h.Version(), SL: h.SL(), LNH: h.LNH(), DLID: h.DLID(), PktLen: h.PktLen(), SLID: h.SLID()}
	l.Contents, l.Payload = data[:roce.LRHSize], data[roce.LRHSize:]
	n := int(l.PktLen)*4 - roce.LRHSize
	if n < 0 {
		return fmt.Errorf("LRH states a length of %d words", l.PktLen)
	}
	switch rest := len(l.Payload) - n; {
	case rest < 0:
		df.SetTruncated()
	case rest < roce.VCRCSize:
		df.SetTruncated()
		l.Payload = l.Payload[:n]
	default:
		l.HasVCRC, l.VCRC = true, roce.GetVCRC(l.Payload[n:])
		l.Payload = l.Payload[:n]
	}
	return nil
}

// SerializeTo puts the header before GRH or BTH and the VCRC behind. With
// ComputeChecksums it completes the ICRC of a packet without GRH, and the VCRC.
func (l *LRH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		n := (roce.LRHSize + len(b.Bytes())) / 4
		if n > 0x7FF {
			return fmt.Errorf("packet of %d words", n)
		}
		l.PktLen = uint16(n)
	}
	head, err := b.PrependBytes(roce.LRHSize)
	if err != nil {
		return err
	}
	clear(head)
	h := roce.LRH(head)
	h.SetVL(l.VL)
	h.SetVersion(l.Version)
	h.SetSL(l.SL)
	h.SetLNH(l.LNH)
	h.SetDLID(l.DLID)
	h.SetPktLen(l.PktLen)
	h.SetSLID(l.SLID)
	if opts.ComputeChecksums {
		if p := b.Bytes(); l.LNH == roce.LNHIBALocal {
			if len(p) < roce.LRHSize+roce.BTHSize+roce.ICRCSize {
				return fmt.Errorf("no room for a BTH and an ICRC in %d bytes", len(p))
			}
			at := len(p) - roce.ICRCSize
			roce.PutICRC(p[at:], roce.ICRCInfiniBand(p[:at]))
		}
		l.VCRC = roce.VCRC(b.Bytes())
	}
	tail, err := b.AppendBytes(roce.VCRCSize)
	if err != nil {
		return err
	}
	roce.PutVCRC(tail, l.VCRC)
	return nil
}
