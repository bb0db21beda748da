// Package commands has what the command lines of both programs share.
package commands

import "github.com/spf13/cobra"

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
			c.Args, c.RunE = known, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}
