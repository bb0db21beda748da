package commands

import (
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFlag lets the shell complete the values of a flag of root and of all commands below it
// that have the flag; files belong to the values too if files is set.
func CompleteFlag(root *cobra.Command, flag string, values func() []string, files bool) {
	if root.Flags().Lookup(flag) != nil {
		// It fails for a flag that has a function already, which stays.
		_ = root.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), filesToo(files)
		})
	}
	for _, c := range root.Commands() {
		CompleteFlag(c, flag, values, files)
	}
}

// CompleteWith lets the shell complete the values of a flag that c has.
func CompleteWith(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("commands: " + err.Error()) // the program has no such flag, or registers it twice
	}
}

// CompleteFormats lets the shell complete the values of --format of root and of all commands below
// it, as the flag's help lists them.
func CompleteFormats(root *cobra.Command) {
	if f := root.Flags().Lookup("format"); f != nil {
		_, list, _ := strings.Cut(f.Usage, ": ")
		words := strings.FieldsFunc(strings.ReplaceAll(list, " or ", ", "), func(r rune) bool { return r == ',' || r == ' ' })
		CompleteWith(root, "format", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, c := range root.Commands() {
		CompleteFormats(c)
	}
}

// CompleteArgs lets the shell complete the arguments of c, at most so many; files belong to the
// values too if files is set.
func CompleteArgs(c *cobra.Command, most int, values func() []string, files bool) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(), filesToo(files)
	}
}

func filesToo(files bool) cobra.ShellCompDirective {
	if files {
		return cobra.ShellCompDirectiveDefault
	}
	return cobra.ShellCompDirectiveNoFileComp
}
