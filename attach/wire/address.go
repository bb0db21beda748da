package wire

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/roce"
)

// scheme is that of addresses of --wire.
const scheme = "udp:"

// ParseAddress parses udp:ADDRESS.
func ParseAddress(s string) (netip.Addr, error) {
	text, ok := strings.CutPrefix(s, scheme)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%q: udp:ADDRESS is needed, such as udp:192.0.2.1, or an Ethernet: dgram:LOCAL-REMOTE@ADDRESS, tap:NAME@ADDRESS", s)
	}
	return parseOwn(s, text, "one of this machine's own (ip address)")
}

// parseOwn reads the address of a device, which stands in s; which is for the error.
func parseOwn(s, text, which string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("%q: %q is no IP address; a host name or a port cannot be given", s, text)
	}
	switch a = a.Unmap(); {
	case a.Zone() != "" || a.IsLinkLocalUnicast():
		return a, fmt.Errorf("%q: a link-local address means nothing to a peer elsewhere: give one of wider scope", s)
	case a.IsUnspecified() || a.IsMulticast():
		return a, fmt.Errorf("%q: peers find this end by its address: give %s", s, which)
	}
	return a, nil
}

// ParseAllow parses a network (192.0.2.0/24) or an address of peers.
func ParseAllow(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q: a network such as 192.0.2.0/24 is needed, or an address", s)
	}
	return p.Masked(), nil
}

// MACOf returns the Ethernet address that a peer's frames have inside the simulation: a locally
// administered one made from its IP address. No datagram contains it.
func MACOf(a netip.Addr) (m roce.MAC) {
	const local = 2
	m[0] = local
	if a = a.Unmap(); a.Is4() {
		b := a.As4()
		copy(m[2:], b[:])
		return m
	}
	h := fnv.New64a()
	b := a.As16()
	_, _ = h.Write(b[:])
	sum := h.Sum(nil)
	m[1] = 6
	copy(m[2:], sum)
	return m
}

// allows says whether a network of the list, or no list, has an address.
func allows(list []netip.Prefix, a netip.Addr) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// interfaceOf is the name and the MTU of the interface that has an address of this machine.
func interfaceOf(a netip.Addr) (name string, mtu int, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", 0, fmt.Errorf("interfaces of this machine: %w", err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, x := range addrs {
			n, ok := x.(*net.IPNet)
			if !ok {
				continue
			}
			// All of 127.0.0.0/8 is this machine's.
			if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap() == a || a.IsLoopback() && n.IP.IsLoopback() && n.Contains(a.AsSlice()) {
				return i.Name, i.MTU, nil
			}
		}
	}
	return "", 0, fmt.Errorf("%v is no address of this machine: `ip address` lists those that it has", a)
}
