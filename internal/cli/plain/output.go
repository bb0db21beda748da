package plain

import (
	"cmp"
	"io"
)

// Output is the standard output of a program: it writes text only, and remembers the first error,
// and whether there was any text.
type Output struct {
	to    io.Writer
	Err   error
	Wrote bool
}

// NewOutput writes to w what NewWriter does.
func NewOutput(w io.Writer) *Output { return &Output{to: NewWriter(w)} }

// Write writes p, and keeps the first error in Err.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.Wrote = o.Wrote || n > 0
	o.Err = cmp.Or(o.Err, err)
	return n, err
}
