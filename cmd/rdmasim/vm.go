package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/attach/pci"
	"github.com/rdmasim/rdmasim/attach/vm"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

func vmCommand() *cobra.Command {
	var f adapterFlags
	var guest vm.Config
	c := &cobra.Command{
		Use:   "vm [flags] -- COMMAND ARGS...",
		Short: "Run a command in a guest whose Linux kernel drives the simulated adapter",
		Long: `Boots a Debian kernel under QEMU with simulated adapters as PCI devices, which the kernel's
unmodified mlx5_core and mlx5_ib drive. The command (by default a shell) runs in the guest, in
your current folder, which is mounted there. The guest sees all files of this machine; what it
writes outside that folder is discarded. It needs no root, card or support for virtual
machines: the guest is emulated. The first run downloads a kernel and, if QEMU is older than
10.1, a QEMU. The exit status is the command's.`,
		Example: `  rdmasim vm -- ibv_devinfo
  rdmasim vm --profile connectx-5-ib --functions 2 -- sh -c 'ibv_rc_pingpong -d mlx5_0 -c & sleep 2; ibv_rc_pingpong -d mlx5_1 -c localhost'
  rdmasim vm --kernel 6.1 --dmesg boot.log -- true`,
		Args: func(c *cobra.Command, args []string) error {
			if f := c.Flags().Lookup("blueflame"); f.Changed && len(args) > 0 {
				if _, err := time.ParseDuration(args[0]); err == nil {
					return fmt.Errorf("vm: the time of --blueflame follows an equals sign: --blueflame=%s", args[0])
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			guest.Args, guest.Stdout, guest.Stderr = args, os.Stdout, os.Stderr
			if err := os.Setenv(commands.GuestVariable, commands.UpTo(os.Args, len(args))); err != nil {
				return err
			}
			if err := checkGuest(c, &guest); err != nil {
				return &experiment.UsageError{Err: fmt.Errorf("vm: %w", err)}
			}
			if len(guest.Sockets) > 0 {
				return runGuest(c.Context(), &guest)
			}
			cfg, err := f.config(c, outfile.Named{Flag: "--dmesg", Path: guest.Dmesg})
			if err != nil {
				return err
			}
			return runBoth(c, cfg, &guest)
		},
	}
	f.add(c)
	s := c.Flags()
	s.SetInterspersed(false)
	s.StringArrayVar(&guest.Sockets, "connect", nil, "use the function that a running rdmasim pci offers on this `SOCKET`, in place of functions of its own (can be repeated)")
	s.StringVar(&guest.Kernel, "kernel", "6.12", "`KERNEL` by its series, such as 6.1; newest is the newest that Debian has; or your own: a package ./linux-image-*.deb, or a folder with boot/vmlinuz-* and lib/modules")
	s.StringVar(&guest.UserSpace, "root", "", "root of the guest: a `DIR`, or newest, for rdma-core and tools of the newest Debian (default: the root of this machine)")
	s.StringVar(&guest.Folder, "folder", "", "`DIR` that the guest may write to (default: the current one)")
	s.BoolVar(&guest.Net, "net", false, "give the guest QEMU's user network, in which this machine is 10.0.2.2")
	s.StringSliceVar(&guest.Forward, "forward", nil, "forward this TCP `PORT` of the local machine to the guest (implies --net; can be repeated)")
	s.StringVar(&guest.Memory, "memory", "2G", "memory of the guest")
	s.BoolVar(&guest.IP, "ip", false, "load IPoIB and give each function's InfiniBand interface an address: 10.9.0.1 for mlx5_0, and so on")
	s.DurationVar(&guest.Timeout, "timeout", 2*time.Hour, "end the guest after this time")
	s.StringVar(&guest.Dmesg, "dmesg", "", "write the log of the guest's kernel to this `FILE`")
	s.StringVar(&guest.Cache, "cache", os.Getenv("RDMASIM_VM_CACHE"), "`DIR` for kernels and QEMU (default: $RDMASIM_VM_CACHE, or rdmasim/vm in the cache folder of the user)")
	return c
}

// checkGuest refuses what cannot be, before anything is downloaded or booted.
func checkGuest(c *cobra.Command, guest *vm.Config) error {
	if err := input.NamesGiven(c.Flags(), "pcap", "fault", "dmesg", "folder", "cache"); err != nil {
		return err
	}
	if err := guest.Check(); err != nil {
		return err
	}
	if len(guest.Sockets) > 0 {
		for _, name := range []string{"functions", "wire", "profile", "seed", "pcap", "pcap-limit", "fault", "blueflame", "verbose"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s is for the process that has the adapters: give it to the rdmasim pci of --connect", name)
			}
		}
	}
	if err := outfile.NotStandard(outfile.Named{Flag: "--dmesg", Path: guest.Dmesg}); err != nil {
		return err
	}
	if guest.Dmesg != "" {
		return outfile.Check(c.Context(), guest.Dmesg)
	}
	return nil
}

// runBoth boots a guest on adapters of this process.
func runBoth(c *cobra.Command, cfg *pci.Config, guest *vm.Config) error {
	dir, err := outfile.TempDir("rdmasim-vm")
	if err != nil {
		return &experiment.UsageError{Err: fmt.Errorf("vm: %w", err)}
	}
	defer func() { _ = dir.Remove() }()
	cfg.Socket = filepath.Join(dir.Path, "mlx5")
	cfg.Tester = filepath.Join(dir.Path, "wire")
	guest.Wire = cfg.Tester
	cfg.Logf = func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "rdmasim vm: "+format+"\n", a...) }
	if guest.Sockets, err = cfg.Sockets(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- pci.Run(ctx, cfg, func([]string) { close(ready) })
		cancel() // a guest without its adapters would only wait
	}()
	var program error
	select {
	case <-ready:
		program = runGuest(ctx, guest)
	case <-ctx.Done():
	}
	cancel()
	if err := pciError("vm", <-served); err != nil {
		return err
	}
	return cmp.Or(program, c.Context().Err())
}

func runGuest(ctx context.Context, guest *vm.Config) error {
	status, err := vm.Run(ctx, guest)
	switch {
	case err != nil:
		return fmt.Errorf("vm: %w", err)
	case status != 0:
		return programStatus(status)
	}
	return nil
}
