package roce

import (
	"encoding/binary"
	"fmt"
)

// MAC is an Ethernet address.
type MAC [6]byte

// String returns six hexadecimal bytes with colons between them.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// IsGroup reports whether the address is a multicast or the broadcast address.
func (m MAC) IsGroup() bool { return m[0]&1 != 0 }

// IsBroadcast reports whether the address is ff:ff:ff:ff:ff:ff.
func (m MAC) IsBroadcast() bool { return m == MAC{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF} }

// GID is a port's address: an IPv6 address, or an IPv4 address mapped into IPv6.
type GID [16]byte

// IsZero reports whether the address is ::, which no port has.
func (g *GID) IsZero() bool {
	return binary.NativeEndian.Uint64(g[:8])|binary.NativeEndian.Uint64(g[8:]) == 0
}

// GIDFromIPv4 returns the mapped address ::ffff:a.b.c.d.
func GIDFromIPv4(ip [4]byte) GID {
	g := GID{10: 0xFF, 11: 0xFF}
	copy(g[12:], ip[:])
	return g
}

// IsIPv4 reports whether the GID is a mapped IPv4 address.
func (g GID) IsIPv4() bool {
	return be.Uint64(g[0:8]) == 0 && be.Uint32(g[8:12]) == 0xFFFF
}

// IPv4 returns the mapped IPv4 address; the result is meaningless unless IsIPv4.
func (g GID) IPv4() [4]byte { return [4]byte(g[12:16]) }

// GIDFromMAC returns the default GID of a RoCE port: fe80::/64 with the EUI-64 of the address.
func GIDFromMAC(m MAC) GID {
	return GID{0: 0xFE, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xFF, 12: 0xFE, 13: m[3], 14: m[4], 15: m[5]}
}

// EUI64 returns the modified EUI-64 of the address, with the universal/local bit inverted (Linux,
// addrconf_addr_eui48): the lower half of GIDFromMAC.
func (m MAC) EUI64() uint64 {
	g := GIDFromMAC(m)
	return be.Uint64(g[8:])
}

// MAC returns the address from which GIDFromMAC made the GID. RoCEv1 resolves link-local GIDs in
// this way.
func (g GID) MAC() MAC { return MAC{g[8] ^ 2, g[9], g[10], g[13], g[14], g[15]} }

// IsLinkLocal reports whether the GID is in fe80::/64.
func (g GID) IsLinkLocal() bool { return be.Uint64(g[0:8]) == 0xFE80000000000000 }

// IsMulticast reports whether the GID is a multicast group: ff00::/8, or a mapped IPv4 group
// address.
func (g GID) IsMulticast() bool { return g[0] == 0xFF || g.IsIPv4() && g[12]>>4 == 0xE }

// SubnetPrefix returns the upper half of a GID.
func (g GID) SubnetPrefix() uint64 { return be.Uint64(g[0:8]) }

// InterfaceID returns the lower half of a GID, which is the port GUID on InfiniBand.
func (g GID) InterfaceID() uint64 { return be.Uint64(g[8:16]) }

// String returns the eight groups in full, as the sysfs gids files have them.
func (g GID) String() string {
	b := make([]byte, 0, 39)
	for i := 0; i < 16; i += 2 {
		if i > 0 {
			b = append(b, ':')
		}
		b = fmt.Appendf(b, "%02x%02x", g[i], g[i+1])
	}
	return string(b)
}

// FlowLabel returns the 20-bit flow label of a connected QP whose address vector gives none
// (rdma_calc_flow_label in ib_verbs.h). It is symmetric in the two QPNs, so that requests and
// responses take the same path.
func FlowLabel(localQPN, remoteQPN uint32) uint32 {
	v := uint64(localQPN) * uint64(remoteQPN)
	v ^= v >> 20
	v ^= v >> 40
	return uint32(v & 0xFFFFF)
}

// UDPSourcePort returns the RoCEv2 source port for a 20-bit flow label, 0xC000 to 0xFFFF
// (rdma_flow_label_to_udp_sport in ib_verbs.h).
func UDPSourcePort(flow uint32) uint16 {
	return uint16(0xC000 | (flow&0x3FFF ^ flow>>14&0x3F))
}

// UDPSourcePortRXE returns the source port that the Soft-RoCE driver gives a UD QP: 0xC000 plus the
// upper 14 bits of a multiplicative hash of its QPN.
func UDPSourcePortRXE(qpn uint32) uint16 {
	return uint16(0xC000 | qpn*0x61C88647>>18)
}

// PKeyMatch reports whether two partition keys may communicate: the same non-zero base, and at
// least one is a full member.
func PKeyMatch(a, b uint16) bool {
	if a == b && a > 0x8000 { // as nearly all
		return true
	}
	return a&0x7FFF == b&0x7FFF && a&0x7FFF != 0 && (a|b)&0x8000 != 0
}

// DefaultPKey is the full-member key of the default partition.
const DefaultPKey uint16 = 0xFFFF

// MulticastMAC returns the Ethernet address of a multicast GID: 01:00:5e with the low 23 bits of an
// IPv4 group, else 33:33 with the low 32 bits.
func (g GID) MulticastMAC() MAC {
	if g.IsIPv4() {
		return MAC{0x01, 0x00, 0x5E, g[13] & 0x7F, g[14], g[15]}
	}
	return MAC{0x33, 0x33, g[12], g[13], g[14], g[15]}
}
