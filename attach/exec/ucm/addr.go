//go:build linux

package ucm

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// familyIB is AF_IB, whose addresses are GIDs.
const familyIB = 27

// addrSize is the length of an address of its family, 0 of a family that rdma_cm does not know
// (rdma_addr_size).
func addrSize(b []byte) int {
	switch uapi.SockaddrIn(b).Family() {
	case syscall.AF_INET:
		return uapi.SockaddrInSize
	case syscall.AF_INET6:
		return uapi.SockaddrIn6Size
	case familyIB:
		return uapi.SockaddrIBSize
	}
	return 0
}

// errProbe marks what librdmacm asks to find out whether there is AF_IB.
var errProbe = errors.New("probe")

var errAFIB = errors.New("addresses of AF_IB are not modelled")

// address is the address in a structure of the ABI. The zero value is none. Addresses of AF_IB have
// no form in the model.
func (k *command) address(b []byte) (a netip.AddrPort, err error) {
	switch uapi.SockaddrIn(b).Family() {
	case syscall.AF_UNSPEC:
		return a, nil
	case syscall.AF_INET:
		s := uapi.SockaddrIn(b)
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s.Addr())), s.Port()), nil
	case syscall.AF_INET6:
		s := uapi.SockaddrIn6(b)
		ip := netip.AddrFrom16([16]byte(s.Addr()))
		if scope := s.Scope(); scope != 0 && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
		return netip.AddrPortFrom(ip, s.Port()), nil
	}
	return a, fmt.Errorf("%s: %w: %w", k.name, errAFIB, syscall.EAFNOSUPPORT)
}

// sized is an address with the length that the program gives of it.
func (k *command) sized(b []byte, size int) (a netip.AddrPort, err error) {
	if size == 0 || size != addrSize(b) {
		return a, k.errorf(syscall.EINVAL, "address of family %d has %d bytes", uapi.SockaddrIn(b).Family(), size)
	}
	return k.address(b)
}

// PutAddress writes an address into zeros, and returns its length: 0 for none.
func PutAddress(b []byte, a netip.AddrPort) int {
	switch ip := a.Addr(); {
	case !ip.IsValid():
		return 0
	case ip.Is4():
		s := uapi.SockaddrIn(b)
		s.SetFamily(syscall.AF_INET)
		s.SetPort(a.Port())
		v := ip.As4()
		copy(s.Addr(), v[:])
		return uapi.SockaddrInSize
	default:
		s := uapi.SockaddrIn6(b)
		s.SetFamily(syscall.AF_INET6)
		s.SetPort(a.Port())
		v := ip.As16()
		copy(s.Addr(), v[:])
		if scope, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
			s.SetScope(uint32(scope))
		}
		return uapi.SockaddrIn6Size
	}
}

// putGID writes a GID as an address of AF_IB.
func putGID(b []byte, g verbs.GID, pkey uint16, service uint64) {
	s := uapi.SockaddrIB(b)
	s.SetFamily(familyIB)
	s.SetPKey(pkey)
	copy(s.Addr(), g[:])
	s.SetServiceID(service)
}
