package ether

import "github.com/rdmasim/rdmasim/roce"

// Segmentation is a send that is longer than a packet and is cut by the adapter: each packet has
// the headers and a part of the payload.
type Segmentation struct {
	h                Headers
	headers, payload []byte
	mss              int
}

// Cut plans the segments of a send: headers are those of Ethernet through TCP or UDP and nothing
// else, mss is the payload of each packet but the last. It reports false for what cannot be cut.
func Cut(headers, payload []byte, mss int) (Segmentation, bool) {
	h := parse(headers, true)
	if h.Transport == 0 || h.Payload != len(headers) || h.Fragment || mss <= 0 || len(payload) == 0 || len(headers)-h.Net+min(mss, len(payload)) > 0xffff {
		return Segmentation{}, false
	}
	return Segmentation{h, headers, payload, mss}, true
}

// Count is how many packets there are.
func (s *Segmentation) Count() int { return (len(s.payload) + s.mss - 1) / s.mss }

// Len is the length of packet i.
func (s *Segmentation) Len(i int) int {
	return len(s.headers) + min(s.mss, len(s.payload)-i*s.mss)
}

// Write makes packet i in b, which has its length, all but the checksums.
func (s *Segmentation) Write(i int, b []byte) {
	n := copy(b, s.headers)
	copy(b[n:], s.payload[i*s.mss:])
	net, last := b[s.h.Net:], i == s.Count()-1
	if s.h.Version == 4 {
		ip := roce.IPv4(net)
		ip.SetTotalLen(uint16(len(net)))
		ip.SetID(ip.ID() + uint16(i))
	} else {
		roce.IPv6(net).SetPayloadLen(uint16(len(net) - roce.IPv6Size))
	}
	t := b[s.h.Transport:]
	if s.h.Proto == roce.ProtoUDP {
		roce.UDP(t).SetLen(uint16(len(t)))
		return
	}
	be.PutUint32(t[4:], be.Uint32(t[4:])+uint32(i*s.mss))
	if !last {
		t[13] &^= tcpFIN | tcpPSH
	}
	if i > 0 {
		t[13] &^= tcpCWR
	}
}
