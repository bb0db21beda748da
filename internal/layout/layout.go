// Package layout reads the tables of byte formats and writes the views of them: for each format a
// named byte slice with a getter and a setter for each field. The tables are the only place where
// an offset of prm or uapi is written down; the tests compare them with the C headers from which
// they were taken.
//
// A table is a text file. Its first line names the package and the byte order of words, big or
// little. Then each format is a line
//
//	view NAME SIZE [STRUCT] [unnamed] [longer] [union]
//
// with its length in bytes and the C structure that it is, followed by a line for each field:
//
//	OFFSET PLACE NAME[:TYPE] [MEMBER]
//
// OFFSET counts bytes from the beginning, TYPE is the Go type of a value that is more than a
// number, MEMBER is the member of the C structure. PLACE is one of
//
//	u8 u16 u32 u64   a whole number
//	be16 be32 be64   the same in network order, in a format that is little endian
//	31..28           these bits of the 32-bit word at the offset (31 is the most significant one)
//	31               one bit of the word, a bool
//	low16 low24      the low bits of a word whose other bits a writer sets to zero
//	+0x2c            this many bytes, a view themselves or a slice
//	+                all bytes from here to the end: a list
//
// Lines that begin with // before a view or a field are its documentation; # begins a comment of
// the table. The words behind a view: unnamed, there is no constant for its length; longer, it has
// room for more than the C structure; union, its fields may share bits, because they are those of
// different types of entry.
package layout

import "strings"

// Package is what the tables of one Go package say.
type Package struct {
	Name   string
	Little bool // words are little endian
	Tables []Table
}

// Table is one file.
type Table struct {
	Name  string // of the file, without its extension
	Views []View
}

// View is a byte format.
type View struct {
	Doc                    []string // lines of comment
	Name                   string
	Size                   int    // in bytes
	SizeText               string // as it is written in the table
	Struct                 string // the C structure, or ""
	Unnamed, Longer, Union bool
	Fields                 []Field
}

// Field is a part of a format.
type Field struct {
	Doc    []string
	Name   string
	Type   string // Go type, "" for that of its place
	Member string // of the C structure, or ""
	Offset int    // in bytes
	offset string // as it is written in the table
	Place  Place
}

// Place says which bits a field takes.
type Place struct {
	Kind   Kind
	Bits   int // width of a whole number, or of what is used of a word
	Hi, Lo int // of Bits and Bit
	Bytes  int // of Part
}

// Kind is a kind of place.
type Kind int

// The kinds, in the order of the package comment.
const (
	Number Kind = iota
	Network
	Bits
	Bit
	Low
	Part
	Rest
)

// BitOffset is the first bit of the field, most significant bit first, where words are big endian.
func (f *Field) BitOffset() int {
	switch f.Place.Kind {
	case Bits, Bit:
		return 8*f.Offset + 31 - f.Place.Hi
	case Low:
		return 8*f.Offset + 32 - f.Place.Bits
	}
	return 8 * f.Offset
}

// Width is how many bits the field takes, 0 for a list.
func (f *Field) Width() int {
	switch f.Place.Kind {
	case Bits, Bit:
		return f.Place.Hi - f.Place.Lo + 1
	case Part:
		return 8 * f.Place.Bytes
	case Rest:
		return 0
	}
	return f.Place.Bits
}

// Views are those of all tables.
func (p *Package) Views() []View {
	var all []View
	for _, t := range p.Tables {
		all = append(all, t.Views...)
	}
	return all
}

// Member is a member of a C structure, or with no name the whole structure. Its place counts bytes,
// in a structure of mlx5_ifc.h bits, for that header gives each bit a byte.
type Member struct {
	Struct, Name  string
	Offset, Width int // Width 0: a list
}

// Members are the members that the tables name, of the structures whose names begin with prefix.
func (p *Package) Members(prefix string) []Member {
	var all []Member
	for _, v := range p.Views() {
		if v.Struct == "" || !strings.HasPrefix(v.Struct, prefix) {
			continue
		}
		unit := 8
		if strings.HasSuffix(v.Struct, "_bits") {
			unit = 1
		}
		if !v.Longer {
			all = append(all, Member{Struct: v.Struct, Width: 8 * v.Size / unit})
		}
		for i := range v.Fields {
			if f := &v.Fields[i]; f.Member != "" {
				all = append(all, Member{v.Struct, f.Member, f.BitOffset() / unit, f.Width() / unit})
			}
		}
	}
	return all
}
