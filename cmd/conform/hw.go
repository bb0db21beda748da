//go:build hw

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/hw/agent"
	"github.com/rdmasim/rdmasim/hw/mlx5"
)

// builtForHardware says that this program has the target hw.
const builtForHardware = true

// hwCommands returns the command of the agent and the hidden command of players.
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
	server.Player = withErrors(server.Player, cmd.ErrOrStderr())
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

// withErrors has players write their standard error to w, which makes it text: what a driver prints
// can hold what a client sent.
func withErrors(player func() *exec.Cmd, w io.Writer) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := player()
		cmd.Stderr = w
		return cmd
	}
}
