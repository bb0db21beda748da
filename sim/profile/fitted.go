package profile

import (
	"maps"
	"slices"
)

// FittedValue is a value of a stored file that was fitted to a figure of rdmasim
// validate.
type FittedValue struct {
	File, Key, Check string
}

// FittedValues are all fitted values, each once, in the file that gives it, sorted by file and
// key. Profiles that extend the file have them too.
func FittedValues() []FittedValue {
	var all []FittedValue
	for _, n := range stored() {
		_, f, err := read(n)
		if err != nil {
			continue // Load reports it
		}
		sections := f.sections()
		for _, s := range slices.Sorted(maps.Keys(sections)) {
			for _, name := range slices.Sorted(maps.Keys(sections[s])) {
				if e := sections[s][name]; e.Check != "" {
					all = append(all, FittedValue{n, s + "." + name, e.Check})
				}
			}
		}
	}
	return all
}
