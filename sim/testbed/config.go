// Package testbed puts hosts, devices and links together from one Config: a
// verbs.Testbed whose programs are coroutines on simulated cores. It is also the
// place for what a tester does from outside: captures, a log of register writes,
// faults of the bus, the rules of the wire, the end of processes.
//
// A program opens one with New(Default(p)), where p is from profile.Load, and runs its body in
// Testbed.Run.
package testbed

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Config describes a testbed. Default gives the usual one: two hosts with one
// device each, joined by a cable.
type Config struct {
	Seed uint64
	// Profile holds the parameters of all units: each host and device of a testbed has
	// the same. It is not changed.
	Profile *profile.Profile
	// OutOfBand is how long a message between a player and its controller takes, one
	// way, as over a socket of the management network.
	OutOfBand sim.Time
	// Hosts are in order; the devices of each are named mlx5_0, mlx5_1, ...
	Hosts []HostConfig
	// Switched joins all ports by a switch. Without it port k of an even host is
	// joined by a cable to port k of the host after it.
	Switched bool
	// Env is the environment of the main process.
	Env map[string]string
	// Lockstep makes programs yield at every Advance; the results have the same bytes.
	Lockstep bool
	// MaxEvents bounds the run (0: no bound).
	MaxEvents uint64
	// Interrupt, if not nil, is called from time to time; if it returns true, the run
	// ends early with sim.ErrInterrupted.
	Interrupt func() bool
	// Trace records a timeline in the engine's Spans.
	Trace bool
	// Pcap receives a pcapng capture of every port (nil: none).
	Pcap io.Writer
	// Capture takes the place of Pcap for a file of several runs, which the caller closes.
	Capture *pcap.Writer
	// PcapKeep bounds the bytes of frames in Pcap: only the last are kept (0: all). The file says
	// how many were left out.
	PcapKeep int
	// PcapName is a prefix of the interfaces' names in the capture, which tells the runs of a
	// file apart.
	PcapName string
	// Faults is what goes wrong on the wire, counted and timed from the start of the run
	// (nil: nothing).
	Faults *fault.Plan
	// Outside says where the cable of the only device leads (nil: to the testbed's hosts).
	Outside *Outside
	// Packets gives Ethernet ports queues for the packets of programs and flow steering.
	Packets bool
	// NoTap leaves out what watches and disturbs registers ("mmio log", "fault").
	NoTap bool
	// Broken and Wrap make a mutant of the testbed (sim/mutant): rules that its units
	// break, and what stands between them.
	Broken rule.Broken
	Wrap   Wrap
}

// HostConfig describes one machine.
type HostConfig struct {
	Name    string
	Cores   int
	Memory  uint64 // bytes
	Devices int
	// GPUs is the number of GPUs, each as the profile describes it.
	GPUs int
	// Resident bounds the physical memory behind lazy mappings, in bytes; 0: Memory is the only
	// bound, and swap is unlimited. With a bound, Swap is the size of the swap in bytes.
	Resident, Swap uint64
}

// Default returns the configuration of conform's testbed with the given profile: host0 and host1
// with one device each, joined by a cable.
func Default(p *profile.Profile) Config {
	return Config{Seed: 1, Profile: p, OutOfBand: 20 * sim.Microsecond, Hosts: []HostConfig{
		{Name: "host0", Cores: 32, Memory: 16 << 30, Devices: 1, GPUs: 1},
		{Name: "host1", Cores: 32, Memory: 16 << 30, Devices: 1, GPUs: 1},
	}}
}

// MostHosts is the largest number of hosts of a testbed.
const MostHosts = 1024

// Validate returns an error for a configuration that is impossible.
func (c *Config) Validate() error {
	p := c.Profile
	if p == nil {
		return fmt.Errorf("testbed: no profile: %w", syscall.EINVAL)
	}
	errs := []error{p.CPU.Validate(), p.PCIe.Validate(), p.Kernel.Validate(), p.Provider.Validate(), p.HCA.Check(), p.Link.Check(), p.GPU.Check()}
	if c.Switched {
		errs = append(errs, p.Switch.Check())
	}
	if c.OutOfBand <= 0 {
		errs = append(errs, fmt.Errorf("testbed: OutOfBand is %v, not positive", c.OutOfBand))
	}
	if len(c.Hosts) == 0 {
		errs = append(errs, fmt.Errorf("testbed: no hosts"))
	}
	if len(c.Hosts) > MostHosts {
		errs = append(errs, fmt.Errorf("testbed: %d hosts, at most %d", len(c.Hosts), MostHosts))
	}
	for i, h := range c.Hosts {
		if h.Name == "" || h.Cores < 1 || h.Memory == 0 || h.Devices < 0 || h.Devices > 100 || h.GPUs < 0 || h.GPUs > 16 {
			errs = append(errs, fmt.Errorf("testbed: host %d (%q): needs a name, a core, memory, at most 100 devices and 16 GPUs", i, h.Name))
		}
	}
	errs = append(errs, c.checkOutside())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	return nil
}
