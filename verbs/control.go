package verbs

import (
	"net/netip"
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
	AddAddress(t Thread, host int, ip netip.Addr) error
	RemoveAddress(t Thread, host int, ip netip.Addr) error
}

// IPAddressed tells the IP address by which the connection manager knows a host's first device on InfiniBand, where that is the
// address of IPoIB and none of the port's GIDs has it.
type IPAddressed interface {
	IPAddress(t Thread, host int) (netip.Addr, error)
}

// VLANControl makes VLAN interfaces over the network interface of a host's first device, and removes
// them ("vlan"). Each has one address, whose GID entries name the new interface.
type VLANControl interface {
	AddVLAN(t Thread, host int, id uint16, ip netip.Addr) error
	RemoveVLAN(t Thread, host int, id uint16) error
}

// ResourceCounter counts the objects that the processes of a host have on its first device, as `rdma
// resource show` does ("restrack"): qp, cq, mr, pd, srq, ctx, each where the machine counts it.
type ResourceCounter interface {
	ResourceCounts(t Thread, host int) (map[string]int, error)
}

// Remapper is implemented by buffers under which other memory can be put.
type Remapper interface {
	// Remap is munmap of the whole mapping, and mmap of fresh memory at its address.
	Remap(t Thread) error
}

// DeviceClock is implemented by testbeds whose devices work in a time of their own ("device time"): how long they have had
// something to do so far. That of programs is not in it, so it tells of one request at a time, and not of many.
type DeviceClock interface {
	DeviceTime(t Thread) (time.Duration, error)
}
