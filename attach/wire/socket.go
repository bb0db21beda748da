//go:build linux

package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
)

// Room that the kernel is asked for. Without CAP_NET_ADMIN net.core.rmem_max and wmem_max limit it.
const (
	receiveRoom = 4 << 20
	sendRoom    = 4 << 20
)

// defaultTTL is the TTL of datagrams that do not say another.
const defaultTTL = 64

// socket is a UDP socket on port 4791.
type socket struct {
	fd      int
	ipv6    bool
	segment bool // the kernel cuts buffers into datagrams
	room    int  // for datagrams that have not been received yet
}

// rxeModule is there while the kernel's Soft-RoCE is loaded.
const rxeModule = "/sys/module/rdma_rxe"

// openSocket binds a socket to an address.
func openSocket(a netip.Addr) (*socket, error) {
	family, bound := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: roce.UDPPort, Addr: a.As16()})
	if a.Is4() {
		family, bound = unix.AF_INET, &unix.SockaddrInet4{Port: roce.UDPPort, Addr: a.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("a UDP socket for %v: %w", a, err)
	}
	s := &socket{fd: fd, ipv6: family == unix.AF_INET6}
	if err := s.setOptions(); err != nil {
		return nil, errors.Join(fmt.Errorf("options of the UDP socket for %v: %w", a, err), unix.Close(fd))
	}
	if err := unix.Bind(fd, bound); err != nil {
		return nil, errors.Join(bindError(a, err), unix.Close(fd))
	}
	return s, nil
}

// bindError says what to do about an address that cannot be had.
func bindError(a netip.Addr, err error) error {
	at := netip.AddrPortFrom(a, roce.UDPPort)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		if _, gone := os.Stat(rxeModule); gone == nil {
			return fmt.Errorf("UDP %v is taken, by the kernel's Soft-RoCE: `rdma link delete` each of its devices and `modprobe -r rdma_rxe`, or run this in a network namespace of its own: %w", at, err)
		}
		return fmt.Errorf("UDP %v is taken by another session or program (`ss -ulnp sport = %d` says which): end it, or give another address of this machine: %w", at, roce.UDPPort, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("%v is no address of this machine: `ip address` lists those that it has: %w", a, err)
	}
	return fmt.Errorf("bind a UDP socket to %v: %w", at, err)
}

// setOptions asks the kernel for what it says of datagrams, forbids fragments, and takes room and
// offloads as far as there are.
func (s *socket) setOptions() error {
	on := func(level, opt, v int) error { return unix.SetsockoptInt(s.fd, level, opt, v) }
	level, options := unix.IPPROTO_IP, [][2]int{{unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO}, {unix.IP_RECVTTL, 1}, {unix.IP_RECVTOS, 1}, {unix.IP_TTL, defaultTTL}}
	if s.ipv6 {
		level, options = unix.IPPROTO_IPV6, [][2]int{{unix.IPV6_V6ONLY, 1}, {unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO}, {unix.IPV6_RECVHOPLIMIT, 1},
			{unix.IPV6_RECVTCLASS, 1}, {unix.IPV6_UNICAST_HOPS, defaultTTL}}
	}
	for _, o := range options {
		if err := on(level, o[0], o[1]); err != nil {
			return err
		}
	}
	if on(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveRoom) != nil {
		_ = on(unix.SOL_SOCKET, unix.SO_RCVBUF, receiveRoom) // as much as there is
	}
	if on(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendRoom) != nil {
		_ = on(unix.SOL_SOCKET, unix.SO_SNDBUF, sendRoom)
	}
	_ = on(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	_ = on(unix.IPPROTO_UDP, unix.UDP_GRO, 1) // Linux 5.0
	_, err := unix.GetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	s.segment = err == nil // Linux 4.18
	s.room, err = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return err
}

// destination is a peer as the kernel wants it.
type destination struct {
	addr netip.Addr
	name unix.RawSockaddrInet6 // or RawSockaddrInet4, which is shorter
	size uint32
	told bool // that something does not reach it
}

// newDestination is port 4791 of a peer.
func newDestination(a netip.Addr) *destination {
	return newDestinationPort(netip.AddrPortFrom(a, roce.UDPPort))
}

func newDestinationPort(at netip.AddrPort) *destination {
	a := at.Addr()
	d := &destination{addr: a}
	if a.Is4() {
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&d.name))
		in.Family, in.Addr, d.size = unix.AF_INET, a.As4(), unix.SizeofSockaddrInet4
	} else {
		d.name.Family, d.name.Addr, d.size = unix.AF_INET6, a.As16(), unix.SizeofSockaddrInet6
	}
	*(*[2]byte)(unsafe.Pointer(&d.name.Port)) = [2]byte{byte(at.Port() >> 8), byte(at.Port())} // as on the wire
	return d
}

// source is the address and the port that a datagram came from.
func source(n *unix.RawSockaddrInet6) netip.AddrPort {
	b := (*[2]byte)(unsafe.Pointer(&n.Port))
	port := uint16(b[0])<<8 | uint16(b[1])
	if n.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(n)).Addr), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(n.Addr).Unmap(), port)
}

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// sendmmsg and recvmmsg do not wait, so that Go's scheduler need not know of them.
func sendmmsg(fd int, m []mmsghdr) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func recvmmsg(fd int, m []mmsghdr) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// controlSize is the room for what the kernel says of a datagram, and for what it is told of one.
const controlSize = 128

// control is control data, aligned as the kernel wants it.
type control struct {
	_ [0]unix.Cmsghdr
	b [controlSize]byte
}

// add appends an option of size bytes, whose value is in the low bytes of v, behind n bytes, and
// returns how many there are then.
func (c *control) add(n int, level, typ int32, v uint32, size int) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c.b[n]))
	h.Level, h.Type = level, typ
	h.SetLen(unix.CmsgLen(size))
	copy(c.b[n+unix.CmsgLen(0):n+unix.CmsgLen(size)], (*[4]byte)(unsafe.Pointer(&v))[:size])
	return n + unix.CmsgSpace(size)
}

// facts are what control data say of a received buffer.
type facts struct {
	tos, ttl uint8
	segment  int // bytes of each datagram but the last; 0: there is one
	lost     uint32
	counted  bool // lost is set
}

// read takes the facts out of n bytes.
func (c *control) read(n int) (f facts) {
	f.ttl = defaultTTL
	for at := 0; at+unix.CmsgLen(0) <= n; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&c.b[at]))
		if h.Len < uint64(unix.CmsgLen(0)) || h.Len > uint64(n-at) {
			return f
		}
		size := int(h.Len) - unix.CmsgLen(0)
		var v uint32
		copy((*[4]byte)(unsafe.Pointer(&v))[:], c.b[at+unix.CmsgLen(0):at+int(h.Len)])
		switch [2]int32{h.Level, h.Type} {
		case [2]int32{unix.IPPROTO_IP, unix.IP_TTL}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT}:
			f.ttl = uint8(v)
		case [2]int32{unix.IPPROTO_IP, unix.IP_TOS}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
			f.tos = uint8(v)
		case [2]int32{unix.IPPROTO_UDP, unix.UDP_GRO}:
			f.segment = int(v)
		case [2]int32{unix.SOL_SOCKET, unix.SO_RXQ_OVFL}:
			f.lost, f.counted = v, true
		}
		at += unix.CmsgSpace(size)
	}
	return f
}

// pathMTU is the MTU of the way to a peer as far as the kernel knows it; 0: it does not.
func pathMTU(d *destination) int {
	family, to, opt := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: roce.UDPPort, Addr: d.addr.As16()}), [2]int{unix.IPPROTO_IPV6, unix.IPV6_MTU}
	if d.addr.Is4() {
		family, to, opt = unix.AF_INET, &unix.SockaddrInet4{Port: roce.UDPPort, Addr: d.addr.As4()}, [2]int{unix.IPPROTO_IP, unix.IP_MTU}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, to) != nil {
		return 0
	}
	mtu, err := unix.GetsockoptInt(fd, opt[0], opt[1])
	if err != nil {
		return 0
	}
	return mtu
}
