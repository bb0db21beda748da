package ether

import "bytes"

// Fields are what of a packet a hash takes.
type Fields struct {
	SrcIP, DstIP, SrcPort, DstPort bool
	// Symmetric gives both directions of a connection the same hash: the lower address and the
	// lower port go first.
	Symmetric bool
}

// maxTuple is the length of the longest tuple.
const maxTuple = 2*16 + 2*2

// Tuple appends the fields of a packet that it has.
func (f Fields) Tuple(h *Headers, b, into []byte) []byte {
	src, dst := h.SrcIP(b), h.DstIP(b)
	if f.Symmetric && bytes.Compare(src, dst) > 0 {
		src, dst = dst, src
	}
	if f.SrcIP {
		into = append(into, src...)
	}
	if f.DstIP {
		into = append(into, dst...)
	}
	if h.Transport == 0 || h.Fragment {
		return into
	}
	sport, dport := h.SrcPort, h.DstPort
	if f.Symmetric {
		sport, dport = min(sport, dport), max(sport, dport)
	}
	if f.SrcPort {
		into = be.AppendUint16(into, sport)
	}
	if f.DstPort {
		into = be.AppendUint16(into, dport)
	}
	return into
}

// Toeplitz is the hash of receive side scaling. The key has 4 bytes more than the longest tuple;
// what it lacks counts as 0.
func Toeplitz(key, tuple []byte) (hash uint32) {
	var k [maxTuple + 4 + 1]byte
	copy(k[:], key)
	for i, x := range tuple[:min(len(tuple), maxTuple)] {
		window := uint64(be.Uint32(k[i:]))<<8 | uint64(k[i+4])
		for bit := range 8 {
			if x&(0x80>>bit) != 0 {
				hash ^= uint32(window >> (8 - bit))
			}
		}
	}
	return hash
}

// InvertedXOR is the complement of all bytes of a tuple, combined by XOR.
func InvertedXOR(tuple []byte) uint32 {
	x := byte(0)
	for _, b := range tuple {
		x ^= b
	}
	return uint32(^x)
}
