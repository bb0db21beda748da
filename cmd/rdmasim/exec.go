package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/attach/exec"
	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// programStatus is the exit status of a program that exec ran.
type programStatus int

func (s programStatus) Error() string { return fmt.Sprintf("the program ended with status %d", int(s)) }

func execCommand() *cobra.Command {
	var cfg exec.Config
	var name, uar, queues string
	var verbose, refused bool
	c := &cobra.Command{
		Use:   "exec [flags] -- PROGRAM ARGS...",
		Short: "Run unmodified RDMA programs on the simulated adapter",
		Long: `Runs a program, and all that it starts, with simulated adapters mlx5_0, mlx5_1, ... in
place of real ones. The program's own libibverbs and libmlx5 drive them, unmodified; no
kernel support for RDMA and no privilege is needed. The exit status is the program's,
or 2 when it cannot be started.`,
		RunE: func(c *cobra.Command, args []string) error {
			if refused {
				return exec.PrintRefused(c.OutOrStdout())
			}
			p, err := profile.Load(name)
			if err != nil {
				return &experiment.UsageError{Err: err}
			}
			switch uar {
			case "static", "dynamic":
				cfg.DynamicUARs = uar == "dynamic"
			default:
				return &experiment.UsageError{Err: fmt.Errorf("--uar %q: static or dynamic%s", uar, input.Suggest(uar, []string{"static", "dynamic"}))}
			}
			switch queues {
			case "shared", "copied":
				cfg.CopyQueues = queues == "copied"
			default:
				return &experiment.UsageError{Err: fmt.Errorf("--queues %q: shared or copied%s", queues, input.Suggest(queues, []string{"shared", "copied"}))}
			}
			if verbose {
				cfg.Logf = func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "rdmasim exec: "+format+"\n", a...) }
			}
			cfg.Args, cfg.Profile = args, p
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
	f.StringVar(&name, "profile", profile.Default, "device and host profile")
	f.IntVar(&cfg.Devices, "devices", 1, "adapters: two are joined by a cable, more by a switch")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the device's draws")
	f.StringVar(&cfg.Pcap, "pcap", "", "write the frames to a pcapng file, virtual time in nanoseconds")
	f.StringVar(&cfg.Trace, "trace", "", "write a timeline (Trace Event JSON, opens in Perfetto)")
	f.StringVar(&cfg.UARLog, "uar-log", "", "write a line for each store to a doorbell register: page, register, half, and what was written")
	f.BoolVar(&cfg.Throttle, "throttle", false, "keep virtual time at real time, so that bandwidth is the profile's")
	f.StringVar(&uar, "uar", "static", "registers that the library gets: static, or dynamic (a page for each thread domain)")
	f.StringVar(&queues, "queues", "shared", "memory of queues: shared with the device where the library allows it, or copied")
	f.BoolVarP(&verbose, "verbose", "v", false, "say why calls of the program are refused")
	f.BoolVar(&refused, "refused", false, "list what programs do not get, and how they see it")
	f.BoolVar(&cfg.PathCalls, "path-calls", false, "show the device files by answering path calls, as without root, and not by mounts")
	return c
}
