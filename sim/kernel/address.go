package kernel

import "github.com/rdmasim/rdmasim/verbs"

// MAC is an Ethernet address.
type MAC [6]byte

// gidEntry is a slot of the port's GID table.
type gidEntry struct {
	valid bool
	gid   verbs.GID
	typ   verbs.GIDType
	vlan  uint16 // of its interface; 0: none
}

// linkLocal is the default GID of a port: fe80::/64 and the EUI-64 of its address
// (addrconf_ifid_eui48).
func linkLocal(m MAC) verbs.GID {
	return verbs.GID{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
}

// isLinkLocal is rdma_link_local_addr: fe80:: and 48 zero bits.
func isLinkLocal(g verbs.GID) bool {
	return [8]byte(g[:8]) == [8]byte{0xfe, 0x80}
}

// linkLocalMAC takes the address out of a link-local GID (rdma_get_ll_mac).
func linkLocalMAC(g verbs.GID) MAC { return MAC{g[8] ^ 2, g[9], g[10], g[13], g[14], g[15]} }
