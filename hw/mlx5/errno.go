//go:build hw

package mlx5

/*
#cgo LDFLAGS: -libverbs -lmlx5
#include "verbs.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"syscall"
)

// errSilent is a call that failed and left no errno.
var errSilent = errors.New("the call failed and set no errno")

// null is the error of a call that answered NULL, with what errno held.
func null(call string, errno error) error {
	var e syscall.Errno
	if !errors.As(errno, &e) || e == 0 {
		return fmt.Errorf("%s: %w", call, errSilent)
	}
	return fmt.Errorf("%s: %w", call, e)
}

// failed is the error of a call that answers 0, an errno, a negative errno, or -1 with
// errno set: rdma-core has all of these.
func failed(call string, ret C.int, errno error) error {
	var e syscall.Errno
	switch {
	case ret == 0:
		return nil
	case ret > 0:
		e = syscall.Errno(ret)
	case ret == -1 && errors.As(errno, &e) && e != 0:
	case ret == -1:
		return fmt.Errorf("%s: %w", call, errSilent)
	default:
		e = syscall.Errno(-ret)
	}
	return fmt.Errorf("%s: %w", call, e)
}
