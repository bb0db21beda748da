//go:build hw

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/hw/agent"
	"github.com/rdmasim/rdmasim/hw/mlx5"
	"github.com/rdmasim/rdmasim/verbs"
)

// hardware is the target hw.
type hardware struct {
	setup  *mlx5.Setup
	wall   time.Duration
	faults *fault.Plan // of every testbed, or nil
	last   *mlx5.Testbed
}

func newHW(job harness.Job) (spec.Target, error) {
	s, err := mlx5.Choose(mlx5.Config{Device: job.Device, Port: job.Port, GIDIndex: job.GIDIndex, Wire: job.Wire, Peer: job.Peer, Key: job.PeerKey})
	if err != nil {
		return nil, err
	}
	h := &hardware{setup: s, wall: job.Wall}
	if job.Faults != "" {
		if h.faults, err = fault.Parse(job.FaultFile, []byte(job.Faults)); err == nil {
			err = s.CheckFaults(h.faults)
		}
	}
	return h, err
}

// NewTestbed makes a testbed of the chosen devices, on which what the file of faults says
// begins. Of it only the rules of the wire draw from the seed.
func (h *hardware) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	h.last = mlx5.New(h.setup)
	if err := h.last.TakeWire(o.Needs, seed, h.faults); err != nil {
		return nil, err
	}
	if h.faults != nil {
		if err := h.last.Befall(h.faults); err != nil {
			return nil, errors.Join(err, h.last.Close())
		}
	}
	return hwBed{h.last, h.wall}, nil
}

// Spent says that the last testbed left something in this process.
func (h *hardware) Spent() bool { return h.last != nil && h.last.Spent() }

// Chosen names devices, ports and GIDs.
func (h *hardware) Chosen() string { return h.setup.Chosen() }

// hwBed ends a case a little before the supervisor would kill its worker, so that the
// report says in which call it hung.
type hwBed struct {
	*mlx5.Testbed
	wall time.Duration
}

func (b hwBed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	const margin = 10
	if most := b.wall - b.wall/margin; b.wall > 0 && deadline > most {
		deadline = most
	}
	return b.Testbed.Run(deadline, body)
}

// hwCommands are the agent and the hidden command of players.
func hwCommands() []*cobra.Command {
	return []*cobra.Command{newAgent(serveAgent), {Use: mlx5.PlayerArg, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return mlx5.Play(os.Stdin, os.Stdout) }}}
}

func serveAgent(cmd *cobra.Command, o *agentOptions) error {
	var key *agent.Key
	var err error
	if o.key != "" {
		if key, err = agent.ReadKey(o.key); err != nil {
			return usagef("%w", err)
		}
	}
	log := func(format string, a ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "conform agent: "+format+"\n", a...) }
	server, chosen, err := mlx5.Agent(mlx5.Config{Device: o.device, Port: o.port, GIDIndex: o.gidIndex}, log)
	if err != nil {
		return usagef("%w", err)
	}
	l, err := agent.Listen(o.listen, key)
	if err != nil {
		return usagef("%w", err)
	}
	log("%s, on %s", chosen, l.Addr())
	if err := server.Serve(cmd.Context(), l); err != nil {
		return &status{exitFailed, err}
	}
	return nil
}
