//go:build linux && amd64

package exec

import (
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/pci"
)

// bars is where the registers of the first device are, of others behind them. Nothing is there that
// a program could map.
const bars = 1 << 41

// pciFunction is what the files say of a device's PCI function. It is near all processors, and on
// no node of NUMA: programs run on this machine, whose memory the device reaches equally well
// everywhere.
func (m *machine) pciFunction(k int, h *hostFacts) tree.PCI {
	size := m.devs[k].hca.BAR0Size()
	at := bars + uint64(k)*size
	l := pci.LinkOf(m.prof.PCIe.Bandwidth)
	return tree.PCI{
		Address: fmt.Sprintf("%04x:%02x:00.0", h.domain, k+1), Config: pci.ConfigSpace(m.prof, at, size), BAR: at, Size: size,
		Speed: fmt.Sprintf("%d.0 GT/s PCIe", l.GT()), Lanes: l.Lanes, CPUs: h.cpus, CPUList: h.cpuList,
	}
}

// netInterface is what the files say of a device's network interface.
func (m *machine) netInterface(k int) tree.Net {
	i := m.ownInterfaces()[k]
	n := tree.Net{Name: i.Name, Address: i.MAC.String(), MTU: m.prof.Kernel.NetMTU, Mbps: m.prof.Link.Bandwidth / 1e6, IPoIB: m.net.InfiniBand()}
	if m.ownNetwork {
		n.Index, n.MTU, n.IPoIB = i.Index, defaultMTU, false
	}
	return n
}

// defaultMTU is that of an interface that the kernel has made.
const defaultMTU = 1500

// hostFacts is what files of devices say of this machine.
type hostFacts struct {
	domain        int    // of PCI, which no function of the machine has
	cpus, cpuList string // online processors, as sysfs has them
}

// hostFiles reads the facts.
func hostFiles() *hostFacts {
	h := &hostFacts{domain: 1, cpus: "1", cpuList: "0"}
	used := map[int]bool{}
	for _, dir := range []string{"/sys/bus/pci/devices", "/sys/devices"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			domain, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "pci"), ":")
			if n, err := strconv.ParseUint(domain, 16, 32); err == nil {
				used[int(n)] = true
			}
		}
	}
	for used[h.domain] {
		h.domain++
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if mask, ok := cpuMask(strings.TrimSpace(string(online))); err == nil && ok {
		h.cpus, h.cpuList = mask, strings.TrimSpace(string(online))
	}
	return h
}

// maxCPUs is above what kernels are built for.
const maxCPUs = 1 << 16

// cpuMask is a list of processors (0-3,8) as the mask that local_cpus has: hexadecimal, in groups
// of 32 bits. The kernel's has leading zeros for processors that the machine could have.
func cpuMask(list string) (string, bool) {
	set := new(big.Int)
	for _, r := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || a < 0 || b < a || b >= maxCPUs {
			return "", false
		}
		for ; a <= b; a++ {
			set.SetBit(set, a, 1)
		}
	}
	digits := set.Text(16)
	var groups []string
	for ; len(digits) > 8; digits = digits[:len(digits)-8] {
		groups = append([]string{digits[len(digits)-8:]}, groups...)
	}
	return strings.Join(append([]string{digits}, groups...), ","), true
}
