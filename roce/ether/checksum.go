package ether

import "github.com/rdmasim/rdmasim/roce"

// sum adds p to a ones' complement sum; an odd last byte is the high one of a word.
func sum(s uint64, p []byte) uint64 {
	for ; len(p) >= 4; p = p[4:] {
		s += uint64(be.Uint32(p))
	}
	for ; len(p) >= 2; p = p[2:] {
		s += uint64(be.Uint16(p))
	}
	if len(p) == 1 {
		s += uint64(p[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// Sum is the ones' complement sum of the IP packet, which an adapter reports for each frame. 0
// without IP.
func (h *Headers) Sum(b []byte) uint16 {
	if h.Version == 0 {
		return 0
	}
	return fold(sum(0, b[h.Net:h.End]))
}

// NetworkOK says whether the IP header's checksum is right; IPv6 has none.
func (h *Headers) NetworkOK(b []byte) bool {
	return h.Version == 6 || h.Version == 4 && fold(sum(0, b[h.Net:][:roce.IPv4(b[h.Net:]).HeaderLen()])) == 0xffff
}

// TransportOK says whether the checksum of TCP or UDP is right. A UDP packet may have none.
func (h *Headers) TransportOK(b []byte) bool {
	if h.Transport == 0 || h.Fragment || h.Short {
		return false
	}
	if h.Proto == roce.ProtoUDP && be.Uint16(b[h.Transport+6:]) == 0 {
		return h.Version == 4
	}
	return fold(sum(h.pseudo(b), b[h.Transport:h.End])) == 0xffff
}

// pseudo is the sum of the pseudo header.
func (h *Headers) pseudo(b []byte) uint64 {
	return sum(sum(uint64(h.Proto)+uint64(h.End-h.Transport), h.SrcIP(b)), h.DstIP(b))
}

// FillNetwork writes the checksum of an IPv4 header.
func (h *Headers) FillNetwork(b []byte) {
	if h.Version == 4 {
		ip := b[h.Net:][:roce.IPv4(b[h.Net:]).HeaderLen()]
		roce.IPv4(ip).SetChecksum(0)
		roce.IPv4(ip).SetChecksum(^fold(sum(0, ip)))
	}
}

// FillTransport writes the checksum of TCP or UDP.
func (h *Headers) FillTransport(b []byte) {
	if h.Transport == 0 || h.Fragment || h.Short {
		return
	}
	at := h.Transport + 6
	if h.Proto == ProtoTCP {
		at = h.Transport + 16
	}
	be.PutUint16(b[at:], 0)
	v := ^fold(sum(h.pseudo(b), b[h.Transport:h.End]))
	if v == 0 && h.Proto == roce.ProtoUDP {
		v = 0xffff // 0 would say that there is none
	}
	be.PutUint16(b[at:], v)
}
