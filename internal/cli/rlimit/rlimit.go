//go:build linux

// Package rlimit says in one sentence which limit of the process (ulimit) is too low, before the Go
// runtime or a library ends the program for want of it.
package rlimit

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Least of what the programs need. The Go runtime reserves about 1.3 GiB of addresses, of which it
// takes a small part as memory; measured for the whole suite and for exec. Below 0.8 GiB it ends
// before a program can look at its limits. Descriptors: the runtime, outputs, workers.
const (
	addressSpace = 1536 << 20
	descriptors  = 64
)

// HardwareAddressSpace is what conform-hw needs: the C library reserves up to 128 MiB of addresses
// for each thread beside its stack. Measured: 2.1 GiB.
const HardwareAddressSpace = 3 << 30

// Check returns an error if a limit is too low for a program without C.
func Check() error {
	if err := CheckAddressSpace(addressSpace); err != nil {
		return err
	}
	n, low := below(unix.RLIMIT_NOFILE, descriptors)
	if low {
		return fmt.Errorf("%d files may be open at a time, and at least %d are needed: raise the limit (ulimit -n)", n, descriptors)
	}
	return nil
}

// CheckAddressSpace returns an error if the process may not have so many bytes of addresses.
func CheckAddressSpace(least uint64) error {
	if n, low := below(unix.RLIMIT_AS, least); low {
		return fmt.Errorf("the address space is limited to %d MiB, and at least %d are needed: raise the limit (ulimit -v)", n>>20, least>>20)
	}
	return nil
}

// below reports whether a limit is lower than that, after an attempt to raise it.
func below(which int, least uint64) (now uint64, low bool) {
	var l unix.Rlimit
	if unix.Getrlimit(which, &l) != nil || l.Cur >= least {
		return 0, false
	}
	raised := unix.Rlimit{Cur: min(l.Max, least), Max: l.Max}
	if unix.Setrlimit(which, &raised) == nil {
		l = raised
	}
	return l.Cur, l.Cur < least
}
