//go:build linux && amd64

package tree

import (
	"fmt"
	"path"
	"strings"

	"github.com/rdmasim/rdmasim/uapi"
)

// PCI is what the files say of a device's PCI function.
type PCI struct {
	Address   string // 0001:01:00.0; the function is on the root bus of a host bridge of its own
	Config    []byte // the configuration space, without the zeros at its end
	BAR, Size uint64 // address and size of BAR 0
	Speed     string // of the link: "8.0 GT/s PCIe"
	Lanes     int
	// CPUs that are near the function, as a mask (3) and as a list (0-1).
	CPUs, CPUList string
}

// Net is what the files say of a device's network interface.
type Net struct {
	Name    string // sim0
	Address string // 0c:42:a1:65:ba:fe
	MTU     int
	Mbps    uint64
	// Index is that of an interface which the programs have (ip link); 0: they have none, and it is
	// in the function's folder only.
	Index int
	IPoIB bool
}

// driver is the PCI driver of the devices.
const driver = "mlx5_core"

// configBytes is the size of the file config.
const configBytes = 4096

// Flags of BAR 0 in the file resource, and types of interfaces (linux/ioport.h, linux/if_arp.h).
const (
	resourceMemory64Prefetch = 0x14220c // IORESOURCE_MEM, _PREFETCH, _SIZEALIGN, _MEM_64, and the low bits of the register
	resources                = 13       // BARs, ROM and windows of bridges
	arphrdEther              = 1
	arphrdInfiniBand         = 32
)

// bridge is the folder of the function's host bridge, below /sys/devices.
func (p *PCI) bridge() string { return "pci" + p.Address[:strings.LastIndexByte(p.Address, ':')] }

// function makes all files of a device of sysfs: the folder of the PCI function with what belongs
// to it, and the links of classes and of the bus that lead there.
func (b *builder) function(k int, d *Device) {
	p, dir := &d.PCI, "devices/"+d.PCI.bridge()+"/"+d.PCI.Address
	b.attributes(dir, p)
	b.link(dir+"/subsystem", "bus/pci")
	b.link(dir+"/driver", "bus/pci/drivers/"+driver)
	b.link("bus/pci/devices/"+p.Address, dir)
	b.link("bus/pci/drivers/"+driver+"/"+p.Address, dir)
	member := func(class, name string) string {
		at := dir + "/" + class + "/" + name
		b.link("class/"+class+"/"+name, at)
		b.link(at+"/device", dir)
		b.link(at+"/subsystem", "class/"+class)
		return at
	}
	b.device(member("infiniband", d.Name), d)
	b.verbs(member("infiniband_verbs", fmt.Sprintf("uverbs%d", k)), k, d)
	if d.managed() {
		at := member("infiniband_mad", fmt.Sprintf("umad%d", k))
		b.file(at+"/ibdev", d.Name)
		b.file(at+"/port", "1")
		b.file(at+"/dev", fmt.Sprintf("%d:%d", Major, k))
		b.file(at+"/uevent", fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=infiniband/umad%d", Major, k, k))
	}
	b.net(dir, &d.Net, member)
}

// attributes are the files of the function itself.
func (b *builder) attributes(dir string, p *PCI) {
	var space [configBytes]byte
	copy(space[:], p.Config)
	h := uapi.PCIHeader(space[:])
	class := uint32(h.Class())<<8 | uint32(h.Interface())
	modalias := fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", h.VendorID(), h.DeviceID(), h.SubsystemVendorID(), h.SubsystemID(),
		class>>16, class>>8&0xff, class&0xff)
	var regions strings.Builder
	for i := range resources {
		var first, last, flags uint64
		if i == 0 {
			first, last, flags = p.BAR, p.BAR+p.Size-1, resourceMemory64Prefetch
		}
		fmt.Fprintf(&regions, "0x%016x 0x%016x 0x%016x\n", first, last, flags)
	}
	b.file(dir+"/resource", strings.TrimSuffix(regions.String(), "\n"))
	b.write(path.Join(b.dir, dir, "config"), string(space[:]))
	for _, f := range []struct{ name, line string }{
		{"vendor", fmt.Sprintf("%#04x", h.VendorID())}, {"device", fmt.Sprintf("%#04x", h.DeviceID())},
		{"subsystem_vendor", fmt.Sprintf("%#04x", h.SubsystemVendorID())}, {"subsystem_device", fmt.Sprintf("0x%04x", h.SubsystemID())},
		{"revision", fmt.Sprintf("0x%02x", h.Revision())}, {"class", fmt.Sprintf("0x%06x", class)}, {"modalias", modalias},
		{"current_link_speed", p.Speed}, {"current_link_width", fmt.Sprint(p.Lanes)}, {"max_link_speed", p.Speed}, {"max_link_width", fmt.Sprint(p.Lanes)},
		{"numa_node", "-1"}, {"local_cpus", p.CPUs}, {"local_cpulist", p.CPUList}, {"irq", "0"}, {"enable", "1"},
		{"uevent", fmt.Sprintf("DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s", driver, class,
			h.VendorID(), h.DeviceID(), h.SubsystemVendorID(), h.SubsystemID(), p.Address, modalias)},
	} {
		b.file(dir+"/"+f.name, f.line)
	}
}

// net is the folder of the network interface. Without one that programs can ask the kernel about,
// no class has it.
func (b *builder) net(dir string, n *Net, member func(class, name string) string) {
	at := dir + "/net/" + n.Name
	if n.Index != 0 {
		at = member("net", n.Name)
		b.file(at+"/ifindex", fmt.Sprint(n.Index))
	} else {
		b.link(at+"/device", dir)
	}
	kind := arphrdEther
	if n.IPoIB {
		kind = arphrdInfiniBand
	}
	for _, f := range []struct{ name, line string }{
		{"address", n.Address}, {"addr_len", fmt.Sprint((len(n.Address) + 1) / 3)}, {"type", fmt.Sprint(kind)}, {"mtu", fmt.Sprint(n.MTU)},
		{"speed", fmt.Sprint(n.Mbps)}, {"duplex", "full"}, {"operstate", "up"}, {"carrier", "1"}, {"dev_port", "0"}, {"dev_id", "0x0"}, {"flags", "0x1003"},
	} {
		b.file(at+"/"+f.name, f.line)
	}
}
