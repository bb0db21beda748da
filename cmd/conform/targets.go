package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// hwHint says what conform --target=hw needs.
const hwHint = `target hw needs conform-hw, which is not beside conform, in $CONFORM_HW or in PATH.
Build it on the machine that has the device:
  apt-get install gcc libibverbs-dev ibverbs-providers
  make conform-hw, or CGO_ENABLED=1 go build -tags hw -o conform-hw ./cmd/conform`

// makeTarget makes the target of a worker.
func makeTarget(job harness.Job) (spec.Target, error) {
	switch job.Target {
	case "sim":
		return newSim(job)
	case "hw":
		return newHW(job)
	}
	return nil, fmt.Errorf("this conform has no target %q", job.Target)
}

// workerCommand is the program that runs cases of a target: this one, or for hardware
// the same main built with cgo.
func workerCommand(target string) (string, error) {
	if target != "hw" {
		return os.Executable()
	}
	if path := os.Getenv("CONFORM_HW"); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", usagef("$CONFORM_HW: %v", err)
		}
		return path, nil
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

// workerEnv keeps Go's own signals out of calls of the verbs library, which a program in
// another language does not have either.
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
