package rule

import (
	"errors"
	"fmt"
	"syscall"
)

// errnos are the rules by which a refusal says why, and what a mutant says in place of each.
var errnos = []struct {
	rule     Rule
	from, to syscall.Errno
}{
	{InvalidIsSaid, syscall.EINVAL, syscall.EIO}, {BusyIsSaid, syscall.EBUSY, syscall.EINVAL}, {NoRoomIsSaid, syscall.ENOMEM, syscall.EINVAL},
	{NoSupportIsSaid, syscall.EOPNOTSUPP, syscall.EINVAL}, {NoObjectIsSaid, syscall.ENOENT, syscall.EINVAL}, {NoRightIsSaid, syscall.EPERM, syscall.EINVAL},
	{NoMemoryThereIsSaid, syscall.EFAULT, syscall.EINVAL}, {NoDataIsSaid, syscall.ENODATA, syscall.EINVAL},
}

// Answer is what a call that refuses returns: the error, or with a rule of errnos broken another.
func (b Broken) Answer(err error) error {
	if !Mutants || err == nil {
		return err
	}
	for _, e := range errnos {
		if b.Has(e.rule) && errors.Is(err, e.from) {
			return fmt.Errorf("%v: %w", err, e.to)
		}
	}
	return err
}
