package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/target/hardware"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/rlimit"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// hwHint says what to do when the worker of conform --target=hw is missing.
const hwHint = `target hw needs conform-hw, which is not beside conform, in $CONFORM_HW or in PATH.
Build it on the machine that has the device:
  apt-get install gcc libibverbs-dev ibverbs-providers
  make conform-hw, or CGO_ENABLED=1 go build -tags hw -o conform-hw ./cmd/conform`

// makeTarget makes the target of a worker.
func makeTarget(job harness.Job) (spec.Target, error) {
	var faults *fault.Plan
	if job.Faults != "" {
		var err error
		if faults, err = fault.Parse(job.FaultFile, []byte(job.Faults)); err != nil {
			return nil, err
		}
	}
	switch job.Target {
	case "sim":
		cfg := simulator.Config{Profile: job.Profile, ProfileText: job.ProfileText, Faults: faults}
		if job.Mutant != "" {
			m, err := mutant.Find(job.Mutant)
			if err != nil {
				return nil, err
			}
			cfg.Adjust = m.Break
		}
		return simulator.New(cfg)
	case "hw":
		cfg := hardware.Config{Device: job.Device, Port: job.Port, GIDIndex: job.GIDIndex, Wire: job.Wire,
			Peer: job.Peer, PeerKey: job.PeerKey, Wall: job.Wall, Faults: faults, Record: guestFile("fault") != "", Responder: job.Responder}
		if place, is := strings.CutPrefix(job.Peer, simulatedScheme); is {
			var err error
			if cfg.Simulated, err = simulatedPeer(place, job.Seed); err != nil {
				return nil, err
			}
			cfg.Peer = ""
		}
		return hardware.New(cfg)
	}
	return nil, fmt.Errorf("this conform has no target %q", job.Target)
}

// workerCommand is the program that runs the cases of a job.
func (j *job) workerCommand(ctx context.Context, stderr io.Writer) (string, error) {
	if j.mutant != "" {
		return mutants.Program(ctx, stderr)
	}
	return workerCommand(j.target)
}

// workerCommand returns the program that runs the cases of a target: this one, or for hardware the
// same program built with cgo.
func workerCommand(target string) (string, error) {
	if target != "hw" {
		return os.Executable()
	}
	return hwWorker(builtForHardware)
}

// hwWorker finds the program that runs cases on hardware. One that is built for it, under whatever
// name, is its own unless $CONFORM_HW names another.
func hwWorker(itself bool) (string, error) {
	if err := rlimit.CheckAddressSpace(rlimit.HardwareAddressSpace); err != nil {
		return "", usagef("target hw: %w", err)
	}
	if path := os.Getenv("CONFORM_HW"); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", usagef("$CONFORM_HW: %v", err)
		}
		return path, nil
	}
	if itself {
		return os.Executable()
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "conform-hw")
		if _, err := exec.LookPath(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("conform-hw")
	if err != nil {
		return "", usagef("%s", hwHint)
	}
	return path, nil
}

// workerEnv returns the environment of a worker. On hardware it keeps the signals of Go's scheduler
// out of calls of the verbs library, because they would interrupt its system calls.
func workerEnv(target string) []string {
	if target != "hw" {
		return nil
	}
	return append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
}

func newWorker() *cobra.Command {
	return &cobra.Command{Use: "worker", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return harness.Work(os.Stdin, makeTarget, conformance.Suite())
		}}
}
