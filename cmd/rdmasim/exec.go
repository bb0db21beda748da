package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/attach/exec"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// programStatus is the exit status of a program that exec ran.
type programStatus int

func (s programStatus) Error() string { return fmt.Sprintf("the program ended with status %d", int(s)) }

func execCommand() *cobra.Command {
	var cfg exec.Config
	var name, uar, queues, memory, faults, loss string
	var wires, allow []string
	var verbose, refused bool
	odp := true
	c := &cobra.Command{
		Use:   "exec [flags] -- PROGRAM ARGS...",
		Short: "Run unmodified RDMA programs on the simulated adapter",
		Long: `Runs a program and every process that it starts, with simulated adapters mlx5_0, mlx5_1,
... in place of real ones. The program's own libibverbs and libmlx5 drive them, unmodified.
It needs no RDMA in the kernel and no privilege. The exit status is the program's, or 2 if
the program cannot be started.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := input.Alone(c.Flags(), "refused"); err != nil {
				return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
			}
			if refused && len(args) > 0 {
				return &experiment.UsageError{Err: errors.New("exec: --refused prints a list and runs no program: leave the program out, or the flag")}
			}
			if refused {
				return exec.PrintRefused(c.OutOrStdout())
			}
			p, err := profile.Load(name)
			if err != nil {
				return &experiment.UsageError{Err: err}
			}
			switch uar {
			case "static", "dynamic":
				cfg.StaticUARs = uar == "static"
			default:
				return &experiment.UsageError{Err: fmt.Errorf("--uar %q is neither static nor dynamic%s", uar, input.Suggest(uar, []string{"static", "dynamic"}))}
			}
			switch queues {
			case "shared", "copied":
				cfg.CopyQueues = queues == "copied"
			default:
				return &experiment.UsageError{Err: fmt.Errorf("--queues %q is neither shared nor copied%s", queues, input.Suggest(queues, []string{"shared", "copied"}))}
			}
			if verbose { // exec says by itself how long a reader is waited for
				stderr := plain.NewWriter(os.Stderr)
				cfg.Logf = func(format string, a ...any) { fmt.Fprintf(stderr, "rdmasim exec: "+format+"\n", a...) }
			}
			if cfg.Grace <= 0 {
				return &experiment.UsageError{Err: fmt.Errorf("--grace %v: a time above 0 is needed, such as 5s", cfg.Grace)}
			}
			if cfg.LimitObjects <= 0 || cfg.LimitFiles <= 0 {
				return &experiment.UsageError{Err: errors.New("--limit-objects and --limit-files: a number above 0 is needed")}
			}
			if memory != "" {
				if cfg.LimitMemory, err = input.ParseSize(memory); err != nil || cfg.LimitMemory == 0 {
					return &experiment.UsageError{Err: fmt.Errorf("--limit-memory %q: a size above 0 is needed, such as 8GiB", memory)}
				}
			}
			if cfg.Faults, err = readFaults(c, faults, loss); err != nil {
				return err
			}
			if err := readWire(c, &cfg, wires, allow); err != nil {
				return err
			}
			if cfg.Socket != "" && cfg.Guests == 0 {
				return &experiment.UsageError{Err: errors.New("exec: --socket is for guests: give their number with --guests")}
			}
			if err := errors.Join(input.NamesGiven(c.Flags(), "pcap", "trace", "uar-log", "counters-file", "fault"), input.Needs(c.Flags(), "pcap-limit", "pcap")); err != nil {
				return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
			}
			if err := outfile.Distinct([]outfile.Named{{Flag: "--pcap", Path: cfg.Pcap}, {Flag: "--trace", Path: cfg.Trace}, {Flag: "--uar-log", Path: cfg.UARLog}, {Flag: "--counters-file", Path: cfg.Counters}, {Flag: "--socket", Path: cfg.Socket}}, []outfile.Named{{Flag: "--fault", Path: faults}}); err != nil {
				return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
			}
			if !exec.Nested() { // otherwise the session is that of another command
				if err := os.Setenv(commands.SessionVariable, commands.UpTo(os.Args, len(args))); err != nil {
					return err
				}
			}
			cfg.Args, cfg.Profile, cfg.NoODP = args, p, !odp
			noteTiming(c, "exec", p)
			status, err := exec.Run(c.Context(), &cfg)
			var bad *exec.UsageError
			switch {
			case errors.As(err, &bad):
				return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
			case err != nil:
				return fmt.Errorf("exec: %w", err)
			case status != 0:
				return programStatus(status)
			}
			return nil
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&name, "profile", profile.Default, profileHelp)
	f.IntVar(&cfg.Devices, "devices", 1, "number of adapters; a cable joins two, a switch joins more")
	f.IntVar(&cfg.Guests, "guests", 0, "number of functions for virtual machines on the same network (rdmasim vm --connect)")
	f.StringVar(&cfg.Socket, "socket", "", "`PATH` of the socket of the guest's function; several have PATH.0, PATH.1 and so on")
	f.StringSliceVar(&wires, "wire", nil, "join the device with those of other machines at this `ADDRESS`, by which peers find it: udp:192.0.2.1 is RoCE v2 on UDP port 4791 of that address of this machine, dgram:LOCAL-REMOTE@IP (frames in UDP datagrams, as QEMU has them) and tap:NAME@IP are on an Ethernet (docs/multihost.md)")
	f.IntVar(&cfg.WireMTU, "mtu", 0, mtuHelp)
	f.StringSliceVar(&allow, "allow", nil, "with --wire: take datagrams only from this `NETWORK`, such as 192.0.2.0/24, or address, and send only there; may be repeated")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the device's random choices")
	f.StringVar(&cfg.Pcap, "pcap", "", "write the frames to this pcapng `FILE`, with virtual time in nanoseconds")
	input.SizeVar(f, &cfg.PcapLimit, "pcap-limit", 64<<20, "end the capture after this `SIZE` of frames; 0: no limit")
	f.StringVar(&faults, "fault", "", "inject the faults of this YAML `FILE` (docs/wire.md): on the wire, links down, devices removed, processes killed")
	f.StringVar(&loss, "loss", "", "lose this `SHARE` of all frames at random, such as 0.1%")
	f.StringVar(&cfg.Trace, "trace", "", "write a timeline to this `FILE` (Trace Event JSON, for Perfetto)")
	f.StringVar(&cfg.UARLog, "uar-log", "", "write to this `FILE` a line for each store to a doorbell register: page, register, half, and what was written")
	f.StringVar(&cfg.Counters, "counters-file", "", "write the devices' counters at the end to this `FILE`, under their names in sysfs: as lines, or as JSON if it ends in .json")
	f.BoolVar(&cfg.Throttle, "throttle", false, "do not let virtual time run ahead of real time, so that bandwidth does not exceed the profile's")
	f.DurationVar(&cfg.Grace, "grace", 5*time.Second, "how long the program may take to end after SIGTERM, before it is killed with its children")
	f.IntVar(&cfg.LimitObjects, "limit-objects", 1<<15, "most objects (queue pairs, regions, ...) of one process; all processes together may have four times as many")
	f.IntVar(&cfg.LimitFiles, "limit-files", 1<<11, "most descriptors that exec opens for one process: two for a device file, one for each channel and each XRC domain with a file")
	f.StringVar(&memory, "limit-memory", "", "most memory registered at a time, as a `SIZE` such as 8GiB (default: the memory of this machine)")
	f.StringVar(&uar, "uar", "dynamic", "doorbell registers that the library gets: dynamic (a UAR page for each thread domain), or static (a table, as from kernels before 5.8)")
	f.StringVar(&queues, "queues", "shared", "memory of the queues: shared with the device where the library allows it, or copied")
	f.BoolVar(&odp, "odp", true, "on-demand paging, as far as the profile's device has it; without it no call that changes the memory of a program waits for the supervisor")
	f.BoolVarP(&verbose, "verbose", "v", false, "print why calls of the program are refused, and at the end what the session did")
	f.BoolVar(&refused, "refused", false, "list what programs cannot use, and what they see instead")
	f.BoolVar(&cfg.NoSubnetManager, "no-subnet-manager", false, "leave the ports of InfiniBand to a subnet manager among the programs (opensm)")
	f.BoolVar(&cfg.OwnNetwork, "own-network", false, "give the programs a network of their own, in which each device has an interface with its address (sim0, ...; on InfiniBand ib0, ...); they reach no other host by IP")
	f.BoolVar(&cfg.PathCalls, "path-calls", false, "as root, show the device files as to an ordinary user: by answering path calls, without mounts")
	return c
}

// readWire reads the addresses of --wire and --allow. There are as many devices as addresses.
func readWire(c *cobra.Command, cfg *exec.Config, wires, allow []string) error {
	for _, s := range wires {
		a, err := wire.ParsePlace(s)
		if err != nil {
			return &experiment.UsageError{Err: fmt.Errorf("exec: --wire %w", err)}
		}
		cfg.Wire = append(cfg.Wire, a)
	}
	for _, s := range allow {
		n, err := wire.ParseAllow(s)
		if err != nil {
			return &experiment.UsageError{Err: fmt.Errorf("exec: --allow %w", err)}
		}
		cfg.Allow = append(cfg.Allow, n)
	}
	if err := input.Needs(c.Flags(), "mtu", "wire"); err != nil {
		return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
	}
	for _, p := range cfg.Wire {
		if c.Flags().Changed("mtu") {
			if err := wire.CheckMTU(p, cfg.WireMTU); err != nil {
				return &experiment.UsageError{Err: fmt.Errorf("exec: %w", err)}
			}
		}
	}
	if len(wires) > 0 && !c.Flags().Changed("devices") {
		cfg.Devices = len(wires)
	}
	return nil
}

// readFaults is the plan of --fault and --loss, nil: there is none.
func readFaults(c *cobra.Command, name, loss string) (plan *fault.Plan, err error) {
	if plan, err = faultFile(c, name); err != nil || loss == "" {
		return plan, err
	}
	share, err := strconv.ParseFloat(strings.TrimSuffix(loss, "%"), 64)
	perMillion := math.Round(share * 1e4)
	if err != nil || !strings.HasSuffix(loss, "%") || !(perMillion >= 1 && perMillion <= 1e6) {
		return nil, &experiment.UsageError{Err: fmt.Errorf("--loss %q: a share from 0.0001%% to 100%% is needed, such as 0.1%%", loss)}
	}
	return exec.Loss(plan, uint32(perMillion)), nil
}

// faultFile reads the file of --fault; the name is empty without one.
func faultFile(c *cobra.Command, name string) (*fault.Plan, error) {
	if name == "" {
		return nil, nil
	}
	src, err := input.ReadFile(c.Context(), name)
	if err != nil {
		return nil, &experiment.UsageError{Err: fmt.Errorf("--fault: %w", err)}
	}
	plan, err := fault.Parse(name, src)
	if err != nil {
		return nil, &experiment.UsageError{Err: err}
	}
	return plan, nil
}
