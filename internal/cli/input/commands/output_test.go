package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// The failure of the output is said once, and files that failed for the same cause are named all
// the same.
func TestBesides(t *testing.T) {
	output := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	later := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	file, other := fmt.Errorf("o/a.json cannot be written: %w", syscall.ENOSPC), errors.New("a case failed")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {output, nil}, {later, nil}, {fmt.Errorf("table: %w", later), nil}, {errors.Join(output, later), nil},
		{file, file}, {other, other}, {errors.Join(output, file), errors.Join(file)}, {errors.Join(errors.Join(later, other), file), errors.Join(errors.Join(other), file)},
	} {
		if got := ExceptOutputError(c.err, output); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
