package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// Port is the wire of simulated devices, which a guest reaches by a port of virtio-serial, and a
// program below rdmasim exec by a socket.
type Port struct {
	*remotewire.Client
	sys     string
	devices []string
	before  string // what sysfs says of their ports
	changed bool   // links, or what the subnet manager gives
}

// FindPort is the socket or the device file of the wire, empty where this program has none. sys is
// /sys.
func FindPort(sys string) string {
	if path := os.Getenv(remotewire.SocketEnv); path != "" {
		return path
	}
	names, err := filepath.Glob(filepath.Join(sys, "class/virtio-ports/*/name"))
	if err != nil {
		return ""
	}
	for _, n := range names {
		if b, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(b)) == remotewire.PortName {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(n)))
		}
	}
	return ""
}

// OpenPort begins a conversation about the wire between devices of these names.
func OpenPort(file, sys string, devices []string) (*Port, error) {
	var guids []uint64
	for _, d := range devices {
		g, err := nodeGUID(sys, d)
		if err != nil {
			return nil, fmt.Errorf("wire: %w", err)
		}
		guids = append(guids, g)
	}
	f, err := connect(file)
	if err != nil {
		return nil, fmt.Errorf("wire: the port of the simulated wire: %w", err)
	}
	c, err := remotewire.New(f, guids)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Port{Client: c, sys: sys, devices: devices, before: ports(sys, devices)}, nil
}

// connect opens a socket or a device file.
func connect(file string) (io.ReadWriteCloser, error) {
	if st, err := os.Stat(file); err == nil && st.Mode().Type() == os.ModeSocket {
		return net.Dial("unix", file)
	}
	return os.OpenFile(file, os.O_RDWR, 0)
}

// ports is what sysfs says of the first port of each device.
func ports(sys string, devices []string) string {
	var all strings.Builder
	for _, d := range devices {
		for _, what := range []string{"state", "lid", "sm_lid", "gids/0", "pkeys/0", "pkeys/1"} {
			b, _ := os.ReadFile(filepath.Join(sys, "class/infiniband", d, "ports/1", what)) // RoCE has not all of them
			all.Write(b)
		}
	}
	return all.String()
}

// SetLink takes the link of a host's only port down or up.
func (p *Port) SetLink(t verbs.Thread, host, port int, up bool) error {
	p.changed = true
	return p.Client.SetLink(t, host, port, up)
}

// ConfigureSubnet has the subnet manager give something else to the ports.
func (p *Port) ConfigureSubnet(t verbs.Thread, s verbs.SubnetConfig) error {
	p.changed = true
	return p.Client.ConfigureSubnet(t, s)
}

// What the kernel takes at most to see that ports are as before, and afterwards to tell programs.
const (
	undone = 30 * time.Second
	told   = 300 * time.Millisecond
)

// Close undoes what was changed. The next case must not get the events of that, so it waits until
// the kernel has seen it.
func (p *Port) Close() error {
	if !p.changed {
		return p.Client.Close()
	}
	err := p.Reset()
	for end := time.Now().Add(undone); err == nil && ports(p.sys, p.devices) != p.before; time.Sleep(told / 10) {
		if time.Now().After(end) {
			err = fmt.Errorf("wire: %v after links or subnet were put back, the ports of %s are not as before", undone, strings.Join(p.devices, " and "))
		}
	}
	time.Sleep(told)
	return errors.Join(err, p.Client.Close())
}

// nodeGUID is that of a device, as the kernel writes it: 0002:c903:0000:0101.
func nodeGUID(sys, device string) (uint64, error) {
	path := filepath.Join(sys, "class/infiniband", device, "node_guid")
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	g, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimSpace(string(b)), ":", ""), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// ErrPlan says where the faults of a file belong when the wire is simulated.
var ErrPlan = errors.New("faults of frames and links of a simulated wire: give the file to rdmasim vm or rdmasim pci (--fault); rdmasim exec takes no such file")

// Plan refuses the faults of a file.
func (*Port) Plan(*fault.Plan, [2]string) error { return ErrPlan }
