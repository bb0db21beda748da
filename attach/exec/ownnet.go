//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Some programs look for the address of a device among those of the machine's interfaces, or use
// TCP to it. With Config.OwnNetwork they run in a network namespace of their own, in which each
// device has an interface with its addresses. What is sent there stays in the namespace; RDMA
// traffic does not pass these interfaces. Those of InfiniBand devices have the names and addresses
// of IP that IPoIB's have, and the hardware addresses of Ethernet.

// firstInterface is the index of the first device's interface: 1 is the loopback interface of any
// namespace.
const firstInterface = 2

// prefixBits is the length of the prefix of the devices' network.
const prefixBits = 24

// ownInterface is the interface of a device.
type ownInterface struct {
	Name  string
	Index int
	MAC   net.HardwareAddr
	IP    netip.Addr
}

// ownInterfaces are those of the machine's devices.
func (m *machine) ownInterfaces() (l []ownInterface) {
	name := "sim"
	if m.net.InfiniBand() {
		name = "ib"
	}
	for k, d := range m.devs {
		id := d.hca.Identity()
		l = append(l, ownInterface{Name: fmt.Sprintf("%s%d", name, k), Index: firstInterface + k, MAC: id.MAC[:], IP: netip.AddrFrom4(id.IPv4)})
	}
	return l
}

// ownNetworkAttr are the attributes of a child that has a network namespace. Who is not root gets
// it with a user namespace, in which the user has the same number.
func ownNetworkAttr(attr *syscall.SysProcAttr) {
	attr.Cloneflags = unix.CLONE_NEWNET
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN} // for the child alone, which gives it back before it becomes the program
	}
}

// makeOwnNetwork makes the interfaces, in the child.
func makeOwnNetwork(all []ownInterface) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	for _, i := range all {
		if err := i.make(); err != nil {
			return fmt.Errorf("interface %s: %w", i.Name, err)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return nil
}

// make makes the interface of a kind that the kernel has: of neither does a packet leave the
// namespace.
func (i *ownInterface) make() error {
	a := netlink.NewLinkAttrs()
	a.Name, a.Index, a.HardwareAddr = i.Name, i.Index, i.MAC
	var link netlink.Link = &netlink.Dummy{LinkAttrs: a}
	err := netlink.LinkAdd(link)
	if errors.Is(err, unix.EOPNOTSUPP) {
		link = &netlink.Bridge{LinkAttrs: a}
		err = netlink.LinkAdd(link)
	}
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: i.IP.AsSlice(), Mask: net.CIDRMask(prefixBits, i.IP.BitLen())}}
	return errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
}
