//go:build linux

package wire

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/link"
)

// Config describes an end.
type Config struct {
	Place
	MTU   int            // of an Ethernet; 0: that of the interface, or 1500
	Allow []netip.Prefix // networks of peers; empty: any address
	// Say is called with a message for the user, once for each kind and peer; it may be nil.
	Say func(format string, a ...any)
}

// Port is a port of the simulated network with a UDP socket behind it: the Receiver at the far end
// of a device's cable. Only the goroutine that runs the simulation may use it.
type Port struct {
	C Counters

	cfg    Config
	sock   *socket
	mtu    int
	end    *link.Port // the far end of the device's cable
	pool   *roce.Pool // frames for the device
	solver roce.HiddenIPv4

	peers    map[netip.Addr]*peer
	lastPeer *peer
	lost     uint32
	in       incoming

	dests map[netip.Addr]*destination
	last  *destination
	out   outgoing
	said  map[string]bool
}

// mostPeers bounds what is kept of peers, whose addresses strangers may forge.
const mostPeers = 1 << 12

// OpenPort binds the socket. Its errors say what to do.
func OpenPort(cfg Config) (*Port, error) {
	cfg.Address = cfg.Address.Unmap()
	if cfg.Say == nil {
		cfg.Say = func(string, ...any) {}
	}
	nic, mtu, err := interfaceOf(cfg.Address)
	if err != nil {
		return nil, err
	}
	if least := roce.MTU256.Bytes() + Headers; mtu < least {
		return nil, fmt.Errorf("the MTU of %s, which has %v, is %d bytes; the smallest path MTU of RoCE needs %d: `ip link set %s mtu %d`", nic, cfg.Address, mtu, least, nic, least)
	}
	s, err := openSocket(cfg.Address)
	if err != nil {
		return nil, err
	}
	p := &Port{cfg: cfg, sock: s, mtu: mtu, peers: map[netip.Addr]*peer{}, dests: map[netip.Addr]*destination{}, said: map[string]bool{}}
	p.in.init()
	p.out.init()
	return p, nil
}

// Name implements End.
func (p *Port) Name() string { return p.cfg.Place.String() }

// Address implements End.
func (p *Port) Address() netip.Addr { return p.cfg.Address }

// Counts implements End.
func (p *Port) Counts() *Counters { return &p.C }

// Unit implements End.
func (p *Port) Unit() string { return "datagram" }

// Neighbour implements End: an Ethernet address inside the simulation is made of the IP address.
func (p *Port) Neighbour(a netip.Addr) (roce.MAC, bool) { return MACOf(a), p.Allows(a) }

// MTU returns the MTU of the interface that has the address, in bytes.
func (p *Port) MTU() int { return p.mtu }

// Room returns how many bytes of memory the kernel has for datagrams that were not received yet.
func (p *Port) Room() int { return p.sock.room }

// FD returns the descriptor that is readable when datagrams have arrived.
func (p *Port) FD() int { return p.sock.fd }

// Attach implements End.
func (p *Port) Attach(end *link.Port, pool *roce.Pool) { p.end, p.pool = end, pool }

// Allows reports whether the port sends to an address and accepts datagrams from it.
func (p *Port) Allows(a netip.Addr) bool {
	a = a.Unmap()
	return a.Is4() == p.cfg.Address.Is4() && a != p.cfg.Address && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && allows(p.cfg.Allow, a)
}

// Close closes the socket. Queued frames are not sent.
func (p *Port) Close() error {
	p.out.drop()
	return unix.Close(p.sock.fd)
}

// sayOnce tells the user something, once for each key.
func (p *Port) sayOnce(key, format string, a ...any) {
	if !p.said[key] {
		p.said[key] = true
		p.cfg.Say(format, a...)
	}
}

// Counters counts datagrams and, by reason, those that were dropped.
type Counters struct {
	Sent, SentBytes         uint64 // from the BTH through the ICRC
	Received, ReceivedBytes uint64 // handed to the device
	SendCalls, ReceiveCalls uint64 // of the kernel
	Counted                 uint64 // received from peers that number their datagrams, so that only the ICRC yields the identification

	Unsendable  uint64 // frames that no datagram carries: RoCE v1, VLANs, multicast, link-local addresses, broken headers
	Unallowed   uint64 // frames to addresses outside --allow
	TooLong     uint64 // frames longer than the MTU of the way to their destination
	Unreachable uint64 // frames that the kernel refused to send
	NoRoom      uint64 // frames for which the kernel still had no room after a short wait

	Strangers uint64 // datagrams from addresses outside --allow
	Others    uint64 // datagrams of an Ethernet that are not the other end's
	Truncated uint64 // longer than any packet
	Malformed uint64 // no whole RoCE packet
	Tagged    uint64 // frames of a VLAN
	Answered  uint64 // frames of ARP, neighbour discovery and echo that were sent
	BadICRC   uint64
	Overrun   uint64 // datagrams, or buffers of several, for which the socket had no room
}

// Dropped returns what was dropped, with the reasons; empty: nothing.
func (c *Counters) Dropped() string {
	var l []string
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{c.Unsendable, "of what was sent that this wire does not carry (RoCE v1, VLANs, broken headers, by UDP sockets multicast)"}, {c.Unallowed, "to addresses that --allow leaves out"},
		{c.TooLong, "longer than the MTU of their way"}, {c.Unreachable, "that the kernel refused to send"}, {c.NoRoom, "that the kernel had no room to send"},
		{c.Strangers, "from addresses that --allow leaves out"}, {c.Others, "that were not from the other end"}, {c.Truncated, "longer than any packet"}, {c.Malformed, "that were no RoCE packets"},
		{c.Tagged, "of VLANs"},
		{c.BadICRC, "with a wrong ICRC"}, {c.Overrun, "for which the socket had no room (net.core.rmem_max)"},
	} {
		if x.n > 0 {
			l = append(l, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(l, ", ")
}
