//go:build hw

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/hw/mlx5"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// perfOnDevice runs one end on a device of this machine.
func perfOnDevice(c *cobra.Command, f *perfFlags, o *perf.Options, stored *comparison) (err error) {
	setup, err := mlx5.ChooseOne(mlx5.Config{Device: o.Device, Port: o.IBPort, GIDIndex: o.GIDIndex})
	if err != nil {
		return perfFailed(c, "perf", &perf.StepError{Step: "device", Err: err, Words: " Unable to find the Infiniband/RoCE device\n"})
	}
	report, err := openPerfReport(c, o)
	if err != nil {
		return err
	}
	defer func() { err = withLoss(c, err, report.finish()) }()
	env := &perf.Env{Out: stored.tee(c.OutOrStdout()), Err: c.ErrOrStderr(), OldPost: true, Random: rand.Uint32, WriteJSON: report.write, Note: perfNote(c),
		Interrupted: ended(c, o), Connect: func() (perf.Channel, error) { return channelTo(c.Context(), o) },
		Server: func(verbs.Thread) (netip.Addr, error) { return perf.Lookup(c.Context(), o) }}
	for k, v := range o.Environment() {
		if err := os.Setenv(k, v); err != nil { // also for C
			return err
		}
	}
	tb := mlx5.New(setup)
	var bed *record.Testbed
	if f.explain {
		bed = record.New(tb)
		bed.CountOnly()
		env.Steps = &perf.Steps{}
		env.Steps.Parsed()
		env.Calls = counts(bed, "main")
	}
	var failure error
	err = tb.Run(0, func(t verbs.Thread) {
		if bed != nil {
			t = bed.Thread(t)
		}
		failure = perf.New(o, env).Run(t)
	})
	err = errors.Join(err, tb.Close())
	if f.explain {
		end := "client"
		if o.Host == "" {
			end = "server"
		}
		err = errors.Join(err, env.Steps.Write(c.OutOrStdout(), end))
	}
	switch {
	case failure != nil && c.Context().Err() != nil:
		return fmt.Errorf("perf: %w: %w", outfile.ErrInterrupted, failure)
	case failure != nil:
		return perfFailed(c, "perf", failure)
	case err != nil:
		return fmt.Errorf("perf: %w", err)
	}
	return stored.print(c.OutOrStdout(), o.Device)
}

// channelTo connects to the server, or waits for a client. A signal ends both.
func channelTo(ctx context.Context, o *perf.Options) (perf.Channel, error) {
	var ch perf.Channel
	if o.Host != "" {
		var err error
		if ch, err = perf.Dial(ctx, o); err != nil {
			return nil, err
		}
	} else {
		accept, stop, err := perf.Listen(o)
		if err != nil {
			return nil, err
		}
		defer context.AfterFunc(ctx, stop)()
		if ch, err = accept(); err != nil {
			return nil, err
		}
	}
	return endedBySignal(ctx, o, ch), nil
}
