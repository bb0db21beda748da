package wire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// Port is the wire of simulated devices, which a guest reaches by a port of virtio-serial.
type Port struct{ *remotewire.Client }

// FindPort is the device file of the port, empty where this machine has none. sys is /sys.
func FindPort(sys string) string {
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
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("wire: the port of the simulated wire: %w", err)
	}
	c, err := remotewire.New(f, guids)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Port{c}, nil
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
var ErrPlan = errors.New("faults of frames and links in a guest: give the file to rdmasim vm or rdmasim pci (--fault)")

// Plan refuses the faults of a file.
func (*Port) Plan(*fault.Plan, [2]string) error { return ErrPlan }
