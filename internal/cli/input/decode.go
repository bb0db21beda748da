package input

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is one mistake in a file.
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

// Error returns the message.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }

// Doc is a decoded file. It remembers the position of each value, for checks that come
// after decoding.
type Doc struct {
	File string
	pos  map[string][2]int
}

// Errorf is an error at the place of a dotted path ("traffic.0.window"), or at the
// nearest of its parents that the file names.
func (d *Doc) Errorf(path, format string, args ...any) error {
	e := &Error{File: d.File, Line: 1, Col: 1, Msg: fmt.Sprintf(format, args...)}
	for p := path; ; {
		if at, ok := d.pos[p]; ok {
			e.Line, e.Col = at[0], at[1]
			return e
		}
		if p == "" {
			return e
		}
		p = p[:max(0, strings.LastIndexByte(p, '.'))]
	}
}

// Has reports whether the file gives the value at a dotted path.
func (d *Doc) Has(path string) bool {
	_, ok := d.pos[path]
	return ok
}

// Decode reads a YAML file of one document into v, a pointer to a struct. Field
// tags say what is allowed:
//
//	yaml:"name"      the key; a field without it is not read
//	unit:"time"      an integer field written with a unit: time (picoseconds), size
//	                 (bytes), rate (bits/s), freq (kHz)
//	oneof:"a,b"      the words that a string may be
//	min:"1" max:"9"  bounds of a number, inclusive
//	required:"true"  the key must be there
//
// Fields may be strings, bools, integers, float64 (for figures to compare with),
// structs, slices, maps from string, and pointers to them; a map[string]string
// takes any scalar as its text. All mistakes are reported at once, joined, each an
// *Error.
func Decode(file string, src []byte, v any) (*Doc, error) {
	if line, col, what := excess(src); what != "" {
		return nil, &Error{file, line, col, what}
	}
	f, err := parser.ParseBytes(bytes.TrimPrefix(src, []byte("\ufeff")), 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	d := &decoder{doc: &Doc{File: file, pos: map[string][2]int{}}}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		return nil, &Error{file, 1, 1, "the file is empty"}
	}
	if len(f.Docs) > 1 {
		d.fail(secondDocument{f.Docs[1]}, "a second document begins here, and only one is allowed")
	}
	d.value(f.Docs[0].Body, reflect.ValueOf(v).Elem(), "", field{})
	return d.doc, errors.Join(d.errs...)
}

// secondDocument is a document at the place of its "---": it may be empty.
type secondDocument struct{ *ast.DocumentNode }

func (n secondDocument) GetToken() *token.Token {
	if n.Start != nil || n.Body == nil {
		return n.Start
	}
	return n.Body.GetToken()
}

func syntaxError(file string, err error) error {
	var se *yaml.SyntaxError
	if errors.As(err, &se) && se.Token != nil {
		return &Error{file, se.Token.Position.Line, se.Token.Position.Column, se.Message}
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return &Error{file, 1, 1, msg}
}

type decoder struct {
	doc   *Doc
	errs  []error
	depth int
}

func (d *decoder) fail(n ast.Node, format string, args ...any) {
	line, col := 1, 1
	if t := n.GetToken(); t != nil && t.Position != nil {
		line, col = t.Position.Line, t.Position.Column
	}
	d.errs = append(d.errs, &Error{d.doc.File, line, col, fmt.Sprintf(format, args...)})
}

// field has the tags of a struct field.
type field struct {
	name, unit, oneof, min, max string
	required                    bool
	index                       int
}

func fields(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		fs = append(fs, field{name, f.Tag.Get("unit"), f.Tag.Get("oneof"), f.Tag.Get("min"), f.Tag.Get("max"), f.Tag.Get("required") == "true", i})
	}
	return fs
}

func fieldNames(fs []field) []string {
	var n []string
	for _, f := range fs {
		n = append(n, f.name)
	}
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

const maxDepth = 64

func (d *decoder) value(n ast.Node, v reflect.Value, path string, f field) {
	if t := n.GetToken(); t != nil && t.Position != nil {
		if _, ok := d.doc.pos[path]; !ok {
			d.doc.pos[path] = [2]int{t.Position.Line, t.Position.Column}
		}
	}
	if d.depth++; d.depth > maxDepth {
		d.fail(n, "nested deeper than %d", maxDepth)
		d.depth--
		return
	}
	defer func() { d.depth-- }()
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.fail(n, "anchors, aliases and tags are not allowed")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path, f)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path, f)
	case reflect.Slice:
		d.sequence(n, v, path, f)
	default:
		text, ok := scalar(n)
		if !ok {
			d.fail(n, "%s is needed here, not %s", describe(v.Type(), f), article(n))
			return
		}
		if err := setScalar(v, text, f); err != nil {
			d.fail(n, "%v", err)
		}
	}
}

func article(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a map"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	}
	return n.GetToken().Value
}

func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// listWith is the field of a structure that is a list whose items have the field name; "": none is.
func listWith(t reflect.Type, name string) string {
	for _, f := range fields(t) {
		if l := t.Field(f.index).Type; l.Kind() == reflect.Slice && l.Elem().Kind() == reflect.Struct && indexOf(fields(l.Elem()), name) >= 0 {
			return f.name
		}
	}
	return ""
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	ps, ok := pairs(n)
	if !ok {
		d.fail(n, "a map is needed here, not %s", article(n))
		return
	}
	fs := fields(v.Type())
	seen := map[string]bool{}
	for _, p := range ps {
		key := p.Key.GetToken().Value
		i := indexOf(fs, key)
		if i < 0 {
			hint := Suggest(key, fieldNames(fs))
			if list := listWith(v.Type(), key); list != "" {
				hint = fmt.Sprintf(" (it is a field of the items of %q)", list)
			}
			d.fail(p.Key, "unknown field %q%s; allowed: %s", key, hint, strings.Join(fieldNames(fs), ", "))
			continue
		}
		if seen[key] {
			d.fail(p.Key, "field %q is given twice", key)
			continue
		}
		seen[key] = true
		if _, null := p.Value.(*ast.NullNode); null || p.Value == nil {
			d.fail(p.Key, "field %q has no value", key)
			continue
		}
		d.value(p.Value, v.Field(fs[i].index), join(path, key), fs[i])
	}
	for _, f := range fs {
		if f.required && !seen[f.name] {
			d.fail(n, "field %q is missing", f.name)
		}
	}
}

func indexOf(fs []field, name string) int {
	for i := range fs {
		if fs[i].name == name {
			return i
		}
	}
	return -1
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string, f field) {
	ps, ok := pairs(n)
	if !ok {
		d.fail(n, "a map is needed here, not %s", article(n))
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, p := range ps {
		key := p.Key.GetToken().Value
		if v.MapIndex(reflect.ValueOf(key)).IsValid() {
			d.fail(p.Key, "key %q is given twice", key)
			continue
		}
		if _, null := p.Value.(*ast.NullNode); null || p.Value == nil {
			d.fail(p.Key, "key %q has no value", key)
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(p.Value, e, join(path, key), f)
		v.SetMapIndex(reflect.ValueOf(key), e)
	}
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string, f field) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, "a list is needed here, not %s", article(n))
		return
	}
	for i, item := range s.Values {
		e := reflect.New(v.Type().Elem()).Elem()
		if item == nil {
			d.fail(n, "item %d has no value", i)
			continue
		}
		d.value(item, e, join(path, strconv.Itoa(i)), f)
		v.Set(reflect.Append(v, e))
	}
}

func describe(t reflect.Type, f field) string {
	switch {
	case f.unit == "time":
		return "a time such as 120ns"
	case f.unit == "size":
		return "a size such as 4KiB"
	case f.unit == "rate":
		return "a rate such as 100Gbps"
	case f.unit == "freq":
		return "a frequency such as 430MHz"
	case f.unit == "hosts":
		return "a host such as 3, or several such as 0..15"
	case f.oneof != "":
		return "one of " + strings.ReplaceAll(f.oneof, ",", ", ")
	case t.Kind() == reflect.String:
		return "a word"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// setScalar parses text by the kind and the tags of a field.
func setScalar(v reflect.Value, text string, f field) error {
	bad := func() error { return fmt.Errorf("%q is not %s", text, describe(v.Type(), f)) }
	switch v.Kind() {
	case reflect.String:
		if f.oneof != "" {
			words := strings.Split(f.oneof, ",")
			if !slices.Contains(words, text) {
				return fmt.Errorf("%q is not one of %s%s", text, strings.Join(words, ", "), Suggest(text, words))
			}
		}
		v.SetString(text)
		return nil
	case reflect.Bool:
		switch text {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			return bad()
		}
		return nil
	case reflect.Float64:
		x, err := Number(text)
		if err != nil {
			return err
		}
		v.SetFloat(x)
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, err := integer(text, f)
		if err != nil {
			return err
		}
		if x > 1<<63-1 && !strings.HasPrefix(text, "-") || v.OverflowInt(int64(x)) {
			return fmt.Errorf("%q is too large", text)
		}
		if err := bounds(int64(x), text, f); err != nil {
			return err
		}
		v.SetInt(int64(x))
		return nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if strings.HasPrefix(text, "-") {
			return fmt.Errorf("%q is negative", text)
		}
		x, err := integer(text, f)
		if err != nil {
			return err
		}
		if v.OverflowUint(x) {
			return fmt.Errorf("%q is too large", text)
		}
		// Bounds are below 1<<63: so is everything that they allow.
		if err := bounds(int64(min(x, 1<<63-1)), text, f); err != nil {
			return err
		}
		v.SetUint(x)
		return nil
	}
	return fmt.Errorf("input: a field of type %s cannot be read", v.Type())
}

// integer parses a number with or without a unit; a negative one as two's complement.
func integer(text string, f field) (uint64, error) {
	switch f.unit {
	case "time":
		x, err := ParseTime(text)
		return uint64(x), err
	case "size":
		return ParseSize(text)
	case "rate":
		return ParseRate(text)
	case "freq":
		return ParseFrequency(text)
	}
	if strings.HasPrefix(text, "-") {
		x, err := Whole(text[1:])
		if err == nil && x > 1<<63 {
			err = fmt.Errorf("%q is too large", text)
		}
		return -x, err
	}
	return Whole(text)
}

func bounds(x int64, text string, f field) error {
	parse := func(s string) int64 {
		v, err := integer(s, f)
		if err != nil {
			panic("input: tag " + s + ": " + err.Error())
		}
		return int64(v)
	}
	switch {
	case f.min != "" && x < parse(f.min) && f.max != "":
		return fmt.Errorf("%s is below %s: %s to %s is allowed", text, f.min, f.min, f.max)
	case f.min != "" && x < parse(f.min):
		return fmt.Errorf("%s is below %s", text, f.min)
	case f.max != "" && x > parse(f.max) && f.min != "":
		return fmt.Errorf("%s is above %s: %s to %s is allowed", text, f.max, f.min, f.max)
	case f.max != "" && x > parse(f.max):
		return fmt.Errorf("%s is above %s", text, f.max)
	}
	return nil
}

// Sub is the document seen from a path: its errors are placed by paths below it.
func (d *Doc) Sub(path string) *Doc {
	s := &Doc{File: d.File, pos: map[string][2]int{}}
	for p, at := range d.pos {
		if p == path {
			s.pos[""] = at
		} else if rest, ok := strings.CutPrefix(p, path+"."); ok {
			s.pos[rest] = at
		}
	}
	return s
}
