//go:build !hw

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// perfOnDevice has rdmasim-hw, the same program built with the tag hw, carry out the command in
// place of this one.
func perfOnDevice(*cobra.Command, *perfFlags, *perf.Options, *comparison) error {
	program, err := hwProgram()
	if err != nil {
		return err
	}
	return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
}

// hwProgram finds rdmasim-hw: $RDMASIM_HW, beside this program, or in PATH.
func hwProgram() (string, error) {
	const name = "rdmasim-hw"
	var places []string
	if p := os.Getenv("RDMASIM_HW"); p != "" {
		places = append(places, p)
	}
	if self, err := os.Executable(); err == nil {
		places = append(places, filepath.Join(filepath.Dir(self), name))
	}
	for _, p := range places {
		if s, err := os.Stat(p); err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	return "", usagef("perf: %w", fmt.Errorf(`--target=hw needs rdmasim-hw, which is not beside rdmasim, in $RDMASIM_HW or in PATH.
Build it on the machine that has the device:
  apt-get install gcc libibverbs-dev ibverbs-providers
  make rdmasim-hw, or CGO_ENABLED=1 go build -tags hw -o rdmasim-hw ./cmd/rdmasim`))
}
