package commands

import (
	"errors"
	"strings"
	"syscall"
)

// Besides is what remains to be said of the end of a command when its output has failed, which has been said: nil, or what is not the
// failure of a write to the output. Files on the same full disk have the same cause, and are named.
func Besides(err, output error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, e := range joined.Unwrap() {
			rest = append(rest, Besides(e, output))
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
