package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrnoOf returns the errno in err: 0 for nil, -1 for an error that holds none.
func ErrnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return ^syscall.Errno(0)
}

// ErrnoName returns the symbol of an errno as records spell it, and "0" for success.
func ErrnoName(e syscall.Errno) string {
	switch {
	case e == 0:
		return "0"
	case e == ^syscall.Errno(0):
		return "no errno"
	case e == syscall.EOPNOTSUPP: // has two names on Linux
		return "EOPNOTSUPP"
	}
	if s := unix.ErrnoName(e); s != "" {
		return s
	}
	return fmt.Sprintf("errno %d", uint(e))
}
