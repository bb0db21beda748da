//go:build hw

package mlx5

// #include <infiniband/verbs.h>
import "C"

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.InterfaceLister = (*process)(nil)

// portOf is a port of a device.
type portOf struct {
	device string
	port   int
}

// Interfaces are those of the system (getifaddrs). sysfs says to which device one belongs: its
// folder has the names of those of the PCI function, IPoIB's too, and the attributes of GIDs have
// that of a RoCE port, also of a device in software.
func (p *process) Interfaces(t verbs.Thread) ([]verbs.Interface, error) {
	defer enterCall(t, "list of network interfaces").leaveCall()
	devices, err := list()
	if err != nil {
		return nil, err
	}
	owners := map[string]portOf{}
	for _, d := range devices { // also those of other nodes
		(&device{p, d}).interfaces(owners)
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("network interfaces: %w", err)
	}
	l := make([]verbs.Interface, 0, len(all))
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", i.Name, err)
		}
		o := owners[i.Name]
		x := verbs.Interface{Name: i.Name, Device: o.device, Port: o.port}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				ip, _ := netip.AddrFromSlice(n.IP)
				x.Addrs = append(x.Addrs, ip.Unmap())
			}
		}
		l = append(l, x)
	}
	return l, nil
}

// interfaces enters the names of the device's interfaces.
func (d *device) interfaces(owners map[string]portOf) {
	dir, name := C.GoString(&d.d.ibdev_path[0]), d.Name()
	functions, _ := os.ReadDir(filepath.Join(dir, "device", "net"))
	for _, f := range functions {
		text, _ := os.ReadFile(filepath.Join(dir, "device", "net", f.Name(), "dev_port"))
		before, _ := strconv.Atoi(strings.TrimSpace(string(text))) // ports of the function before this one
		owners[f.Name()] = portOf{name, 1 + before}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "ports", "*", "gid_attrs", "ndevs", "*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(f)))))
		if i := strings.TrimSpace(string(b)); err == nil && i != "" {
			owners[i] = portOf{name, n}
		}
	}
}
