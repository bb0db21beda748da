package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/attach/pci"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/sim/profile"
)

func pciCommand() *cobra.Command {
	var f adapterFlags
	c := &cobra.Command{
		Use:   "pci --socket PATH",
		Short: "Give virtual machines the simulated adapter as a PCI device",
		Long: `Offers simulated adapters to virtual machines as PCI devices, over vfio-user. QEMU 10.1 or
later connects to the socket, and the guest's own mlx5_core and mlx5_ib drive the device,
unmodified. With several functions each has a socket of its own, PATH.0, PATH.1 and so on.
It prints the options for QEMU. SIGINT or SIGTERM ends the session and disconnects the guests.
rdmasim vm also boots the guest.`,
		Args: commands.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.config(c, outfile.Named{Flag: "--socket", Path: f.cfg.Socket}, outfile.Named{Flag: "--tester", Path: f.cfg.Tester})
			if err != nil {
				return err
			}
			cfg.Logf = func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "rdmasim pci: "+format+"\n", a...) }
			return pciError("pci", pci.Run(c.Context(), cfg, func(options []string) {
				cfg.Logf("QEMU 10.1 or later has the adapter with these options (size: the -m of your machine):")
				for _, o := range options {
					fmt.Fprintln(c.ErrOrStderr(), "  "+o)
				}
				cfg.Logf("waiting for guests; an interrupt ends the session")
			}))
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.cfg.Socket, "socket", "", "`PATH` of the socket to which QEMU connects (required)")
	c.Flags().StringVar(&f.cfg.Tester, "tester", "", "let a guest watch and disturb the wire, by a port of virtio-serial that QEMU connects to a socket at this `PATH`")
	return c
}

// adapterFlags say what the adapters of a guest are.
type adapterFlags struct {
	cfg                pci.Config
	name, faults, wire string
	flags              *pflag.FlagSet
}

func (f *adapterFlags) add(c *cobra.Command) {
	s := c.Flags()
	f.flags = s
	s.IntVar(&f.cfg.Functions, "functions", 1, "number of PCI functions; a switch joins them (two on Ethernet: a cable)")
	s.StringVar(&f.wire, "wire", "", "join the functions with an `ETHERNET`: dgram:LOCAL-REMOTE (frames in UDP datagrams, as QEMU's netdev dgram has them), tap:NAME (docs/multihost.md)")
	s.StringVar(&f.name, "profile", profile.Default, profileHelp)
	s.Uint64Var(&f.cfg.Seed, "seed", 1, "seed of the device's random choices")
	s.StringVar(&f.cfg.Pcap, "pcap", "", "write the frames to this pcapng `FILE`, with virtual time in nanoseconds")
	input.SizeVar(s, &f.cfg.PcapLimit, "pcap-limit", 64<<20, "end the capture after this `SIZE` of frames; 0: no limit")
	s.StringVar(&f.faults, "fault", "", "inject the faults on the wire of this YAML `FILE` (docs/wire.md)")
	s.DurationVar(&f.cfg.BlueFlame, "blueflame", 0, "offer BlueFlame: hold the stores to a register for up to this `DURATION` (default 1ms), until a push is whole; doorbells are delayed by as much")
	s.Lookup("blueflame").NoOptDefVal = "1ms"
	s.BoolVarP(&f.cfg.Verbose, "verbose", "v", false, "print a line for each command of the driver")
}

// config reads the files that the flags name. Outputs are those beside the capture.
func (f *adapterFlags) config(c *cobra.Command, outputs ...outfile.Named) (*pci.Config, error) {
	outputs = append(outputs, outfile.Named{Flag: "--pcap", Path: f.cfg.Pcap})
	err := input.Needs(f.flags, "pcap-limit", "pcap")
	if err == nil {
		err = outfile.Distinct(outputs, []outfile.Named{{Flag: "--fault", Path: f.faults}})
	}
	if err != nil {
		return nil, &experiment.UsageError{Err: err}
	}
	if f.cfg.Profile, err = profile.Load(f.name); err != nil {
		return nil, &experiment.UsageError{Err: err}
	}
	noteTiming(c, c.Name(), f.cfg.Profile)
	if f.cfg.Faults, err = faultFile(c, f.faults); err != nil {
		return nil, err
	}
	if f.flags.Changed("wire") {
		p, err := wire.ParseEthernet(f.wire)
		if err != nil {
			hint := ""
			if c.Flags().Lookup("tester") != nil {
				hint = "; a socket by which a guest watches the wire is --tester PATH"
			}
			return nil, &experiment.UsageError{Err: fmt.Errorf("%s: --wire %w%s", c.Name(), err, hint)}
		}
		f.cfg.Wire = &p
	}
	return &f.cfg, nil
}

func pciError(command string, err error) error {
	var bad *pci.UsageError
	switch {
	case errors.As(err, &bad):
		return &experiment.UsageError{Err: fmt.Errorf("%s: %w", command, err)}
	case err != nil:
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
