package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Read reads the tables of a folder, in the order of their names.
func Read(dir string) (*Package, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no table", dir)
	}
	p := &Package{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := p.parse(strings.TrimSuffix(filepath.Base(name), ".txt"), string(text)); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
	}
	return p, nil
}

// parse adds a table.
func (p *Package) parse(name, text string) error {
	t := Table{Name: name}
	var doc []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			if doc != nil {
				err = fmt.Errorf("documentation of nothing")
			}
		case strings.HasPrefix(line, "//"):
			doc = append(doc, line)
		case words[0] == "package":
			err = p.header(words[1:])
		case words[0] == "view":
			var v View
			if v, err = parseView(words[1:]); err == nil {
				v.Doc, doc = doc, nil
				t.Views = append(t.Views, v)
			}
		case len(t.Views) == 0:
			err = fmt.Errorf("a field before the first view")
		default:
			var f Field
			if f, err = parseField(words); err == nil {
				f.Doc, doc = doc, nil
				err = t.Views[len(t.Views)-1].add(f)
			}
		}
		if err != nil {
			return fmt.Errorf("%d: %w", i+1, err)
		}
	}
	if p.Name == "" {
		return fmt.Errorf("1: no package and byte order")
	}
	p.Tables = append(p.Tables, t)
	return nil
}

func (p *Package) header(words []string) error {
	if len(words) != 2 || words[1] != "big" && words[1] != "little" {
		return fmt.Errorf("want: package NAME big|little")
	}
	if p.Name != "" && (p.Name != words[0] || p.Little != (words[1] == "little")) {
		return fmt.Errorf("another package or byte order than in the tables before")
	}
	p.Name, p.Little = words[0], words[1] == "little"
	return nil
}

func parseView(words []string) (View, error) {
	if len(words) < 2 {
		return View{}, fmt.Errorf("want: view NAME SIZE [STRUCT] [unnamed] [longer] [union]")
	}
	size, err := strconv.ParseInt(words[1], 0, 32)
	if err != nil {
		return View{}, fmt.Errorf("size %q is not a number", words[1])
	}
	v := View{Name: words[0], Size: int(size), SizeText: words[1]}
	for i, w := range words[2:] {
		switch {
		case w == "unnamed":
			v.Unnamed = true
		case w == "longer":
			v.Longer = true
		case w == "union":
			v.Union = true
		case i == 0:
			v.Struct = w
		default:
			return View{}, fmt.Errorf("view %s: %q is not understood", v.Name, w)
		}
	}
	return v, nil
}

func parseField(words []string) (Field, error) {
	if len(words) < 3 || len(words) > 4 {
		return Field{}, fmt.Errorf("want: OFFSET PLACE NAME[:TYPE] [MEMBER]")
	}
	off, err := strconv.ParseInt(words[0], 0, 32)
	if err != nil {
		return Field{}, fmt.Errorf("offset %q is not a number", words[0])
	}
	f := Field{Offset: int(off), offset: words[0]}
	f.Name, f.Type, _ = strings.Cut(words[2], ":")
	if len(words) == 4 {
		f.Member = words[3]
	}
	f.Place, err = parsePlace(words[1])
	return f, err
}

func parsePlace(s string) (Place, error) {
	switch s {
	case "u8", "u16", "u32", "u64":
		n, err := strconv.Atoi(s[1:])
		return Place{Kind: Number, Bits: n}, err
	case "be16", "be32", "be64":
		bits, err := strconv.Atoi(s[len("be"):])
		return Place{Kind: Network, Bits: bits}, err
	case "low16", "low24":
		n, err := strconv.Atoi(s[3:])
		return Place{Kind: Low, Bits: n}, err
	case "+":
		return Place{Kind: Rest}, nil
	}
	if size, ok := strings.CutPrefix(s, "+"); ok {
		n, err := strconv.ParseInt(size, 0, 32)
		return Place{Kind: Part, Bytes: int(n)}, err
	}
	hi, lo, several := strings.Cut(s, "..")
	p := Place{Kind: Bit}
	var err error
	if p.Hi, err = strconv.Atoi(hi); err != nil {
		return Place{}, fmt.Errorf("place %q is not understood", s)
	}
	p.Lo = p.Hi
	if several {
		p.Kind = Bits
		p.Lo, err = strconv.Atoi(lo)
	}
	if err != nil || p.Hi > 31 || p.Lo > p.Hi || p.Lo < 0 {
		return Place{}, fmt.Errorf("bits %q are not bits of a word of 32", s)
	}
	return p, nil
}

// add appends a field; it must lie in the view and, but in a union, share no bit with another one.
func (v *View) add(f Field) error {
	end := f.BitOffset() + f.Width()
	if end > 8*v.Size {
		return fmt.Errorf("%s.%s ends at bit %d of %d", v.Name, f.Name, end, 8*v.Size)
	}
	for i := range v.Fields {
		o := &v.Fields[i]
		if o.Name == f.Name {
			return fmt.Errorf("%s.%s is declared twice", v.Name, f.Name)
		}
		slices := o.Place.Kind >= Part || f.Place.Kind >= Part
		if !slices && !v.Union && f.BitOffset() < o.BitOffset()+o.Width() && o.BitOffset() < end {
			return fmt.Errorf("%s: %s and %s share a bit", v.Name, o.Name, f.Name)
		}
	}
	v.Fields = append(v.Fields, f)
	return nil
}
