package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// The local port range (net.ipv4.ip_local_port_range), and where ports begin that everybody may
// bind.
const (
	firstLocalPort = 32768
	lastLocalPort  = 60999
	firstOpenPort  = 1024
)

// portKey is a port of a port space (struct rdma_bind_list).
type portKey struct {
	ps   verbs.PortSpace
	port uint16
}

func (i *ids) key(ps verbs.PortSpace, n uint16) portKey {
	if i.m.breaks(rule.PortSpacesAreApart) {
		ps = 0
	}
	return portKey{ps, n}
}

// service is the service ID of a port: of the destination's in a request.
func service(ps verbs.PortSpace, n uint16) uint64 { return uint64(ps)<<16 + uint64(n) }

// getPort is cma_get_port: the id's source address is its own already.
func (x *rdmaID) getPort(mayBindLow bool) error {
	n := x.src.Port()
	if n == 0 {
		return x.anyPort()
	}
	k := x.ids.key(x.ps, n)
	if x.ids.bound[k] == nil && n < firstOpenPort && !mayBindLow && !x.ids.m.breaks(rule.LowPortsArePrivileged) {
		return fmt.Errorf("port %d is below %d, and CAP_NET_BIND_SERVICE is missing: %w", n, firstOpenPort, syscall.EACCES)
	}
	if err := x.checkPort(x.reuse); err != nil {
		return err
	}
	x.enterPort(k)
	return nil
}

func (x *rdmaID) enterPort(k portKey) {
	x.ids.bound[k] = append(x.ids.bound[k], x)
	x.bound = &k
}

// anyPort is cma_alloc_any_port, without sharing of ports among ids whose peers differ.
func (x *rdmaID) anyPort() error {
	i := x.ids
	const n = lastLocalPort - firstLocalPort + 1
	at := i.m.rand.Intn(n)
	for range n {
		p := uint16(firstLocalPort + at)
		if i.m.breaks(rule.LocalPortsHaveTheirRange) {
			p -= firstLocalPort - firstOpenPort
		}
		if k := i.key(x.ps, p); p != i.lastPort && i.bound[k] == nil {
			i.lastPort = p
			x.src = netip.AddrPortFrom(x.src.Addr(), p)
			x.enterPort(k)
			return nil
		}
		at = (at + 1) % n
	}
	return fmt.Errorf("no port of %d to %d is free: %w", firstLocalPort, lastLocalPort, syscall.EADDRNOTAVAIL)
}

// checkPort is cma_check_port.
func (x *rdmaID) checkPort(reuse bool) error {
	n := x.src.Port()
	for _, cur := range x.ids.bound[x.ids.key(x.ps, n)] {
		switch {
		case cur == x, reuse && cur.reuse, x.ids.m.breaks(rule.BoundPortsAreTaken):
		case x.afOnly && cur.afOnly && x.src.Addr().Is4() != cur.src.Addr().Is4():
		case isAny(x.src.Addr()) || isAny(cur.src.Addr()):
			return fmt.Errorf("port %d is bound, and one of the two addresses is a wildcard: %w", n, syscall.EADDRNOTAVAIL)
		case x.src.Addr().WithZone("") == cur.src.Addr().WithZone(""):
			return fmt.Errorf("%v is bound: %w", x.src, syscall.EADDRINUSE)
		}
	}
	return nil
}

// leavePort gives the port back.
func (x *rdmaID) leavePort() {
	if x.bound == nil {
		return
	}
	l := x.ids.bound[*x.bound]
	for i, cur := range l {
		if cur == x {
			l = append(l[:i:i], l[i+1:]...)
			break
		}
	}
	if len(l) == 0 {
		delete(x.ids.bound, *x.bound)
	} else {
		x.ids.bound[*x.bound] = l
	}
	x.bound = nil
}

// isAny is cma_any_addr: a loopback address is a wildcard too, for it names no device.
func isAny(a netip.Addr) bool { return !a.IsValid() || a.IsUnspecified() || a.IsLoopback() }
