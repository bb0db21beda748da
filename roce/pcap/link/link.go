// Package link makes frames of Ethernet of captured packets with other link headers. It is separate
// from package pcap because programs that only write captures do not need it, and filling
// gopacket's tables of layers takes longer than the rest of a process's start.
package link

import (
	"encoding/binary"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmasim/rdmasim/roce/pcap"
)

// Sizes of the cooked headers, and of the longest link address of Linux (MAX_ADDR_LEN of
// linux/netdevice.h), of which they hold the first eight bytes.
const (
	sllSize        = 16
	sll2Size       = 20
	longestAddress = 32
)

// EtherTypes of VLAN tags. gopacket has no name for the third, with which switches stacked tags
// before 802.1ad.
var tagTypes = []layers.EthernetType{layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ, 0x9100}

const (
	ethernetSize = 14
	macSize      = 6
)

// Frame makes p a frame of Ethernet with at most one VLAN tag of 802.1Q: it replaces another link
// header, and takes stacked tags out. What the old header did not say (a destination, or both
// addresses) is zero. A packet that ends in its link header becomes empty, and those of InfiniBand
// and of link types that are not pcap.Framed stay as they are. The old bytes of p.Data may be
// overwritten.
func Frame(p *pcap.Packet) {
	var macs [2 * macSize]byte // destination, source
	var typ layers.EthernetType
	at, ok := 0, false
	switch p.LinkType {
	case pcap.LinkTypeEthernet:
		var h layers.Ethernet
		if h.DecodeFromBytes(p.Data, gopacket.NilDecodeFeedback) != nil || !stacked(h.EthernetType, p.Data[ethernetSize:]) {
			return
		}
		copy(macs[:], p.Data)
		typ, at, ok = h.EthernetType, ethernetSize, true
	case pcap.LinkTypeSLL:
		typ, at, ok = cooked(p, macs[macSize:])
	case pcap.LinkTypeSLL2:
		typ, at, ok = cooked2(p, macs[macSize:])
	case pcap.LinkTypeRaw, pcap.LinkTypeRawBSD, pcap.LinkTypeRawOpenBSD, pcap.LinkTypeIPv4, pcap.LinkTypeIPv6:
		typ, ok = ipType(p.Data)
	default:
		return
	}
	p.LinkType = pcap.LinkTypeEthernet
	var tag layers.Dot1Q
	for ok && slices.Contains(tagTypes, typ) {
		ok = tag.DecodeFromBytes(p.Data[at:], gopacket.NilDecodeFeedback) == nil
		typ, at = tag.Type, at+len(tag.Contents)
	}
	if !ok {
		p.Data, p.Length = nil, 0
		return
	}
	before := len(p.Data)
	if at >= ethernetSize {
		p.Data = p.Data[at-ethernetSize:]
	} else {
		p.Data = append(make([]byte, ethernetSize, ethernetSize+before), p.Data...)
	}
	copy(p.Data, macs[:])
	binary.BigEndian.PutUint16(p.Data[len(macs):], uint16(typ))
	p.Length += len(p.Data) - before
}

// stacked says whether a frame has tags other than one of 802.1Q: rest is what follows its
// EtherType.
func stacked(typ layers.EthernetType, rest []byte) bool {
	if typ != layers.EthernetTypeDot1Q {
		return slices.Contains(tagTypes, typ)
	}
	var tag layers.Dot1Q
	return tag.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) == nil && slices.Contains(tagTypes, tag.Type)
}

// cooked reads the header of SLL, and copies the address of the sender into mac where it has the
// length of one.
func cooked(p *pcap.Packet, mac []byte) (typ layers.EthernetType, at int, ok bool) {
	// gopacket 1.1.19 takes the stated length of the address for one that it has checked.
	if len(p.Data) < sllSize || binary.BigEndian.Uint16(p.Data[4:]) > min(longestAddress, uint16(min(len(p.Data), 0xFFFF))-6) {
		return 0, 0, false
	}
	var h layers.LinuxSLL
	if h.DecodeFromBytes(p.Data, gopacket.NilDecodeFeedback) != nil {
		return 0, 0, false
	}
	if p.Outgoing = h.PacketType == layers.LinuxSLLPacketTypeOutgoing; len(h.Addr) == macSize {
		copy(mac, h.Addr)
	}
	return h.EthernetType, sllSize, true
}

// cooked2 is cooked of SLL2, which gopacket does not know: EtherType, two bytes of zero, number of
// the interface, kind of hardware, direction, and length and bytes of the address.
func cooked2(p *pcap.Packet, mac []byte) (typ layers.EthernetType, at int, ok bool) {
	h := p.Data
	if len(h) < sll2Size {
		return 0, 0, false
	}
	p.HostInterface = binary.BigEndian.Uint32(h[4:])
	if p.Outgoing = h[10] == pcap.Outgoing; h[11] == macSize {
		copy(mac, h[12:])
	}
	return layers.EthernetType(binary.BigEndian.Uint16(h)), sll2Size, true
}

// ipType is the EtherType of an IP packet.
func ipType(b []byte) (layers.EthernetType, bool) {
	switch {
	case len(b) > 0 && b[0]>>4 == 4:
		return layers.EthernetTypeIPv4, true
	case len(b) > 0 && b[0]>>4 == 6:
		return layers.EthernetTypeIPv6, true
	}
	return 0, false
}
