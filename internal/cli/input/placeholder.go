package input

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// placeholders are the words for values of flags whose text names none: one word for one thing, in
// both programs.
var placeholders = map[string]string{
	"baseline": "FILE", "device": "NAME", "format": "FORMAT", "into": "DIR", "label-filter": "FILTER", "memory": "SIZE", "mutant": "NAME",
	"name": "NAME", "profile": "NAME", "program": "PROGRAM", "queues": "KIND", "sender": "KIND", "slurm": "MODE", "target": "TARGET", "uar": "KIND",
}

var typePlaceholders = map[string]string{"duration": "DURATION", "size": "SIZE"}

// Placeholders has the help of flags show a word in capitals for each value, and each default once:
// a text that says its default is not followed by the zero value that stands for it.
func Placeholders(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		t := f.Value.Type()
		if t == "bool" {
			return
		}
		word := typePlaceholders[t]
		switch {
		case strings.Count(f.Usage, "`") == 2:
			word = t // which the help does not show
		case strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint"):
			word = "N"
		case placeholders[f.Name] != "":
			word = placeholders[f.Name]
		}
		if word != "" {
			f.Value = placeheld{f.Value, word}
		}
		if strings.Contains(f.Usage, "(default") || slices.Contains([]string{"0s", "0B", "[]"}, f.DefValue) {
			f.DefValue = ""
		}
	})
}

// placeheld is a value whose type is called word in the help.
type placeheld struct {
	pflag.Value
	word string
}

func (p placeheld) Type() string { return p.word }

// typeOf is the type of the value itself.
func typeOf(v pflag.Value) string {
	if p, ok := v.(placeheld); ok {
		return p.Value.Type()
	}
	return v.Type()
}
