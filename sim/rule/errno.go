package rule

import (
	"errors"
	"fmt"
	"syscall"
)

// errnos are the rules by which a refusal says why.
var errnos = []struct {
	rule  Rule
	errno syscall.Errno
}{
	{InvalidIsSaid, syscall.EINVAL}, {BusyIsSaid, syscall.EBUSY}, {NoRoomIsSaid, syscall.ENOMEM}, {NoSupportIsSaid, syscall.EOPNOTSUPP},
	{NoObjectIsSaid, syscall.ENOENT}, {NoRightIsSaid, syscall.EPERM}, {NoMemoryThereIsSaid, syscall.EFAULT}, {NoDataIsSaid, syscall.ENODATA},
}

// Answer is what a call that refuses returns: the error, or with the rule of its errno broken EIO,
// which says nothing.
func (b Broken) Answer(err error) error {
	if !Mutants || err == nil {
		return err
	}
	for _, e := range errnos {
		if b.Has(e.rule) && errors.Is(err, e.errno) {
			return fmt.Errorf("%v: %w", err, syscall.EIO)
		}
	}
	return err
}
