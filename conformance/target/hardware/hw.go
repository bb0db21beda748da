//go:build hw

package hardware

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/hw/mlx5"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

// target implements spec.Target, spec.Restarter and spec.Chooser.
type target struct {
	setup  *mlx5.Setup
	wall   time.Duration
	faults *fault.Plan
	last   *mlx5.Testbed
}

// New chooses the devices.
func New(cfg Config) (spec.Target, error) {
	c := mlx5.Config{Device: cfg.Device, Port: cfg.Port, GIDIndex: cfg.GIDIndex, Wire: cfg.Wire, Peer: cfg.Peer, Key: cfg.PeerKey}
	var far Simulated
	if cfg.Simulated != nil {
		c.Far = func(d mlx5.FarOf) (_ mlx5.Far, err error) {
			far, err = cfg.Simulated(Device(d))
			return far, err
		}
	}
	s, err := mlx5.Choose(c)
	if err != nil {
		return nil, err
	}
	if cfg.Faults != nil {
		if err := s.CheckFaults(cfg.Faults); err != nil {
			return nil, err
		}
	}
	if cfg.Record {
		s.Record()
	}
	t := &target{setup: s, wall: cfg.Wall, faults: cfg.Faults}
	if cfg.Responder {
		return newResponder(t, far)
	}
	return t, nil
}

// Player plays the part of another process and ends, where this program was started for
// that. Otherwise it does nothing.
func Player() {
	if len(os.Args) != 2 || os.Args[1] != PlayerArg {
		return
	}
	if err := mlx5.Play(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// NewTestbed makes a testbed of the chosen devices and begins the faults on it. The seed
// draws for the rules of the wire only.
func (t *target) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	t.last = mlx5.New(t.setup)
	if err := t.last.TakeWire(o.Needs, seed, t.faults); err != nil {
		return nil, err
	}
	if t.faults != nil {
		if err := t.last.ApplyFaults(t.faults); err != nil {
			return nil, errors.Join(err, t.last.Close())
		}
	}
	return bed{t.last, t.wall, t.setup.Emulated()}, nil
}

// NeedsRestart says that the last testbed left threads or open devices in this process.
func (t *target) NeedsRestart() bool { return t.last != nil && t.last.NeedsRestart() }

// Chosen names devices, ports and GIDs.
func (t *target) Chosen() string { return t.setup.Chosen() }

// bed ends a case a little before the limit in real time, so that the report says in which call it
// hangs. Deadlines of cases are for processors of our days: an emulated one has the whole limit.
type bed struct {
	*mlx5.Testbed
	wall     time.Duration
	emulated bool
}

func (b bed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	const margin = 10
	if most := b.wall - b.wall/margin; b.wall > 0 && (b.emulated || deadline > most) {
		deadline = most
	}
	if err := b.StartRecording(); err != nil {
		return err
	}
	return b.Testbed.Run(deadline, body)
}
