//go:build !hw

package main

import (
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// builtForHardware says that this program has the target hw.
const builtForHardware = false

// hwCommands returns the command of the agent, which conform-hw carries out in place of this program.
func hwCommands() []*cobra.Command {
	return []*cobra.Command{newAgent(func(*cobra.Command, *agentOptions) error {
		program, err := workerCommand("hw")
		if err != nil {
			return err
		}
		return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	})}
}
