// Package ether knows Ethernet frames as far as a network adapter looks into them: where their
// headers are, checksums, the segments of a long send, and the hash that spreads packets over
// receive queues. It reads any bytes.
package ether

import (
	"encoding/binary"

	"github.com/rdmasim/rdmasim/roce"
)

var be = binary.BigEndian

// EtherTypes and protocols beside those of package roce.
const (
	TypeSTag = 0x88A8 // 802.1ad

	ProtoHopByHop = 0
	ProtoTCP      = 6
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoOptions  = 60
)

// MinFrame is the length of the shortest frame of Ethernet without FCS; shorter ones are padded.
const MinFrame = 60

// FCSSize is the length of the check sequence, which frames here do not have.
const FCSSize = 4

// TCP flags, in the low bits of Headers.TCPFlags.
const (
	tcpFIN = 0x01
	tcpPSH = 0x08
	TCPACK = 0x10
	tcpCWR = 0x80
)

// tcpSize is the length of a TCP header without options.
const tcpSize = 20

// Headers is where the headers of a frame are, and what they say.
type Headers struct {
	Tagged, STagged bool   // 802.1Q and 802.1ad
	TCI             uint16 // of the first tag
	Type            uint16 // EtherType behind the tags
	Net             int    // what is behind it

	Version  uint8 // of IP: 4, 6, or 0 where there is none that is whole
	Proto    uint8 // behind the extension headers
	TOS, TTL uint8
	Fragment bool
	Short    bool // the frame ends before the IP packet does
	End      int  // of the IP packet, padding excluded

	Transport int // header of TCP or UDP; 0: none that is whole
	Payload   int // what is behind it
	TCPFlags  uint16
	SrcPort   uint16
	DstPort   uint16
}

// Parse finds the headers of a frame without FCS. What is cut off or makes no sense is as if it
// were not there.
func Parse(b []byte) Headers { return parse(b, false) }

// parse with headersOnly is of headers whose lengths speak of more than b.
func parse(b []byte, headersOnly bool) (h Headers) {
	if len(b) < roce.EthernetSize {
		return h
	}
	h.Type, h.Net = roce.Ethernet(b).Type(), roce.EthernetSize
	for range 2 {
		if h.Type != roce.EtherTypeVLAN && h.Type != TypeSTag || len(b) < h.Net+roce.VLANSize {
			break
		}
		if !h.Tagged && !h.STagged {
			h.TCI = roce.VLAN(b[h.Net:]).TCI()
		}
		h.Tagged, h.STagged = h.Tagged || h.Type == roce.EtherTypeVLAN, h.STagged || h.Type == TypeSTag
		h.Type = roce.VLAN(b[h.Net:]).Type()
		h.Net += roce.VLANSize
	}
	at := 0
	switch h.Type {
	case roce.EtherTypeIPv4:
		at = h.ipv4(b, headersOnly)
	case roce.EtherTypeIPv6:
		at = h.ipv6(b, headersOnly)
	}
	if at > 0 {
		h.transport(b[:h.End], at)
	}
	return h
}

// ipv4 returns where the payload begins; 0: it is not there, or not its beginning.
func (h *Headers) ipv4(b []byte, headersOnly bool) int {
	if len(b) < h.Net+roce.IPv4Size {
		return 0
	}
	ip := roce.IPv4(b[h.Net:])
	n, total := ip.HeaderLen(), int(ip.TotalLen())
	if ip.Version() != 4 || n < roce.IPv4Size || h.Net+n > len(b) || total < n && !headersOnly {
		return 0
	}
	h.Version, h.Proto, h.TOS, h.TTL = 4, ip.Protocol(), ip.TOS(), ip.TTL()
	h.end(len(b), h.Net+total, headersOnly)
	offset := ip.FlagsOffset() & roce.IPv4OffsetMask
	h.Fragment = offset != 0 || ip.FlagsOffset()&roce.IPv4MoreFragments != 0
	if offset != 0 {
		return 0
	}
	return h.Net + n
}

func (h *Headers) ipv6(b []byte, headersOnly bool) int {
	if len(b) < h.Net+roce.IPv6Size {
		return 0
	}
	ip := roce.IPv6(b[h.Net:])
	if ip.Version() != 6 {
		return 0
	}
	h.Version, h.Proto, h.TOS, h.TTL = 6, ip.NextHeader(), ip.TrafficClass(), ip.HopLimit()
	h.end(len(b), h.Net+roce.IPv6Size+int(ip.PayloadLen()), headersOnly)
	at := h.Net + roce.IPv6Size
	for at+8 <= h.End {
		switch h.Proto {
		case ProtoHopByHop, ProtoRouting, ProtoOptions:
			h.Proto, at = b[at], at+8+8*int(b[at+1])
		case ProtoFragment:
			v := be.Uint16(b[at+2:])
			h.Fragment = h.Fragment || v&^6 != 0
			h.Proto, at = b[at], at+8
			if v>>3 != 0 {
				return 0
			}
		default:
			return at
		}
	}
	return 0
}

// end notes the stated end of the IP packet.
func (h *Headers) end(have, stated int, headersOnly bool) {
	h.End, h.Short = min(have, stated), stated > have
	if headersOnly {
		h.End = have
	}
}

func (h *Headers) transport(b []byte, at int) {
	size := roce.UDPSize
	switch {
	case h.Proto == roce.ProtoUDP && at+size <= len(b):
	case h.Proto == ProtoTCP && at+tcpSize <= len(b):
		size = int(b[at+12]>>4) * 4
		if size < tcpSize || at+size > len(b) {
			return
		}
		h.TCPFlags = be.Uint16(b[at+12:]) & 0x1ff
	default:
		return
	}
	h.Transport, h.Payload = at, at+size
	h.SrcPort, h.DstPort = be.Uint16(b[at:]), be.Uint16(b[at+2:])
}

// SrcIP and DstIP are the addresses, of 4 or 16 bytes; nil without IP. They lie in the frame.
func (h *Headers) SrcIP(b []byte) []byte { return h.address(b, 12, 8) }

// DstIP is the destination, see SrcIP.
func (h *Headers) DstIP(b []byte) []byte { return h.address(b, 16, 24) }

func (h *Headers) address(b []byte, at4, at6 int) []byte {
	switch h.Version {
	case 4:
		return b[h.Net+at4:][:4:4]
	case 6:
		return b[h.Net+at6:][:16:16]
	}
	return nil
}
