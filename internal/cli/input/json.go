package input

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ErrCut says that a text ends before what it begins is complete.
var ErrCut = errors.New("it ends in the middle")

var errKeyTwice = errors.New("this key appears twice in one object")

// JSON decodes a text that is one JSON value. Its errors say where in the text something is wrong,
// and what is needed there. Numbers of unknown type stay exact.
func JSON(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("it is empty")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err := dec.Decode(into)
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w, after %d bytes", ErrCut, len(text))
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s is %s, and %s is needed", place(text, kind.Offset), at(kind.Field), found(kind.Value), needed(kind.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: it is not JSON: %w", place(text, syntax.Offset), err)
	case err != nil:
		return err
	}
	if end := dec.InputOffset(); len(bytes.TrimSpace(text[end:])) > 0 {
		return fmt.Errorf("%s: something follows the end", place(text, end+1))
	}
	return keysOnce(text)
}

// keysOnce refuses an object that has a key twice: package json takes the last value, and a reader
// may see the first.
func keysOnce(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	type object struct {
		keys  map[string]bool // nil: a list
		value bool            // a value comes next, and not a key
	}
	var in []object
	for {
		token, err := dec.Token()
		if err != nil {
			return nil // the end: the text has been decoded
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			in = in[:len(in)-1]
			continue
		}
		if n := len(in) - 1; n >= 0 && in[n].keys != nil {
			if key, _ := token.(string); !in[n].value && in[n].keys[key] {
				return fmt.Errorf("%s: %w: %q", place(text, dec.InputOffset()), errKeyTwice, key)
			} else if !in[n].value {
				in[n].keys[key], in[n].value = true, true
				continue
			}
			in[n].value = false
		}
		switch token {
		case json.Delim('{'):
			in = append(in, object{keys: map[string]bool{}})
		case json.Delim('['):
			in = append(in, object{})
		}
	}
}

// place is the line and column of the byte before an offset, both counted from 1.
func place(text []byte, offset int64) string {
	before := text[:min(max(offset-1, 0), int64(len(text)))]
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
}

func at(path string) string {
	return cmp.Or(path, "it")
}

// found is a value as package json describes it: a kind, of some numbers with their text.
func found(value string) string {
	kind, text, _ := strings.Cut(value, " ")
	switch {
	case text != "":
		return text
	case kind == "bool":
		return "true or false"
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	}
	return "a " + kind
}

func needed(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0"
	}
	return "a whole number"
}
