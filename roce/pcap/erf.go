package pcap

import "encoding/binary"

// InfiniBand packets are written as ERF records (Endace's extensible record format, whose
// type 21 is InfiniBand): Wireshark 4.0 decodes those, and does not know the link type of
// bare InfiniBand packets. Both are read.

// erfHeader is the length of a record's header, without extension headers.
const erfHeader = 16

// Parts of an ERF header: the time in units of 2^-32 s, least significant byte first,
// then type, flags, and the lengths of the record and of the packet.
const (
	erfType       = 8
	erfFlags      = 9
	erfRecordLen  = 10
	erfPacketLen  = 14
	erfInfiniBand = 21
	erfMoreHeader = 0x80 // in the type, and in each extension header
	erfVaryingLen = 0x04 // flag: records are as long as their packets
)

// appendERF appends an InfiniBand packet of interface i as a record.
func appendERF(b []byte, i int, ns int64, packet []byte) []byte {
	seconds, rest := uint64(ns)/1e9, uint64(ns)%1e9
	b = binary.LittleEndian.AppendUint64(b, seconds<<32|rest<<32/1e9)
	b = append(b, erfInfiniBand, erfVaryingLen|byte(i&3))
	b = binary.BigEndian.AppendUint16(b, uint16(erfHeader+len(packet)))
	b = append(b, 0, 0) // losses
	b = binary.BigEndian.AppendUint16(b, uint16(len(packet)))
	return append(b, packet...)
}

// unwrap takes a packet of InfiniBand out of its ERF record. Other records stay as they
// are.
func unwrap(p *Packet) {
	b := p.Data
	if p.LinkType != LinkTypeERF || len(b) < erfHeader || b[erfType]&^erfMoreHeader != erfInfiniBand {
		return
	}
	n := erfHeader
	for more := b[erfType]; more&erfMoreHeader != 0; n += 8 {
		if len(b) < n+8 {
			return
		}
		more = b[n]
	}
	p.Data, p.LinkType = b[n:], LinkTypeInfiniBand
	if wire := int(binary.BigEndian.Uint16(b[erfPacketLen:])); wire <= len(p.Data) {
		p.Data = p.Data[:wire]
	}
	p.Length = max(p.Length-n, len(p.Data))
}
