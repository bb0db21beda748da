// Package testbed puts hosts, devices and links together from one Config: a
// verbs.Testbed whose programs are coroutines on simulated cores.
package testbed

import (
	"fmt"
	"io"
	"syscall"
)

// Config describes a testbed. Default gives the usual one: two hosts with one
// device each, joined by a cable.
type Config struct {
	Seed uint64
	// Hosts, in order. Each device of host i is named mlx5_0, mlx5_1, ...
	Hosts []HostConfig
	// Switched joins all ports by a switch instead of pairing them by cables.
	Switched bool
	// Lockstep makes programs yield at every Advance; results are the same bytes.
	Lockstep bool
	// MaxEvents bounds the run (0: no bound).
	MaxEvents uint64
	// Trace records a timeline in the engine's Spans.
	Trace bool
	// Pcap receives a pcapng capture of every port (nil: none).
	Pcap io.Writer
	// MMIOLog makes the testbed's Log available; the log itself runs between Start
	// and Stop.
	MMIOLog bool
}

// HostConfig is one machine.
type HostConfig struct {
	Name    string
	Cores   int
	Memory  uint64 // bytes
	Devices int
}

// Default is the testbed of conform: host0 and host1, one device each.
func Default() Config {
	return Config{Seed: 1, MMIOLog: true, Hosts: []HostConfig{
		{Name: "host0", Cores: 16, Memory: 16 << 30, Devices: 1},
		{Name: "host1", Cores: 16, Memory: 16 << 30, Devices: 1},
	}}
}

// Validate reports the first impossible value.
func (c *Config) Validate() error {
	if len(c.Hosts) == 0 {
		return fmt.Errorf("testbed: no hosts: %w", syscall.EINVAL)
	}
	for i, h := range c.Hosts {
		if h.Name == "" || h.Cores < 1 || h.Memory == 0 || h.Devices < 0 {
			return fmt.Errorf("testbed: host %d (%q): needs a name, a core and memory: %w", i, h.Name, syscall.EINVAL)
		}
	}
	return nil
}
