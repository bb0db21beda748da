package commands

import (
	"errors"
	"strings"
	"syscall"
)

// ExceptOutputError removes from err what was caused by output, a failed write to standard output
// that has been reported already. It returns nil when nothing else went wrong. Errors that name a
// file stay, also if the same full disk caused them.
func ExceptOutputError(err, output error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, e := range joined.Unwrap() {
			rest = append(rest, ExceptOutputError(e, output))
		}
		return errors.Join(rest...)
	}
	var cause syscall.Errno // of each failed write
	same := errors.Is(err, output) || errors.As(output, &cause) && errors.Is(err, cause)
	if same && !strings.Contains(err.Error(), "cannot be written") {
		return nil
	}
	return err
}
