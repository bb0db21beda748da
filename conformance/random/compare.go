package random

import "fmt"

// Difference is the first place at which a target leaves the model, or two targets differ on a
// program.
type Difference struct {
	Side      int        // that has the violation
	Violation *Violation // nil: the targets differ
	Stream    string
	Line      int // from 1
	Sides     [2]string
}

// String describes the difference in words.
func (d *Difference) String() string {
	if d.Violation != nil {
		return fmt.Sprintf("target %d, %s", d.Side+1, d.Violation)
	}
	return fmt.Sprintf("%s, line %d:\n  first target:  %s\n  second target: %s", d.Stream, d.Line, d.Sides[0], d.Sides[1])
}

// Compare returns the first difference of two outcomes, or nil. It compares the bytes in memory
// last, since completions explain more.
func Compare(a, b *Outcome) *Difference {
	for _, name := range streams {
		x, y := a.Streams[name], b.Streams[name]
		for i := range max(len(x), len(y)) {
			if l, r := line(x, i), line(y, i); l != r {
				return &Difference{Stream: name, Line: i + 1, Sides: [2]string{l, r}}
			}
		}
	}
	return nil
}

func line(l []string, i int) string {
	if i < len(l) {
		return l[i]
	}
	return "(nothing)"
}
