//go:build linux && amd64

// Package tree makes the files by which libraries find RDMA devices: the classes
// infiniband and infiniband_verbs of sysfs, and the device files. Programs see them
// through mounts in a mount namespace of their own (Mount, for root), or by answers
// to their path calls (Resolve).
package tree

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/uapi"
)

// Device is what the files say of a device.
type Device struct {
	Name                   string // mlx5_0
	NodeGUID, SysImageGUID uint64
	FWVer, BoardID         string
	HWRev                  uint32
	PCI                    PCI
	Net                    Net
	Ports                  []Port
	Counters               []Link // files of its folder in infiniband_verbs
}

// Link is a file that lies elsewhere.
type Link struct{ Name, To string }

// Port is what the files say of a port. A GID of a zero Type is empty.
type Port struct {
	GIDs       []GID
	PKeys      []uint16
	LinkLayer  string // Ethernet, InfiniBand
	State      string // "4: ACTIVE"
	PhysState  string // "5: LinkUp"
	Rate       string // "100 Gb/sec (4X EDR)"
	LID, SMLID uint16
	CapMask    uint32
	HWCounters []Link // files of its folder hw_counters
	Counters   []Link // files of its folder counters
	// Live is the folder of the files that may change, to which links lead (WriteLive); empty: none
	// does.
	Live string
}

// GID is an entry of a port's table.
type GID struct {
	Value [16]byte
	Type  string // "RoCE v2", "IB/RoCE v1"
}

// managed says whether the device has an umad file: its ports are of InfiniBand.
func (d *Device) managed() bool { return len(d.Ports) > 0 && d.Ports[0].LinkLayer == infiniBand }

// UMADFile is the path of the umad file of device k.
func UMADFile(k int) string { return fmt.Sprintf("/dev/infiniband/umad%d", k) }

// DevFile is the path of device file k.
func DevFile(k int) string { return fmt.Sprintf("/dev/infiniband/uverbs%d", k) }

// The null device stands for the device files until the first call on one: what a
// library checks before that it answers by itself.
const (
	NullMajor, NullMinor = 1, 3
	nullDevice           = "/dev/null"
)

// Major and FirstMinor are the number of the first device file, those of others follow
// (IB_UVERBS_MAJOR, IB_UVERBS_BASE_MINOR).
const Major, FirstMinor = 231, 192

// ChannelFile is the path of the device file of rdma_cm, and its number: misc devices have the
// major number 10, and those without a minor number of their own get a free one.
const (
	channelPath  = "/dev/infiniband/rdma_cm"
	ChannelMajor = 10
	ChannelMinor = 122
)

// IsChannel says whether a path is that of rdma_cm's device file.
func IsChannel(p string) bool {
	return strings.HasPrefix(p, "/dev/") && path.Clean(p) == channelPath
}

// channelABI is the version of rdma_cm's user ABI (RDMA_USER_CM_ABI_VERSION).
const channelABI = "4"

// Tree is a folder with the files.
type Tree struct {
	Dir   string // holds bus, class, dev and devices
	Count int    // devices
	UMADs int    // umad files: those of all devices, or none
	// links are the symbolic links among the files of sysfs that lead to others of them, by the
	// paths that programs see.
	links map[string]string
	owned []owned
	host  sync.Once // addHost
}

// Build makes the files in dir, which exists and is empty.
func Build(dir string, devices []Device) (*Tree, error) {
	b := builder{dir: dir, links: map[string]string{}}
	b.file("class/infiniband_verbs/abi_version", "6")
	b.file("class/infiniband_mad/abi_version", fmt.Sprint(uapi.UMADVersion))
	b.file("class/misc/rdma_cm/abi_version", channelABI)
	b.file("class/misc/rdma_cm/dev", fmt.Sprintf("%d:%d", ChannelMajor, ChannelMinor))
	b.file("dev/infiniband/"+path.Base(channelPath), "")
	umads := 0
	for k := range devices {
		b.function(k, &devices[k])
		b.file("dev/infiniband/"+filepath.Base(DevFile(k)), "")
		if devices[k].managed() {
			b.file("dev/infiniband/"+filepath.Base(UMADFile(k)), "")
			umads++
		}
	}
	if b.err != nil {
		return nil, fmt.Errorf("files of the devices: %w", b.err)
	}
	return &Tree{Dir: dir, Count: len(devices), UMADs: umads, links: b.links, owned: ownedBy(devices)}, nil
}

// builder makes files. Those of the same contents are one file with several names: most entries of
// the tables of a port are equal, and file systems take far longer to make a file than to give it a
// name.
type builder struct {
	dir   string
	err   error
	files map[string]string // by contents
	made  string            // folder that was made last
	links map[string]string // of Tree
}

// file writes a line; the first error stays.
func (b *builder) file(name, line string) {
	if b.err != nil {
		return
	}
	path := filepath.Join(b.dir, name)
	if dir := filepath.Dir(path); dir != b.made {
		b.err, b.made = os.MkdirAll(dir, 0o755), dir
	}
	if line != "" {
		b.write(path, line+"\n")
	} else if b.err == nil {
		b.err = create(path, "") // something is mounted over it
	}
}

// write makes a file with a text that is not empty; the first error stays.
func (b *builder) write(path, text string) {
	if b.err != nil {
		return
	}
	if same, ok := b.files[text]; ok && unix.Link(same, path) == nil {
		return
	}
	if b.err = create(path, text); b.err != nil {
		return
	}
	if b.files == nil {
		b.files = map[string]string{}
	}
	b.files[text] = path
}

// create makes a file that everybody may read, with a third of the system calls of package os.
func create(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o444)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o444)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := unix.Write(fd, []byte(text))
	if err == nil && n < len(text) {
		err = unix.ENOSPC
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// verbs is the folder of infiniband_verbs.
func (b *builder) verbs(dir string, k int, d *Device) {
	b.file(dir+"/ibdev", d.Name)
	b.file(dir+"/abi_version", "1") // of mlx5
	b.file(dir+"/dev", fmt.Sprintf("%d:%d", Major, FirstMinor+k))
	b.file(dir+"/uevent", fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=infiniband/uverbs%d", Major, FirstMinor+k, k))
	for _, l := range d.Counters {
		b.away(dir+"/"+l.Name, l.To)
	}
}

// away makes a symbolic link to a file elsewhere.
func (b *builder) away(name, to string) {
	if b.err == nil {
		b.err = os.Symlink(to, filepath.Join(b.dir, name))
	}
}

// link makes a symbolic link to another of the files, as sysfs has it: relative.
func (b *builder) link(name, to string) {
	if b.err != nil {
		return
	}
	path := filepath.Join(b.dir, name)
	if dir := filepath.Dir(path); dir != b.made {
		if b.err, b.made = os.MkdirAll(dir, 0o755), dir; b.err != nil {
			return
		}
	}
	rel, err := filepath.Rel(filepath.Dir(name), filepath.Dir(to))
	rel = filepath.Join(rel, filepath.Base(to))
	b.err = errors.Join(err, os.Symlink(rel, path))
	b.links["/sys/"+name] = rel
}

// infiniBand is the link layer of a port whose GIDs belong to no interface.
const infiniBand = "InfiniBand"

// guid is the form of node_guid.
func guid(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48&0xffff, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

// String returns the text form.
func (g *GID) String() string {
	var s []string
	for i := 0; i < len(g.Value); i += 2 {
		s = append(s, fmt.Sprintf("%02x%02x", g.Value[i], g.Value[i+1]))
	}
	return strings.Join(s, ":")
}

func (b *builder) device(dir string, d *Device) {
	b.file(dir+"/node_type", "1: CA")
	b.file(dir+"/node_guid", guid(d.NodeGUID))
	b.file(dir+"/sys_image_guid", guid(d.SysImageGUID))
	b.file(dir+"/node_desc", "rdmasim "+d.Name)
	b.file(dir+"/fw_ver", d.FWVer)
	b.file(dir+"/board_id", d.BoardID)
	b.file(dir+"/hca_type", fmt.Sprintf("MT%d", uapi.PCIHeader(d.PCI.Config).DeviceID()))
	b.file(dir+"/hw_rev", fmt.Sprintf("%x", d.HWRev))
	b.file(dir+"/uevent", "NAME="+d.Name)
	for i := range d.Ports {
		b.port(fmt.Sprintf("%s/ports/%d", dir, i+1), d, &d.Ports[i])
	}
}

// zeroCounters are the counters of a port of which the model has none.
var zeroCounters = []string{
	"VL15_dropped", "excessive_buffer_overrun_errors", "link_error_recovery", "local_link_integrity_errors", "port_rcv_constraint_errors",
	"port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_wait", "symbol_error",
}

func (b *builder) port(dir string, d *Device, p *Port) {
	b.file(dir+"/link_layer", p.LinkLayer)
	b.file(dir+"/rate", p.Rate)
	b.file(dir+"/lid_mask_count", "0")
	b.file(dir+"/sm_sl", "0")
	b.file(dir+"/cap_mask", fmt.Sprintf("0x%08x", p.CapMask))
	if len(p.HWCounters) > 0 {
		b.file(dir+"/hw_counters/lifespan", "10") // ms that the kernel keeps a value, RDMA_HW_STATS_DEFAULT_LIFESPAN
	}
	for _, l := range p.HWCounters {
		b.away(dir+"/hw_counters/"+l.Name, l.To)
	}
	if len(p.Counters) > 0 {
		for _, name := range zeroCounters {
			b.file(dir+"/counters/"+name, "0")
		}
	}
	for _, l := range p.Counters {
		b.away(dir+"/counters/"+l.Name, l.To)
	}
	for _, f := range p.changing() {
		if p.Live == "" {
			b.file(dir+"/"+f.name, f.line)
		}
	}
	for _, name := range changingNames {
		if p.Live != "" {
			b.away(dir+"/"+name, filepath.Join(p.Live, name))
		}
	}
	for i := range p.GIDs {
		g := &p.GIDs[i]
		if g.Type == "" {
			continue // reading the attributes of an empty entry fails
		}
		b.file(fmt.Sprintf("%s/gid_attrs/types/%d", dir, i), g.Type)
		if p.LinkLayer != infiniBand { // the kernel knows no interface of such an entry
			b.file(fmt.Sprintf("%s/gid_attrs/ndevs/%d", dir, i), d.Net.Name)
		}
	}
}
