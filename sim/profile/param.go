package profile

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
)

// Kind says how a value is written.
type Kind uint8

// Kinds.
const (
	Time  Kind = iota // 120ns
	Size              // 4KiB
	Rate              // 100Gbps
	Freq              // 156.25MHz
	Count             // 16
	Hex               // 0x1019
	Bool              // true
	Word              // one of a list of words
)

var kindNames = [...]string{"time", "size", "rate", "frequency", "count", "number", "switch", "word"}

// String returns the text form.
func (k Kind) String() string { return kindNames[k] }

// units are the values of a field's tag unit: how an integer is written that is not a plain count.
var units = map[string]Kind{"rate": Rate, "frequency": Freq, "size": Size, "hex": Hex}

// words are the parameters whose value is a word; the index in the list is the number that
// the unit has. Lists without another use are in the field's tag words.
var words = map[string][]string{
	"hca.link_layer":  hca.LinkLayerWords,
	"hca.link_layers": hca.LinkLayersWords,
	"ib.speed":        link.SpeedWords,
}

// param is one value of a profile: where it lives and how it is written.
type param struct {
	key   string // section.name
	field string // its name in Go
	kind  Kind
	v     reflect.Value
}

// section is a part of a profile: the parameters of a unit.
type section struct {
	name string
	v    any // pointer to the unit's Params
}

func (p *Profile) sections() []section {
	return []section{
		{"cpu", &p.CPU}, {"pcie", &p.PCIe}, {"hca", &p.HCA}, {"uar", &p.HCA.UAR}, {"commands", &p.HCA.Commands}, {"congestion", &p.HCA.Congestion}, {"odp", &p.HCA.ODP},
		{"link", &p.Link}, {"ib", &p.Link.IB}, {"switch", &p.Switch}, {"kernel", &p.Kernel}, {"gpu", &p.GPU}, {"provider", &p.Provider},
	}
}

// params are all values, in the order of the sections and of their fields.
func (p *Profile) params() []param {
	sections := p.sections()
	ps := make([]param, 0, len(layout))
	for _, l := range layout {
		ps = append(ps, l.in(sections))
	}
	return ps
}

// param is the value of key.
func (p *Profile) param(key string) (param, bool) {
	for _, l := range layout {
		if l.key == key {
			return l.in(p.sections()), true
		}
	}
	return param{}, false
}

// place says which value of any profile a key means.
type place struct {
	key, name string // name is the field's
	tag       reflect.StructTag
	kind      Kind
	section   int
	field     int
	element   int // of a field that is an array, else -1
}

// in is the value of the place in a profile of these sections.
func (l *place) in(sections []section) param {
	v := reflect.ValueOf(sections[l.section].v).Elem().Field(l.field)
	if l.element >= 0 {
		v = v.Index(l.element)
	}
	return param{key: l.key, field: l.name, kind: l.kind, v: v}
}

// layout lists the places of all values: it follows from the types of the units' parameters.
var layout = places()

func places() (all []*place) {
	for s, sec := range new(Profile).sections() {
		t := reflect.TypeOf(sec.v).Elem()
		for i := range t.NumField() {
			f := t.Field(i)
			keys := strings.Fields(cmp.Or(f.Tag.Get("key"), snake(f.Name)))
			add := func(name string, element int, t reflect.Type) {
				key := sec.name + "." + name
				if w := f.Tag.Get("words"); w != "" {
					words[key] = strings.Fields(w)
				}
				all = append(all, &place{key, f.Name, f.Tag, kindOf(key, f.Tag.Get("unit"), t), s, i, element})
			}
			switch {
			case f.Type.Kind() == reflect.Struct: // a section of its own
			case f.Tag.Get("profile") == "-": // another value decides
			case f.Type.Kind() == reflect.Array:
				if len(keys) != f.Type.Len() {
					panic(fmt.Sprintf("profile: field %s of section %s needs %d keys in its tag key", f.Name, sec.name, f.Type.Len()))
				}
				for k, name := range keys {
					add(name, k, f.Type.Elem())
				}
			default:
				add(keys[0], -1, f.Type)
			}
		}
	}
	return all
}

func kindOf(key, unit string, t reflect.Type) Kind {
	k, given := units[unit]
	switch {
	case given:
		return k
	case unit != "":
		panic(fmt.Sprintf("profile: %s has an unknown unit %q in its tag", key, unit))
	case words[key] != nil:
		return Word
	case t == reflect.TypeFor[sim.Time]():
		return Time
	case t.Kind() == reflect.Bool:
		return Bool
	}
	return Count
}

// snake is the key of a field: LogMaxQPSize is log_max_qp_size.
func snake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// text is the value as it is written in a file.
func (q param) text() string {
	if q.kind == Bool {
		return strconv.FormatBool(q.v.Bool())
	}
	n := uint64(0)
	if q.v.CanInt() {
		n = uint64(q.v.Int())
	} else {
		n = q.v.Uint()
	}
	switch q.kind {
	case Time:
		return input.FormatTime(int64(n))
	case Size:
		return input.FormatSize(n)
	case Rate:
		return input.FormatRate(n)
	case Freq:
		return input.FormatFrequency(n)
	case Hex:
		return fmt.Sprintf("%#x", n)
	case Word:
		if w := words[q.key]; n < uint64(len(w)) {
			return w[n]
		}
	}
	return strconv.FormatUint(n, 10)
}

// set parses text into the value.
func (q param) set(text string) error {
	if q.kind == Bool {
		b := text == "true"
		if !b && text != "false" {
			return fmt.Errorf("%q is not true or false", text)
		}
		q.v.SetBool(b)
		return nil
	}
	n, err := q.parse(text)
	if err != nil {
		return err
	}
	if q.v.CanInt() {
		if n > math.MaxInt64 || q.v.OverflowInt(int64(n)) {
			return fmt.Errorf("%q is too large", text)
		}
		q.v.SetInt(int64(n))
		return nil
	}
	if q.v.OverflowUint(n) {
		return fmt.Errorf("%q is too large", text)
	}
	q.v.SetUint(n)
	return nil
}

func (q param) parse(text string) (uint64, error) {
	switch q.kind {
	case Time:
		t, err := input.ParseTime(text)
		return uint64(t), err
	case Size:
		return input.ParseSize(text)
	case Rate:
		return input.ParseRate(text)
	case Freq:
		return input.ParseFrequency(text)
	case Word:
		w := words[q.key]
		if i := slices.Index(w, text); i >= 0 {
			return uint64(i), nil
		}
		return 0, fmt.Errorf("%q is not one of %s%s", text, strings.Join(w, ", "), input.Suggest(text, w))
	}
	return input.Whole(text)
}

// Allowed says what the value of a key may be: its words, its bounds if it has some that all
// profiles share, or its kind.
func Allowed(key string) string {
	for _, l := range layout {
		if l.key != key {
			continue
		}
		if w := words[key]; w != nil {
			return strings.Join(w, ", ")
		}
		if l.kind == Bool {
			return "true, false"
		}
		if low, high, ok := sim.Bounds(l.tag); ok {
			return l.kind.Format(uint64(low)) + " to " + l.kind.Format(uint64(high))
		}
		return l.kind.String()
	}
	return ""
}

// Words are what the value of a key may be, if it is a word.
func Words(key string) []string { return slices.Clone(words[key]) }
