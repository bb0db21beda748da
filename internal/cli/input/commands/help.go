// Package commands has what the command lines of both programs share.
package commands

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	slices.Sort(shells)
	return fmt.Errorf("%s %s: shells are %s%s", c.Name(), args[0], strings.Join(shells, ", "), input.Suggest(args[0], shells))
}

// StrictHelp lets help and completion refuse what is no command. known judges the arguments behind
// a command.
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
			c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
				if about, rest, err := root.Find(args); err == nil && len(rest) == 0 {
					for _, sub := range about.Commands() {
						if !sub.Hidden { // topics too
							names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
						}
					}
				}
				return names, cobra.ShellCompDirectiveNoFileComp
			}
		case "completion":
			c.Args, c.RunE = knownShell, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// Commands stand in help in the order in which they are added: by use, not by name.
func init() { cobra.EnableCommandSorting = false }

// Topic makes the help of c and of what is below it a page of text alone: c is no command that does
// something.
func Topic(c *cobra.Command) { c.SetHelpTemplate("{{.Long}}\n") }

// UniformFlags gives the flags of all commands below root their place-holders, and one default
// each.
func UniformFlags(root *cobra.Command) {
	input.Placeholders(root.Flags())
	input.Placeholders(root.PersistentFlags())
	for _, c := range root.Commands() {
		UniformFlags(c)
	}
}

// placeholder is a word in capitals, or a pattern such as key=value or i/n.
var placeholder = regexp.MustCompile(`^(?:[A-Z][A-Z]*|[a-z]+=\S+|i/n)$`)

// several are flags with a value of another kind in different commands: --output is a folder of
// results or one file, --wire two interfaces or a socket, --program a path or the text of a
// program, --profile one profile or two.
var several = []string{"output", "wire", "program", "profile"}

// FaultsOfHelp lists the flags of all commands below the roots whose place-holder is missing or is
// not a word in capitals, or whose default is said twice, is empty or is a path of the machine, and
// the flags that have different place-holders in different commands. A test of each program holds
// it to nothing.
func FaultsOfHelp(roots ...*cobra.Command) (faults []string) {
	seen := map[string]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word, usage := pflag.UnquoteUsage(f)
			name := c.CommandPath() + " --" + f.Name
			if word != "" && !placeholder.MatchString(word) {
				faults = append(faults, fmt.Sprintf("%s: place-holder %q", name, word))
			}
			if was, ok := seen[f.Name]; ok && was != word && !slices.Contains(several, f.Name) {
				faults = append(faults, fmt.Sprintf("%s: place-holder %q, elsewhere %q", name, word, was))
			}
			seen[f.Name] = word
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.AddFlag(f)
			if filepath.IsAbs(f.DefValue) {
				faults = append(faults, fmt.Sprintf("%s: the default is a path of this machine: %s", name, f.DefValue))
			}
			if n := strings.Count(set.FlagUsages(), "(default"); n > 1 || strings.Contains(set.FlagUsages(), "(default )") || n == 0 && strings.Contains(usage, "(default") {
				faults = append(faults, fmt.Sprintf("%s: default: %s", name, set.FlagUsages()))
			}
		})
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	for _, root := range roots {
		walk(root)
	}
	return faults
}
