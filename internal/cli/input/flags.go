package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// FlagError says what the flag takes whose value cannot be read. Other errors stay as they are.
func FlagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	flag := bad.GetFlag()
	takes := ""
	switch typeOf(flag.Value) {
	case "uint64":
		takes = "a whole number from 0 to 18446744073709551615, such as 1"
	case "uint8":
		takes = "a whole number from 0 to 255, such as 1"
	case "uint16":
		takes = "a whole number from 0 to 65535, such as 1"
	case "int":
		takes = "a whole number, such as 1"
	case "size":
		takes = "bytes, or a number with a unit (" + names(sizeUnits[1:]) + "), such as 64MiB"
	case "duration":
		takes = "a number with a unit (ms, s, m, h), such as 5s"
	case "bool":
		takes = "true or false, or no value for true"
	default:
		return err
	}
	switch {
	case errors.Is(err, errZeros):
		takes += ", without zeros before it"
	case errors.Is(err, errNotation):
		takes += ", in digits or as 0x10"
	}
	return fmt.Errorf("--%s %q: the flag takes %s", flag.Name, bad.GetValue(), takes)
}

// PlainNumbers lets the flags of whole numbers refuse what files do (Whole), but for a sign +.
func PlainNumbers(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if t := f.Value.Type(); strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint") {
			f.Value = plainNumber{f.Value}
		}
	})
}

type plainNumber struct{ pflag.Value }

func (n plainNumber) Set(text string) error {
	if _, err := Whole(strings.TrimLeft(text, "+-")); errors.Is(err, errZeros) || errors.Is(err, errNotation) {
		return err
	}
	return n.Value.Set(text)
}

// SizeVar adds a flag that takes bytes, or a size with a unit.
func SizeVar(flags *pflag.FlagSet, p *uint64, name string, value uint64, usage string) {
	*p = value
	flags.Var((*sizeFlag)(p), name, usage)
}

type sizeFlag uint64

func (s *sizeFlag) String() string { return FormatSize(uint64(*s)) }
func (s *sizeFlag) Type() string   { return "size" }
func (s *sizeFlag) Set(text string) error {
	n, err := ParseSize(text)
	if err == nil {
		*s = sizeFlag(n)
	}
	return err
}

// NamesGiven refuses flags that are given with an empty value, as a variable of a shell that is not
// set leaves them: the file that they ask for would not be written, and nobody would hear of it.
func NamesGiven(flags *pflag.FlagSet, names ...string) error {
	for _, n := range names {
		if f := flags.Lookup(n); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: name the file or folder, or leave the flag out", n)
		}
	}
	return nil
}

// Alone refuses the flags that are given beside one which has no use for them; with are those that
// it uses. Nothing is refused where that one is not given.
func Alone(flags *pflag.FlagSet, name string, with ...string) error {
	if f := flags.Lookup(name); f == nil || !f.Changed || f.Value.String() == "false" {
		return nil
	}
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && f.Name != name && !slices.Contains(with, f.Name) {
			err = fmt.Errorf("--%s does not use --%s: leave one of them out", name, f.Name)
		}
	})
	return err
}

// Needs refuses a flag that says something about another one which is not given.
func Needs(flags *pflag.FlagSet, name, other string) error {
	if f, o := flags.Lookup(name), flags.Lookup(other); f != nil && f.Changed && (o == nil || !o.Changed) {
		return fmt.Errorf("--%s is about --%s, which is not given: add it, or leave --%s out", name, other, name)
	}
	return nil
}
