package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// flowKey is the headers of a packet, or a mask of them (prm.FlowHeaders).
type flowKey [prm.FlowHeadersSize]byte

func (k *flowKey) and(m *flowKey) (r flowKey) {
	for i := range k {
		r[i] = k[i] & m[i]
	}
	return r
}

// covers says whether m has all the bits of k.
func (k *flowKey) covers(m *flowKey) bool { return k.and(m) == *m }

// keyOf is the headers of a packet.
func keyOf(h *ether.Headers, b []byte) (key flowKey) {
	k := prm.FlowHeaders(key[:])
	k.SetMACs(b[:12])
	k.SetEtherType(uint32(h.Type))
	if h.Tagged || h.STagged {
		k.SetCVLANTag(h.Tagged)
		k.SetSVLANTag(h.STagged)
		k.SetFirstVID(uint32(h.TCI & roce.VLANMask))
		k.SetFirstCFI(h.TCI&0x1000 != 0)
		k.SetFirstPrio(uint32(h.TCI >> 13))
	}
	if h.Version == 0 {
		return key
	}
	k.SetIPVersion(uint32(h.Version))
	k.SetIPProtocol(uint32(h.Proto))
	k.SetIPDSCP(uint32(h.TOS >> 2))
	k.SetIPECN(uint32(h.TOS & 3))
	k.SetTTL(uint32(h.TTL))
	k.SetFrag(h.Fragment)
	src, dst := h.SrcIP(b), h.DstIP(b)
	copy(k.SrcIP()[16-len(src):], src)
	copy(k.DstIP()[16-len(dst):], dst)
	switch {
	case h.Transport == 0:
	case h.Proto == ether.ProtoTCP:
		k.SetTCPSport(uint32(h.SrcPort))
		k.SetTCPDport(uint32(h.DstPort))
		k.SetTCPFlags(uint32(h.TCPFlags))
	default:
		k.SetUDPSport(uint32(h.SrcPort))
		k.SetUDPDport(uint32(h.DstPort))
	}
	return key
}

// matchable is all that keyOf looks at.
var matchable = func() (key flowKey) {
	all := ^uint32(0)
	k := prm.FlowHeaders(key[:])
	k.SetMACs(slices.Repeat([]byte{0xff}, 12))
	for _, set := range []func(uint32){
		k.SetEtherType, k.SetFirstVID, k.SetFirstPrio, k.SetIPVersion, k.SetIPProtocol, k.SetIPDSCP, k.SetIPECN, k.SetTTL,
		k.SetTCPSport, k.SetTCPDport, k.SetTCPFlags, k.SetUDPSport, k.SetUDPDport,
	} {
		set(all)
	}
	k.SetCVLANTag(true)
	k.SetSVLANTag(true)
	k.SetFirstCFI(true)
	k.SetFrag(true)
	copy(k.SrcIP(), slices.Repeat([]byte{0xff}, 16))
	copy(k.DstIP(), slices.Repeat([]byte{0xff}, 16))
	return key
}()
