package ether

import "github.com/rdmasim/rdmasim/roce"

// ARP of IPv4 on Ethernet (RFC 826).
const (
	TypeARP = 0x0806
	ARPSize = 28

	ARPRequest = 1
	ARPReply   = 2
)

// ARP is a packet of ARP.
type ARP []byte

// arpKind is Ethernet, IPv4, and the lengths of their addresses.
const arpKind = 0x0001_0800_06_04

// Known says whether the packet, of at least ARPSize bytes, is about IPv4 on Ethernet.
func (p ARP) Known() bool { return be.Uint64(p)>>16 == arpKind }

// Op returns the operation.
func (p ARP) Op() uint16 { return be.Uint16(p[6:]) }

// Sender returns the addresses of the sender.
func (p ARP) Sender() (roce.MAC, [4]byte) { return roce.MAC(p[8:14]), [4]byte(p[14:18]) }

// Target returns the address that is asked for or answered.
func (p ARP) Target() [4]byte { return [4]byte(p[24:28]) }

// Set writes the packet. The Ethernet address of a request's target is zero.
func (p ARP) Set(op uint16, sender roce.MAC, from [4]byte, target roce.MAC, to [4]byte) {
	be.PutUint64(p, arpKind<<16|uint64(op))
	copy(p[8:], sender[:])
	copy(p[14:], from[:])
	copy(p[18:], target[:])
	copy(p[24:], to[:])
}
