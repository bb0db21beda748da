//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// Files that the filter has to know by their number alone, since it cannot look at what a call is
// about, get descriptors of numbers that programs rarely have by themselves.

var errNoNumber = errors.New("no number is left for the descriptor")

// freeFD is a number from first on and below end that a thread has no descriptor of yet, and may
// have by its limit. The search begins behind first by skip.
func freeFD(tid, first, end, skip int) (int, error) {
	var limit unix.Rlimit
	if err := unix.Prlimit(tid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return 0, err
	}
	n := min(end, int(min(limit.Cur, uint64(end)))) - first
	for i := range max(n, 0) {
		at := first + (skip+i)%n
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", tid, at)); errors.Is(err, os.ErrNotExist) {
			return at, nil
		} else if err != nil {
			return 0, err
		}
	}
	return 0, errNoNumber
}

// numbered is a rule for calls on descriptors of a range, with further tests.
func numbered(nr uint32, first, end int, tests ...seccomp.Test) seccomp.Rule {
	return seccomp.Rule{Nr: nr, Ret: seccomp.Notify, Tests: append([]seccomp.Test{
		{Arg: 0, Op: seccomp.AtLeast, Value: uint32(first)}, {Arg: 0, Op: seccomp.Below, Value: uint32(end)}}, tests...)}
}
