package wire

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Place is where a device's cable leads, as a flag says it: udp:ADDRESS, a UDP socket of this
// machine; dgram:LOCAL-REMOTE, frames of Ethernet in UDP datagrams, which QEMU's netdev of this
// name sends; tap:NAME, an interface of this machine. Behind an @ stands the address that the
// device has on the latter two.
type Place struct {
	Kind          Kind
	Address       netip.Addr     // the device's; not valid where a guest chooses its own
	Local, Remote netip.AddrPort // of KindDgram
	Name          string         // of the interface of KindTAP
}

// Kind is a kind of places.
type Kind uint8

// Kinds.
const (
	KindUDP Kind = iota
	KindDgram
	KindTAP
)

// Schemes of places.
const (
	schemeDgram = "dgram:"
	schemeTAP   = "tap:"
)

// At is the place udp:ADDRESS.
func At(a netip.Addr) Place { return Place{Address: a} }

// String is the place without the address of a device on Ethernet.
func (p Place) String() string {
	switch p.Kind {
	case KindDgram:
		return schemeDgram + p.Local.String() + "-" + p.Remote.String()
	case KindTAP:
		return schemeTAP + p.Name
	}
	return scheme + p.Address.String()
}

// ParsePlace reads udp:ADDRESS, dgram:LOCAL-REMOTE@ADDRESS or tap:NAME@ADDRESS.
func ParsePlace(s string) (Place, error) {
	if !isEthernet(s) {
		a, err := ParseAddress(s)
		return At(a), err
	}
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return Place{}, fmt.Errorf("%q: the adapter needs an IP address on this Ethernet, behind an @, such as %s@192.0.2.2", s, s)
	}
	p, err := parseEthernet(s, s[:i])
	if err != nil {
		return p, err
	}
	p.Address, err = parseOwn(s, s[i+1:], "one that no other host of this Ethernet has")
	return p, err
}

// ParseEthernet reads dgram:LOCAL-REMOTE or tap:NAME.
func ParseEthernet(s string) (Place, error) {
	switch {
	case strings.HasPrefix(s, scheme):
		return Place{}, fmt.Errorf("%q: a guest's frames need Ethernet: dgram:LOCAL-REMOTE or tap:NAME", s)
	case !isEthernet(s):
		return Place{}, fmt.Errorf("%q: dgram:LOCAL-REMOTE, such as dgram:127.0.0.1:5001-127.0.0.1:5002, or tap:NAME is needed", s)
	case strings.Contains(s, "@"):
		return Place{}, fmt.Errorf("%q: a guest has the addresses that it chooses: leave @ and what follows out", s)
	}
	return parseEthernet(s, s)
}

func isEthernet(s string) bool {
	return strings.HasPrefix(s, schemeDgram) || strings.HasPrefix(s, schemeTAP)
}

// parseEthernet reads what is before the @ of s.
func parseEthernet(s, link string) (p Place, err error) {
	if name, ok := strings.CutPrefix(link, schemeTAP); ok {
		const longest = 15 // IFNAMSIZ less its zero
		if name == "" || len(name) > longest || strings.ContainsAny(name, "/ :\x00") {
			return p, fmt.Errorf("%q: the name of a TAP interface of this machine is needed, such as tap:tap0", s)
		}
		return Place{Kind: KindTAP, Name: name}, nil
	}
	p.Kind = KindDgram
	local, remote, ok := strings.Cut(strings.TrimPrefix(link, schemeDgram), "-")
	if !ok {
		return p, fmt.Errorf("%q: both ends of the UDP datagrams are needed, such as dgram:127.0.0.1:5001-127.0.0.1:5002 (a port alone is of 127.0.0.1)", s)
	}
	if p.Local, err = parseEnd(local); err == nil {
		p.Remote, err = parseEnd(remote)
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("%q: %w", s, err)
	case p.Remote.Addr().IsUnspecified() || p.Remote.Addr().IsMulticast() || p.Local.Addr().IsMulticast():
		return p, fmt.Errorf("%q: the address of one other end is needed, and no group", s)
	case p.Local == p.Remote:
		return p, fmt.Errorf("%q: both ends are the same, so that each frame would come back", s)
	}
	return p, nil
}

// parseEnd reads an IPv4 address with a port, or a port of 127.0.0.1. QEMU's netdev has no IPv6.
func parseEnd(s string) (netip.AddrPort, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil && n > 0 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(n)), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil || !a.Addr().Is4() || a.Port() == 0 {
		return a, fmt.Errorf("%q is no IPv4 address with a port, such as 127.0.0.1:5001", s)
	}
	return a, nil
}

// Bounds of an Ethernet's MTU: what the smallest path MTU of RoCE needs, and a jumbo frame.
const leastMTU, mostMTU = 256 + Headers, 9216

// Headers is how many bytes of a packet the path MTU does not count: what Linux leaves room for
// (iboe_get_mtu).
const Headers = 96

// CheckMTU checks the MTU that a flag --mtu gives a place.
func CheckMTU(p Place, mtu int) error {
	switch {
	case p.Kind == KindUDP:
		return fmt.Errorf("--mtu is that of an Ethernet (dgram:, tap:); %v has that of the interface with the address", p)
	case mtu < leastMTU || mtu > mostMTU:
		return fmt.Errorf("--mtu %d: from %d (for a path MTU of 256) to %d bytes are possible", mtu, leastMTU, mostMTU)
	}
	return nil
}
