package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Meant says what was probably meant with a word that is no command of c, or nothing.
func Meant(c *cobra.Command, word string, names []string) string {
	if word == "version" {
		return fmt.Sprintf(" (did you mean %s --version?)", c.Root().Name())
	}
	return input.Suggest(word, names)
}

// MeantFlag says what was probably meant with a flag, --name, that c does not have: another of its
// flags, or a command that has it.
func MeantFlag(c *cobra.Command, flag string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := strings.TrimPrefix(flag, "--")
	if s := input.Suggest(name, names); s != "" {
		return strings.Replace(s, `"`, `"--`, 1)
	}
	var have []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Flags().Lookup(name) != nil {
			have = append(have, sub.CommandPath())
		}
	}
	if len(have) == 0 {
		return ""
	}
	return fmt.Sprintf(" (it is a flag of %s)", strings.Join(have, ", "))
}

// MeantLong says what was probably meant where the error is that c has no such letter: a flag with
// one dash too few.
func MeantLong(c *cobra.Command, err error) string {
	var no *pflag.NotExistError
	if !errors.As(err, &no) || len(no.GetSpecifiedShortnames()) < 2 {
		return ""
	}
	name, _, _ := strings.Cut(no.GetSpecifiedShortnames(), "=")
	if c.Flags().Lookup(name) == nil {
		return ""
	}
	return fmt.Sprintf(" (did you mean --%s?)", name)
}

// NoArgs refuses arguments, and says what to type instead.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no %q: %s", c.CommandPath(), args[0], c.UseLine())
}
