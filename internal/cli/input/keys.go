package input

import (
	"reflect"
	"regexp"
	"strings"
)

// Key is a key of a file, as a reference lists it.
type Key struct {
	// Path is dotted, with N for the number of an item of a list, such as traffic.N.window. NAME
	// stands for a key that the user chooses.
	Path string
	// Group is the heading that the key stands under: its tag group or, without one, that of the
	// field before it.
	Group string
	// Allowed says what the value may be, such as "1 to 64" or "one of a, b".
	Allowed string
	// Words are the values, if the value is one of a list of words.
	Words []string
	// Default is the value without the key, "" where the help names none.
	Default  string
	Help     string // without the default
	Required bool
	// Map says that the key holds others, which follow.
	Map bool
}

// Keys lists the keys that Decode reads into v, a pointer to a struct, in the order of its fields.
// The tag group:"..." of a field begins a group, and help:"..." describes the key; "(default 7)" at
// its end is the default. Maps and lists that have no help have no Key of their own.
func Keys(v any) []Key {
	return keys(nil, reflect.TypeOf(v).Elem(), "", "", field{}, "", 0)
}

var defaultOf = regexp.MustCompile(`^(.*) \(default:? ([^()]+(?:\([^()]*\))?)\)$`)

func keys(all []Key, t reflect.Type, path, group string, f field, help string, depth int) []Key {
	if depth > maxDepth {
		return all
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keys(all, t.Elem(), path, group, f, help, depth+1)
	case reflect.Struct:
		if help != "" {
			k := newKey(t, path, group, f, help)
			k.Map, k.Allowed = true, "a map"
			all = append(all, k)
		}
		for _, sf := range fields(t) {
			field := t.Field(sf.index)
			if g := field.Tag.Get("group"); g != "" {
				group = g
			}
			all = keys(all, field.Type, join(path, sf.name), group, sf, field.Tag.Get("help"), depth+1)
		}
		return all
	case reflect.Map:
		return keys(all, t.Elem(), join(path, "NAME"), group, f, help, depth+1)
	case reflect.Slice:
		if e := t.Elem(); e.Kind() == reflect.Struct {
			if help != "" {
				k := newKey(e, path, group, f, help)
				k.Map, k.Allowed = true, "list of maps"
				all = append(all, k)
			}
			return keys(all, e, join(path, "N"), group, field{}, "", depth+1)
		}
		k := newKey(t.Elem(), path, group, f, help)
		k.Allowed = "list, each " + k.Allowed
		return append(all, k)
	}
	return append(all, newKey(t, path, group, f, help))
}

func newKey(t reflect.Type, path, group string, f field, help string) Key {
	k := Key{Path: path, Group: group, Allowed: strings.TrimPrefix(allowed(t, f), "one of "), Help: help, Required: f.required}
	if m := defaultOf.FindStringSubmatch(help); m != nil {
		k.Help, k.Default = m[1], m[2]
	}
	switch {
	case f.oneof != "":
		k.Words = strings.Split(f.oneof, ",")
	case t.Kind() == reflect.Bool:
		k.Words = []string{"true", "false"}
		if k.Default == "" {
			k.Default = "false"
		}
	}
	return k
}

// allowed says what a value may be, with its bounds.
func allowed(t reflect.Type, f field) string {
	what := describe(t, f)
	low := f.min
	if low == "" && f.unit != "" && f.unit != "hosts" {
		low = map[string]string{"time": "0ns", "size": "0B"}[f.unit]
	}
	switch {
	case low != "" && f.max != "":
		return low + " to " + f.max
	case low != "" && f.unit == "":
		return low + " or more"
	}
	return what
}
