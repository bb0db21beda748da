//go:build !hw

package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// newHW has nothing to make: the hardware target is in conform-hw.
func newHW(harness.Job) (spec.Target, error) {
	return nil, errors.New("this worker was built without the tag hw: make conform-hw")
}

// hwCommands has the agent, which conform-hw carries out in our place.
func hwCommands() []*cobra.Command {
	return []*cobra.Command{newAgent(func(*cobra.Command, *agentOptions) error {
		program, err := workerCommand("hw")
		if err != nil {
			return err
		}
		return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	})}
}
