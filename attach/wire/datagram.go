package wire

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/roce"
)

// Sizes of a datagram in bytes, from the BTH through the ICRC.
const (
	minDatagram = roce.BTHSize + roce.ICRCSize
	// maxDatagram is more than any packet with a path MTU of 4096 has.
	maxDatagram = 4096 + 128
)

// maxSegments is how many datagrams a buffer is cut into at most. Linux takes 64, later 128
// (UDP_MAX_SEGMENTS).
const maxSegments = 64

// exactEnough is after how many datagrams whose identification is as Linux fills it in for a socket
// no other one is taken from a peer.
const exactEnough = 16

// arrived is a datagram with what the kernel says of it.
type arrived struct {
	data     []byte
	from     netip.AddrPort
	tos, ttl uint8
	segment  uint16 // where it was in a buffer of several
}

// peer is what is known of an address that datagrams come from.
type peer struct {
	addr    netip.Addr
	headers [roce.EthernetSize + roce.IPv6Size + roce.UDPSize]byte // all but what differs between datagrams
	net     int                                                    // how many of them there are
	exact   int                                                    // datagrams with the identification that Linux fills in for a socket
	counts  bool                                                   // it has sent others
}

// newPeer makes the headers of frames from an address to own.
func newPeer(addr, own netip.Addr) *peer {
	p := &peer{addr: addr}
	eth := roce.Ethernet(p.headers[:])
	eth.SetDst(MACOf(own))
	eth.SetSrc(MACOf(addr))
	at := roce.EthernetSize
	if own.Is4() {
		eth.SetType(roce.EtherTypeIPv4)
		h := roce.IPv4(p.headers[at : at+roce.IPv4Size])
		const versionAndLength = 0x45
		h[0] = versionAndLength
		h.SetFlagsOffset(roce.IPv4DontFragment)
		h.SetProtocol(roce.ProtoUDP)
		h.SetSrc(addr.As4())
		h.SetDst(own.As4())
		at += roce.IPv4Size
	} else {
		eth.SetType(roce.EtherTypeIPv6)
		h := roce.IPv6(p.headers[at : at+roce.IPv6Size])
		h.SetNextHeader(roce.ProtoUDP)
		h.SetSrc(roce.GID(addr.As16()))
		h.SetDst(roce.GID(own.As16()))
		at += roce.IPv6Size
	}
	roce.UDP(p.headers[at:]).SetDstPort(roce.UDPPort)
	p.net = at + roce.UDPSize
	return p
}

// frame makes the frame of a datagram from the peer, with its ICRC checked. It returns nil and the
// reason for one that is no whole RoCE packet.
func (p *peer) frame(pool *roce.Pool, solver *roce.HiddenIPv4, a *arrived) (*roce.Frame, roce.DropReason) {
	f := pool.Get(p.net + len(a.data))
	copy(f.B, p.headers[:p.net])
	copy(f.B[p.net:], a.data)
	const at = roce.EthernetSize
	if p.net == at+roce.IPv4Size+roce.UDPSize {
		h := roce.IPv4(f.B[at : at+roce.IPv4Size])
		h.SetTOS(a.tos)
		h.SetTTL(a.ttl)
		h.SetID(a.segment)
		h.SetTotalLen(uint16(len(f.B) - at))
		h.SetChecksum(h.ComputeChecksum())
	} else {
		h := roce.IPv6(f.B[at : at+roce.IPv6Size])
		h.SetVersion(a.tos, 0)
		h.SetHopLimit(a.ttl)
		h.SetPayloadLen(uint16(len(f.B) - at - roce.IPv6Size))
	}
	u := roce.UDP(f.B[p.net-roce.UDPSize : p.net])
	u.SetSrcPort(a.from.Port())
	u.SetLen(uint16(roce.UDPSize + len(a.data)))
	pk, err := f.Decode()
	if err != nil {
		f.Release()
		if d, ok := err.(roce.DropReason); ok {
			return nil, d
		}
		return nil, roce.DropNotRDMA
	}
	if !p.icrcOK(pk, solver) {
		f.Release()
		return nil, roce.DropICRC
	}
	f.ICRC = roce.ICRCValid
	return f, 0
}

// icrcOK checks the ICRC, and writes the identification with which it is right into the header.
func (p *peer) icrcOK(pk *roce.Packet, solver *roce.HiddenIPv4) bool {
	if pk.Framing != roce.RoCEv2IPv4 {
		return pk.ICRCOK()
	}
	id, flags, ok := solver.Solve(pk)
	if !ok {
		return false
	}
	// What was cut into segments may come in other groups than it left in.
	if id < maxSegments && flags == roce.IPv4DontFragment {
		p.exact++
	} else if p.exact >= exactEnough && !p.counts {
		return false
	} else {
		p.counts = true
	}
	if h := pk.IPv4(); h.ID() != id || h.FlagsOffset() != flags {
		pk.PutIPv4Hidden(id, flags)
	}
	return true
}
