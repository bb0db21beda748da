package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/attach/pci"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

func pciCommand() *cobra.Command {
	var cfg pci.Config
	var name, faults string
	c := &cobra.Command{
		Use:   "pci --socket PATH",
		Short: "Give virtual machines the simulated adapter as a PCI device",
		Long: `Offers simulated adapters to virtual machines as PCI devices, over vfio-user. QEMU 10.1 or
later connects to the socket, and the guest's own mlx5_core and mlx5_ib drive the device,
unmodified. With several functions each has a socket of its own, PATH.0, PATH.1 and so on.
The options for QEMU are printed. The session ends with an interrupt or SIGTERM, which
disconnects the guests.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if cfg.Profile, err = profile.Load(name); err != nil {
				return &experiment.UsageError{Err: err}
			}
			if faults != "" {
				src, err := input.ReadFile(c.Context(), faults)
				if err != nil {
					return &experiment.UsageError{Err: fmt.Errorf("--fault: %w", err)}
				}
				if cfg.Faults, err = fault.Parse(faults, src); err != nil {
					return &experiment.UsageError{Err: err}
				}
			}
			cfg.Logf = func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "rdmasim pci: "+format+"\n", a...) }
			err = pci.Run(c.Context(), &cfg, func(options []string) {
				cfg.Logf("QEMU 10.1 or later has the adapter with these options (size: the -m of your machine):")
				for _, o := range options {
					fmt.Fprintln(c.ErrOrStderr(), "  "+o)
				}
				cfg.Logf("waiting for guests; an interrupt ends the session")
			})
			var bad *pci.UsageError
			switch {
			case errors.As(err, &bad):
				return &experiment.UsageError{Err: fmt.Errorf("pci: %w", err)}
			case err != nil:
				return fmt.Errorf("pci: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Socket, "socket", "", "`path` of the socket to which QEMU connects (required)")
	f.IntVar(&cfg.Functions, "functions", 1, "number of PCI functions; a cable joins two, a switch joins more")
	f.StringVar(&name, "profile", profile.Default, "profile of the device")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the device's random choices")
	f.StringVar(&cfg.Pcap, "pcap", "", "write the frames to this pcapng `file`, with virtual time in nanoseconds")
	f.Uint64Var(&cfg.PcapLimit, "pcap-limit", 64<<20, "leave out of the capture what comes after so many `bytes` of frames; 0: nothing")
	f.StringVar(&faults, "fault", "", "inject the faults on the wire of this YAML `file` (docs/wire.md)")
	f.BoolVarP(&cfg.Verbose, "verbose", "v", false, "print a line for each command of the driver")
	return c
}
