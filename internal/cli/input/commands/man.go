package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManCommand is the hidden command "man DIR", which writes the manual pages of a program: one for
// the program, one for each command that its help shows.
func ManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages to a folder", Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("man needs one folder, and %d are given", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for _, page := range shown(c.Root()) {
				if err := os.WriteFile(filepath.Join(args[0], manName(page)+".1"), Man(page), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// shown are c and the commands below it that help shows.
func shown(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	if c.Name() == "completion" {
		return all // the page lists the shells
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			all = append(all, shown(sub)...)
		}
	}
	return all
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Man is the manual page of a command as roff, with the text of its help.
func Man(c *cobra.Command) []byte {
	var b strings.Builder
	root := c.Root()
	version, _, _ := strings.Cut(root.Version, "+") // pages do not change with every commit
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q %q\n", strings.ToUpper(manName(c)), strings.TrimSpace(root.Name()+" "+version), root.Name()+" manual")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(manName(c)), roff(c.Short), roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	if c.Long != "" {
		roffText(&b, c.Long)
	} else {
		roffText(&b, c.Short+".")
	}
	if c.LocalFlags().HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			one := pflag.NewFlagSet("", pflag.ContinueOnError)
			one.AddFlag(f)
			flag, usage, _ := strings.Cut(strings.TrimSpace(one.FlagUsages()), "   ")
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(flag), roff(strings.Join(strings.Fields(usage), " ")))
		})
	}
	var below []string
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		if len(below) == 0 {
			b.WriteString(".SH COMMANDS\n")
		}
		below = append(below, manName(sub))
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
	}
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	if c.HasParent() {
		below = append([]string{manName(c.Parent())}, below...)
	}
	if len(below) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n")
		for i, name := range below {
			comma := ","
			if i == len(below)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), comma)
		}
	}
	return []byte(b.String())
}

// roffText writes paragraphs; lines that begin with a space keep their shape.
func roffText(b *strings.Builder, text string) {
	verbatim := false
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		if shaped := strings.HasPrefix(line, " "); shaped != verbatim && line != "" {
			verbatim = shaped
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[shaped])
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
}

// roff escapes what roff reads as its own: backslashes, hyphens, and a dot or a quote at the
// beginning of a line.
func roff(s string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
