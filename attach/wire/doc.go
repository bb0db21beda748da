// Package wire makes a port of the simulated network a real one: a UDP socket on port 4791. What
// the device sends leaves the machine as RoCE v2 datagrams, and datagrams of peers arrive at the
// device as frames. It needs no privilege and no daemon: a peer is found by its IP address, which
// is its GID.
//
// A socket carries what follows the UDP header, from the BTH through the ICRC. The receiver
// rebuilds the headers before it from what the kernel reports about the datagram: addresses, ports,
// lengths, TTL, traffic class. The kernel does not report the IPv4 identification and fragment
// flags, which the ICRC covers; they follow from the ICRC (roce.HiddenIPv4). Linux gives datagrams
// of an unconnected socket that forbids fragments the identification 0 (ip_select_ident_segs), and
// those of one segmented buffer 0, 1, 2 and so on (inet_gso_segment); other peers may count.
//
// An Ethernet (LAN) is the other way out: frames as they are, in UDP datagrams as QEMU's netdev
// dgram has them, or on a TAP interface. There a host on the other side need not know of this
// project. For a device with an address of its own this package answers to ARP, neighbour discovery
// and echo requests, and finds peers; for guests it passes on all.
package wire
