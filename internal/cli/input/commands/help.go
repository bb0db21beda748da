// Package commands has what the command lines of both programs share.
package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// knownShell refuses what is no shell that completion has a script for.
func knownShell(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, sub := range c.Commands() {
		shells = append(shells, sub.Name())
	}
	return fmt.Errorf("%s %s: shells are %s%s", c.Name(), args[0], strings.Join(shells, ", "), input.Suggest(args[0], shells))
}

// StrictHelp lets help and completion refuse what is no command. known judges the arguments behind a command.
func StrictHelp(root *cobra.Command, known cobra.PositionalArgs) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return known(about, rest)
			}
		case "completion":
			c.Args, c.RunE = knownShell, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}
