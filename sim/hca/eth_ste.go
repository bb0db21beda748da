package hca

import (
	"hash/crc32"
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// steTag is the fields of a packet that a look-up by entries of programs compares (format 0:
// dr_ste_v0.c of rdma-core).
type steTag [16]byte

// Kinds of look-ups (dr_ste_v0_lu_type): by the outermost headers of packets that leave, by the
// outermost of what is left of packets that have arrived, and by those in a tunnel. Others, of
// protocols that this device does not parse, match nothing.
const (
	lookDstOut, lookDstIn, lookDst          = 0x06, 0x07, 0x1b
	lookSrcOut, lookSrcIn, lookSrc          = 0x08, 0x09, 0x1c
	lookSrcDstOut, lookSrcDstIn, lookSrcDst = 0x36, 0x37, 0x38
	lookDst6Out, lookDst6In, lookDst6       = 0x0d, 0x0e, 0x1e
	lookSrc6Out, lookSrc6In, lookSrc6       = 0x0f, 0x10, 0x1f // the first is STEDontCare, too
	lookTupleOut, lookTupleIn, lookTuple    = 0x11, 0x12, 0x20
	lookIPv4Out, lookIPv4In, lookIPv4       = 0x29, 0x2a, 0x2b
	lookL4Out, lookL4In, lookL4             = 0x13, 0x14, 0x21
	lookTCPOut, lookTCPIn, lookTCP          = 0x2c, 0x2d, 0x2e

	lookTunnel     = 0x0a
	lookMetadata   = 0x18
	lookRegisters0 = 0x2f // registers 0 and 1 of the packet's own
	lookRegisters1 = 0x30
)

// tagOf is the tag of a look-up. ok is false for one that matches nothing.
func (p *flight) tagOf(look uint32) (tag steTag, ok bool) {
	t := tag[:]
	switch look {
	case lookDstIn, lookSrcIn, lookSrcDstIn, lookDst6In, lookSrc6In, lookTupleIn, lookIPv4In, lookL4In, lookTCPIn, lookTunnel:
		at, vni, ok := p.h.Tunnel(p.f.B)
		if !ok {
			return tag, false
		}
		b := p.f.B[at:p.h.End]
		h := ether.Parse(b)
		if look == lookTunnel {
			tunnelTag(t, b, &h, vni)
			return tag, true
		}
		return tag, headersTag(t, look, b, &h)
	case lookMetadata:
		prm.STERegisters(t).SetFirst(p.regs[headerRegs-1] << 32) // A is its lower half
	case lookRegisters0, lookRegisters1:
		i := int(look-lookRegisters0) * 2
		prm.STERegisters(t).SetFirst(p.regs[i])
		prm.STERegisters(t).SetSecond(p.regs[i+1])
	default:
		return tag, headersTag(t, look, p.f.B, &p.h)
	}
	return tag, true
}

// headersTag fills in a tag of headers.
func headersTag(t []byte, look uint32, b []byte, h *ether.Headers) bool {
	switch look {
	case lookDstOut, lookDstIn, lookDst:
		l2Tag(t, b, h, ether.FieldDMAC)
	case lookSrcOut, lookSrcIn, lookSrc:
		l2Tag(t, b, h, ether.FieldSMAC)
	case lookSrcDstOut, lookSrcDstIn, lookSrcDst:
		v := prm.STEL2SrcDst(t)
		dst, _ := h.Load(b, ether.FieldDMAC)
		src, _ := h.Load(b, ether.FieldSMAC)
		v.SetDMACHigh(uint32(dst >> 16))
		v.SetDMACLow(uint32(dst & 0xffff))
		v.SetSMACHigh(uint32(src >> 32))
		v.SetSMACLow(uint32(src))
		v.SetL3Type(l3Type(h))
		first := firstTagOf(b, h)
		v.SetFirstQualifier(first.qualifier)
		v.SetFirstPriority(first.priority)
		v.SetFirstCFI(first.cfi)
		v.SetFirstVID(first.vid)
	case lookDst6Out, lookDst6In, lookDst6:
		if h.Version == 6 {
			copy(t, h.DstIP(b))
		}
	case lookSrc6Out, lookSrc6In, lookSrc6:
		if h.Version == 6 {
			copy(t, h.SrcIP(b))
		}
	case lookTupleOut, lookTupleIn, lookTuple:
		v := prm.STE5Tuple(t)
		if h.Version == 4 {
			both, _ := h.Load(b, ether.FieldIP0)
			v.SetDstIP(uint32(both >> 32))
			v.SetSrcIP(uint32(both))
		}
		v.SetSrcPort(uint32(h.SrcPort))
		v.SetDstPort(uint32(h.DstPort))
		v.SetFragmented(h.Fragment)
		v.SetECN(uint32(h.TOS & 3))
		v.SetDSCP(uint32(h.TOS >> 2))
		v.SetTCPFlags(uint32(h.TCPFlags))
		v.SetProtocol(uint32(h.Proto))
	case lookIPv4Out, lookIPv4In, lookIPv4:
		if h.Version == 4 {
			copy(t[:8], b[h.Net:])
			v := prm.STEIPv4(t)
			v.SetTTL(uint32(h.TTL))
			v.SetChecksum(uint32(prm.NetWord(b[h.Net+10:])))
			t[1] = 0
		}
	case lookL4Out, lookL4In, lookL4:
		v := prm.STEL4(t)
		v.SetFragmented(h.Fragment)
		v.SetProtocol(uint32(h.Proto))
		v.SetSrcPort(uint32(h.SrcPort))
		v.SetDstPort(uint32(h.DstPort))
		v.SetECN(uint32(h.TOS & 3))
		v.SetDSCP(uint32(h.TOS >> 2))
		v.SetTCPFlags(uint32(h.TCPFlags))
		if h.Version == 6 {
			ip := roce.IPv6(b[h.Net:])
			v.SetIPv6Version(6)
			v.SetPayloadLength(uint32(ip.PayloadLen()))
			v.SetHopLimit(uint32(h.TTL))
			v.SetFlowLabel(ip.FlowLabel())
		}
	case lookTCPOut, lookTCPIn, lookTCP:
		if h.Transport > 0 && h.Proto == ether.ProtoTCP {
			v := prm.STETCP(t)
			numbers, _ := h.Load(b, ether.FieldTCP)
			v.SetSeq(uint32(numbers >> 32))
			v.SetAck(uint32(numbers))
			v.SetWindow(uint32(prm.NetWord(b[h.Transport+14:])))
			v.SetChecksum(uint32(prm.NetWord(b[h.Transport+16:])))
			v.SetUrgent(uint32(prm.NetWord(b[h.Transport+18:])))
			v.SetLength(uint32(h.End - h.Transport))
		}
	default:
		return false
	}
	return true
}

// l3Type and l4Type are the kinds of headers as tags have them.
func l3Type(h *ether.Headers) uint32 {
	switch h.Version {
	case 4:
		return 1
	case 6:
		return 2
	}
	return 0
}

func l4Type(h *ether.Headers) uint32 {
	switch {
	case h.Transport == 0:
		return 0
	case h.Proto == ether.ProtoTCP:
		return 1
	}
	return 2
}

// qualifier is the kind of a VLAN tag with an EtherType (DR_STE_SVLAN, DR_STE_CVLAN).
func qualifier(typ uint16) uint32 {
	if typ == ether.TypeSTag {
		return 1
	}
	return 2
}

// l2Tag fills in the tag of a look-up by an address.
func l2Tag(t, b []byte, h *ether.Headers, addr ether.Field) {
	v := prm.STEL2Src(t)
	mac, _ := h.Load(b, addr)
	v.SetMACHigh(uint32(mac >> 16))
	v.SetMACLow(uint32(mac & 0xffff))
	v.SetEtherType(uint32(h.Type))
	first := firstTagOf(b, h)
	v.SetFirstQualifier(first.qualifier)
	v.SetFirstPriority(first.priority)
	v.SetFirstCFI(first.cfi)
	v.SetFirstVID(first.vid)
	if h.Net >= roce.EthernetSize+2*roce.VLANSize {
		second := roce.VLAN(b[roce.EthernetSize+roce.VLANSize:])
		v.SetSecondQualifier(qualifier(roce.VLAN(b[roce.EthernetSize:]).Type()))
		v.SetSecondPriority(uint32(second.TCI() >> 13))
		v.SetSecondCFI(second.TCI()&0x1000 != 0)
		v.SetSecondVID(uint32(second.TCI() & roce.VLANMask))
	}
	v.SetFragmented(h.Fragment)
	v.SetTCPSYN(h.TCPFlags&2 != 0)
	v.SetL3Type(l3Type(h))
	v.SetL4Type(l4Type(h))
}

// tunnelTag fills in the tag of a look-up by the destination in a tunnel.
func tunnelTag(t, b []byte, h *ether.Headers, vni uint32) {
	v := prm.STETunnel(t)
	mac, _ := h.Load(b, ether.FieldDMAC)
	v.SetMACHigh(uint32(mac >> 16))
	v.SetMACLow(uint32(mac & 0xffff))
	v.SetEtherType(uint32(h.Type))
	v.SetVNI(vni)
	v.SetFragmented(h.Fragment)
	v.SetL3Type(l3Type(h))
	first := firstTagOf(b, h)
	v.SetFirstQualifier(first.qualifier)
	v.SetFirstPriority(first.priority)
	v.SetFirstCFI(first.cfi)
	v.SetFirstVID(first.vid)
}

// firstTag is the first VLAN tag of a packet as tags have it; without one it is 0.
type firstTag struct {
	qualifier, priority, vid uint32
	cfi                      bool
}

func firstTagOf(b []byte, h *ether.Headers) (t firstTag) {
	if h.Tagged || h.STagged {
		t = firstTag{qualifier(roce.Ethernet(b).Type()), uint32(h.TCI >> 13), uint32(h.TCI & roce.VLANMask), h.TCI&0x1000 != 0}
	}
	return t
}

// place is which of n entries a look-up goes to: the CRC of those bytes of the tag that a mask has
// (dr_ste_calc_hash_index).
func (t *steTag) place(mask uint32, n uint64) uint64 {
	if n <= 1 || mask == 0 {
		return 0
	}
	masked := *t
	for i := range masked {
		if mask>>(15-i)&1 == 0 {
			masked[i] = 0
		}
	}
	crc := ^crc32.Update(^uint32(0), crc32.IEEETable, masked[:]) // begins with 0, and is not inverted
	return uint64(bits.ReverseBytes32(crc)) & (n - 1)
}

// matches says whether a packet with a tag matches an entry.
func (t *steTag) matches(e prm.STE) bool {
	mask, want := e.Mask(), e.Tag()
	for i, b := range t {
		if b&mask[i] != want[i] {
			return false
		}
	}
	return true
}

// changeOfEntry is a header change as entries lead to it. ok is false for one that this device does
// not know.
func changeOfEntry(c prm.STEHeaderChange) (x headerChange, ok bool) {
	x = headerChange{field: headerField(c.Field()), shift: uint8(c.Shift()), bits: uint8(c.Length()), data: c.Data()}
	if x.bits == 0 {
		x.bits = 32
	}
	switch c.Type() {
	case prm.STEHeaderSet:
	case prm.STEHeaderAdd:
		x.op = changeAdd
	case prm.STEHeaderCopied:
		x.op, x.from, x.lift = changeCopy, headerField(c.SrcField()), uint8(c.SrcShift())
	default:
		return x, false
	}
	return x, true
}
