package commands

import "github.com/spf13/cobra"

// CompleteFlag lets the shell complete the values of a flag of root and of all commands below it that have the flag; files belong
// to the values too if files is set.
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

// CompleteArgs lets the shell complete the arguments of c, at most so many; files belong to the values too if files is set.
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
