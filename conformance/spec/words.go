package spec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/verbs"
)

// Bounds of what a message quotes.
const (
	mostFields  = 6  // that differ
	mostMembers = 16 // of a list
	mostBytes   = 16 // in hexadecimal; more are a digest
)

// Words returns a value as messages of cases show it: flags and enumerations of the verbs API by
// their names, long byte slices as digests, long lists by their first members.
func Words(v any) string {
	if s, ok := verbs.Words(v); ok {
		return s
	}
	switch v := v.(type) {
	case nil:
		return "nil"
	case []byte:
		if len(v) > mostBytes {
			return report.Digest(v)
		}
		return fmt.Sprintf("% x", v)
	case string:
		return fmt.Sprintf("%q", v)
	case fmt.Stringer:
		return v.String()
	case error:
		return v.Error()
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array:
		return members(r)
	case reflect.Uint32, reflect.Uint64:
		if r.Uint() >= 1<<16 { // keys, immediate data, addresses
			return fmt.Sprintf("%d (%#x)", r.Uint(), r.Uint())
		}
	}
	return fmt.Sprintf("%+v", v)
}

func members(list reflect.Value) string {
	var out []string
	for i := range min(list.Len(), mostMembers) {
		out = append(out, Words(list.Index(i).Interface()))
	}
	if n := list.Len() - len(out); n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// unequal says how got differs from want: of a structure which fields, of a list the first place.
func unequal(got, want any) string {
	out := differences(nil, "", reflect.ValueOf(got), reflect.ValueOf(want))
	if n := len(out) - mostFields; n > 0 {
		out = append(out[:mostFields], fmt.Sprintf("and %d more fields differ", n))
	}
	return strings.Join(out, "; ")
}

func differences(out []string, at string, got, want reflect.Value) []string {
	if !got.IsValid() || !want.IsValid() || got.Type() != want.Type() {
		return append(out, sentence(at, shown(got), shown(want), true))
	}
	if got.CanInterface() && reflect.DeepEqual(got.Interface(), want.Interface()) {
		return out
	}
	if _, named := got.Interface().(fmt.Stringer); named {
		return append(out, sentence(at, shown(got), shown(want), false))
	}
	switch got.Kind() {
	case reflect.Struct:
		return fields(out, at, got, want)
	case reflect.Slice, reflect.Array:
		if got.Type().Elem().Kind() == reflect.Uint8 {
			return append(out, strings.TrimPrefix(at+": ", ": ")+diffBytes(bytesOf(got), bytesOf(want)))
		}
		if got.Len() == want.Len() && got.Len() > mostMembers {
			for i := range got.Len() {
				if place := differences(nil, fmt.Sprintf("%s[%d]", at, i), got.Index(i), want.Index(i)); len(place) > 0 {
					return append(out, place...)
				}
			}
		}
	case reflect.Pointer:
		if !got.IsNil() && !want.IsNil() {
			return differences(out, at, got.Elem(), want.Elem())
		}
	}
	return append(out, sentence(at, shown(got), shown(want), false))
}

// fields lists the exported fields that differ. A structure that differs in others only is shown
// whole.
func fields(out []string, at string, got, want reflect.Value) []string {
	n := len(out)
	for i := range got.NumField() {
		if f := got.Type().Field(i); f.IsExported() {
			out = differences(out, strings.TrimPrefix(at+"."+f.Name, "."), got.Field(i), want.Field(i))
		}
	}
	if len(out) == n {
		out = append(out, sentence(at, shown(got), shown(want), false))
	}
	return out
}

// bytesOf is a list of bytes, whatever its type is.
func bytesOf(list reflect.Value) []byte {
	p := make([]byte, list.Len())
	for i := range p {
		p[i] = byte(list.Index(i).Uint())
	}
	return p
}

func shown(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	return Words(v.Interface())
}

func sentence(at, got, want string, types bool) string {
	text := fmt.Sprintf("want %s, got %s", want, got)
	if types && got == want {
		text += ", of another type"
	}
	if at == "" {
		return text
	}
	return at + ": " + text
}
