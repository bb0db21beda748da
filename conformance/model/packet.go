package model

// Packet is the headers of an Ethernet packet. Numbers are in host order.
type Packet struct {
	DstMAC, SrcMAC [6]byte
	Tagged         bool // of 802.1Q, with TCI
	TCI            uint16
	EtherType      uint16 // behind the tag

	// Of IP, whose version EtherType says. The addresses of IPv4 are the first 4 bytes.
	SrcIP, DstIP    [16]byte
	Proto, TOS, TTL uint8
	// Options is how many words of options IPv4 has, Offset where in the packet its fragment begins, in units of 8 bytes,
	// and More says that others follow.
	Options uint8
	Offset  uint16
	More    bool

	// Of TCP and UDP.
	SrcPort, DstPort uint16

	// BadHeader and BadPayload say that the checksum of the IPv4 header, or that of TCP or UDP, is wrong.
	BadHeader, BadPayload bool
}

// EtherTypes and protocols of Packet.
const (
	TypeIPv4 uint16 = 0x0800
	TypeIPv6 uint16 = 0x86dd

	ProtoTCP uint8 = 6
	ProtoUDP uint8 = 17
)

// IP is the version of IP, 0 for another packet.
func (p *Packet) IP() uint8 {
	switch p.EtherType {
	case TypeIPv4:
		return 4
	case TypeIPv6:
		return 6
	}
	return 0
}

// Fragment says whether the packet is a part of a longer one, or may be.
func (p *Packet) Fragment() bool { return p.IP() == 4 && (p.Offset != 0 || p.More) }

// Ports says whether the packet has the header of TCP or UDP: of fragments the first has.
func (p *Packet) Ports() bool {
	return p.IP() != 0 && (p.Proto == ProtoTCP || p.Proto == ProtoUDP) && (p.IP() == 6 || p.Offset == 0)
}
