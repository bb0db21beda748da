package verbs

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"
)

// What a tester changes on the machines from outside the programs. A testbed implements what it
// can do; the capability in brackets says so.

// DeviceRemover removes a device while programs use it ("hotunplug"): its driver is unbound,
// and the port's link goes down.
type DeviceRemover interface {
	RemoveDevice(t Thread, host int, device string) error
}

// AddressControl adds addresses to the network interface of a host's first device, and
// removes them ("addr").
type AddressControl interface {
	// AddAddress is ip address add. EEXIST: a host has the address.
	AddAddress(t Thread, host int, ip netip.Addr) error
	// RemoveAddress is ip address del; its GID entries go.
	RemoveAddress(t Thread, host int, ip netip.Addr) error
}

// Interface is a network interface of a host.
type Interface struct {
	Name  string
	Addrs []netip.Addr
	// Device and Port name the RDMA port to which it belongs (RoCE or IPoIB); empty: it belongs to
	// none.
	Device string
	Port   int
}

// InterfaceLister is implemented by processes that can list the network interfaces of their host
// (getifaddrs, and sysfs for the RDMA devices).
type InterfaceLister interface {
	Interfaces(t Thread) ([]Interface, error)
}

// InterfaceAddr returns an IP address of a port's network interface, an IPv4 one if there is any.
// ENODEV: it has none, or the process cannot list interfaces.
func InterfaceAddr(t Thread, ctx Context, port int) (netip.Addr, error) {
	name := ctx.Device().Name()
	var found netip.Addr
	if l, ok := t.Process().(InterfaceLister); ok {
		all, err := l.Interfaces(t)
		if err != nil {
			return found, err
		}
		for _, i := range all {
			for _, ip := range i.Addrs {
				if i.Device == name && i.Port == port && (!found.IsValid() || ip.Is4() && !found.Is4()) {
					found = ip
				}
			}
		}
	}
	if !found.IsValid() {
		return found, fmt.Errorf("port %d of %s has no interface with an address of IP: %w", port, name, syscall.ENODEV)
	}
	return found, nil
}

// VLANControl makes VLAN interfaces over the network interface of a host's first device, and
// removes them ("vlan"). Each has one address, whose GID entries name the new interface.
type VLANControl interface {
	// AddVLAN is ip link add type vlan, and ip address add. EEXIST: the interface or the address
	// exists; EINVAL: a wrong VLAN ID.
	AddVLAN(t Thread, host int, id uint16, ip netip.Addr) error
	// RemoveVLAN is ip link del.
	RemoveVLAN(t Thread, host int, id uint16) error
}

// ResourceCounter counts the objects that the processes of a host have on its first device, as
// `rdma resource show` does ("restrack"): qp, cq, mr, pd, srq, ctx, each where the machine counts
// it.
type ResourceCounter interface {
	ResourceCounts(t Thread, host int) (map[string]int, error)
}

// Remapper is implemented by buffers whose memory can be replaced at the same address.
type Remapper interface {
	// Remap is munmap of the whole mapping, and mmap of fresh memory at its address.
	Remap(t Thread) error
}

// DeviceClock is implemented by testbeds whose devices work in a time of their own ("device time").
// DeviceTime returns how long the devices have had work so far. It leaves out the programs' own
// time, so it measures one request at a time, not many.
type DeviceClock interface {
	DeviceTime(t Thread) (time.Duration, error)
}
