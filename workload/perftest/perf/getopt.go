package perf

import (
	"fmt"
	"strings"
)

// Refusal is a command line that perftest refuses, with what it prints. It ends before anything is
// opened.
type Refusal struct {
	Out string // to standard output
	Err string // to standard error
}

// Error returns the message.
func (r *Refusal) Error() string { return strings.TrimSpace(r.Err + r.Out) }

// separator is the line of perftest's output.
var separator = strings.Repeat("-", 87) + "\n"

// parserError is the line that follows what the parser itself refuses.
const parserError = " Parser function exited with Error\n"

// refuse is an error of the parser.
func refuse(format string, args ...any) *Refusal {
	return &Refusal{Err: fmt.Sprintf(format, args...) + "\n" + parserError}
}

// exit is an error that ends perftest at once.
func exit(format string, args ...any) *Refusal {
	return &Refusal{Err: fmt.Sprintf(format, args...) + "\n"}
}

// Help is a command line that asks for something else than a test.
type Help struct{ Text string }

// Error returns the message.
func (h *Help) Error() string { return h.Text }

// getopt goes through a command line as getopt_long of glibc does: options may stand after
// arguments, short ones may be joined, a long one may be abbreviated. take is called for each
// option, in order.
type getopt struct {
	o    *Options
	seen map[*option]bool
	rest []string
}

func (g *getopt) run(args []string) error {
	for i := 0; i < len(args); i++ {
		a := args[i]
		var err error
		switch {
		case a == "--":
			g.rest = append(g.rest, args[i+1:]...)
			return nil
		case strings.HasPrefix(a, "--"):
			i, err = g.long(args, i)
		case strings.HasPrefix(a, "-") && a != "-":
			i, err = g.short(args, i)
		default:
			g.rest = append(g.rest, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown is what perftest says to an option that getopt refuses: getopt's own line, its own lines,
// and its usage.
func (g *getopt) unknown(format string, args ...any) error {
	return &Refusal{
		Out: usage(g.o),
		Err: g.o.Program + ": " + fmt.Sprintf(format, args...) + "\n Invalid Command or flag.\n Please check command line and run again.\n\n" + parserError,
	}
}

func (g *getopt) long(args []string, i int) (int, error) {
	name, value, valued := strings.Cut(args[i][2:], "=")
	f, err := g.find(name, args[i])
	if err != nil {
		return i, err
	}
	switch {
	case valued && f.arg == "":
		return i, g.unknown("option '--%s' doesn't allow an argument", f.name)
	case !valued && f.arg != "":
		if i++; i == len(args) {
			return i, g.unknown("option '--%s' requires an argument", f.name)
		}
		value = args[i]
	}
	return i, g.take(f, value)
}

// find is the option of a name or of its beginning.
func (g *getopt) find(name, as string) (*option, error) {
	var near []*option
	for i := range options {
		switch f := &options[i]; {
		case f.name == "":
		case f.name == name:
			return f, nil
		case strings.HasPrefix(f.name, name):
			near = append(near, f)
		}
	}
	switch len(near) {
	case 0:
		return nil, g.unknown("unrecognized option '%s'", as)
	case 1:
		return near[0], nil
	}
	names := ""
	for _, f := range near {
		names += " '--" + f.name + "'"
	}
	return nil, g.unknown("option '%s' is ambiguous; possibilities:%s", as, names)
}

func (g *getopt) short(args []string, i int) (int, error) {
	letters := args[i][1:]
	for letters != "" {
		f := byLetter(letters[0])
		if f == nil {
			return i, g.unknown("invalid option -- '%c'", letters[0])
		}
		letters = letters[1:]
		if f.arg == "" {
			if err := g.take(f, ""); err != nil {
				return i, err
			}
			continue
		}
		if letters == "" {
			if i++; i == len(args) {
				return i, g.unknown("option requires an argument -- '%c'", f.letter)
			}
			letters = args[i]
		}
		return i, g.take(f, letters)
	}
	return i, nil
}

func byLetter(c byte) *option {
	for i := range options {
		if options[i].letter == c {
			return &options[i]
		}
	}
	return nil
}

// take is called for each option that stands on the command line.
func (g *getopt) take(f *option, value string) error {
	if g.seen[f] {
		if f.letter != 0 {
			return refuse(" Duplicated argument: -%c ", f.letter)
		}
		return refuse(" Duplicated argument: %s ", f.name)
	}
	g.seen[f] = true
	if f.absent != "" {
		return refuse("%s", absent(f))
	}
	return f.set(g.o, value)
}
