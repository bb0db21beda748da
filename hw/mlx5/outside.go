//go:build hw

package mlx5

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// What a tester changes from outside the programs is changed with iproute2's commands, as an
// administrator does it.

var (
	_ verbs.AddressControl  = (*Testbed)(nil)
	_ verbs.ResourceCounter = (*Testbed)(nil)
	_ verbs.DeviceRemover   = (*Testbed)(nil)
)

// node of a host that is on this machine.
func (tb *Testbed) node(host int) (Node, error) {
	if host < 0 || host >= len(tb.setup.nodes) {
		return Node{}, fmt.Errorf("host %d: %w", host, syscall.ENODEV)
	}
	n := tb.setup.nodes[host]
	if n.agent != "" {
		return Node{}, fmt.Errorf("host %d is on the machine of an agent: %w", host, syscall.EOPNOTSUPP)
	}
	return n, nil
}

// interfaceOf is the network interface of a node's GID.
func interfaceOf(n Node) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", n.Device, n.Port, n.GIDIndex))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// address runs `ip addr` on a host's interface.
func (tb *Testbed) address(t verbs.Thread, host int, verb string, ip netip.Addr) error {
	defer enterCall(t, "ip addr "+verb).leaveCall()
	n, err := tb.node(host)
	if err != nil {
		return err
	}
	dev, err := interfaceOf(n)
	if err != nil {
		return err
	}
	_, err = iproute("ip", "addr", verb, netip.PrefixFrom(ip, ip.BitLen()).String(), "dev", dev)
	return err
}

// AddAddress gives the interface of a host's device an address.
func (tb *Testbed) AddAddress(t verbs.Thread, host int, ip netip.Addr) error {
	if done, err := tb.benchAddress(host, ip, true); done {
		return err
	}
	return tb.address(t, host, "add", ip)
}

// RemoveAddress removes an address.
func (tb *Testbed) RemoveAddress(t verbs.Thread, host int, ip netip.Addr) error {
	if done, err := tb.benchAddress(host, ip, false); done {
		return err
	}
	return tb.address(t, host, "del", ip)
}

// ResourceCounts is `rdma resource show` of a host's device.
func (tb *Testbed) ResourceCounts(t verbs.Thread, host int) (map[string]int, error) {
	defer enterCall(t, "rdma resource show").leaveCall()
	n, err := tb.node(host)
	if err != nil {
		return nil, err
	}
	return resourceCounts(n.Device)
}

func resourceCounts(device string) (map[string]int, error) {
	out, err := iproute("rdma", "-j", "resource", "show")
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("rdma resource show: %w", err)
	}
	for _, d := range all {
		if d["ifname"] != device {
			continue
		}
		counts := map[string]int{}
		for kind, v := range d {
			if n, ok := v.(float64); ok && kind != "ifindex" {
				counts[kind] = int(n)
			}
		}
		return counts, nil
	}
	return nil, fmt.Errorf("rdma resource show: no %s: %w", device, syscall.ENODEV)
}

// iproute runs a command of iproute2. The error holds its standard error.
func iproute(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// cannotRemove says why no device of this target can be removed.
const cannotRemove = "a card that is unbound would be missing for the rest of the run, and Soft-RoCE cannot be removed while a program has it open: its driver lacks disassociate_ucontext, so the kernel waits until the last program has closed it"

// RemoveDevice is refused.
func (tb *Testbed) RemoveDevice(verbs.Thread, int, string) error {
	return fmt.Errorf("remove a device: %s: %w", cannotRemove, syscall.EOPNOTSUPP)
}
