//go:build !hw

package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/target/hardware"
)

// builtForHardware says that this program has the target hw.
const builtForHardware = false

// hwCommands returns the command of the agent, which conform-hw carries out in place of this
// program.
func hwCommands() []*cobra.Command {
	return []*cobra.Command{newAgent(func(*cobra.Command, *agentOptions) error {
		program, err := workerCommand("hw")
		if err != nil {
			return err
		}
		return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	})}
}

// simulatedPeer refuses: the peer is a part of conform-hw.
func simulatedPeer(string, uint64) (func(hardware.Device) (hardware.Simulated, error), error) {
	return nil, errors.New("this program was built without the tag hw")
}
