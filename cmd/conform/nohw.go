//go:build !hw

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// newHW has nothing to make: the hardware target is in conform-hw.
func newHW(harness.Job) (spec.Target, error) {
	return nil, errors.New("this worker was built without the tag hw: make conform-hw")
}

func hwCommands() []*cobra.Command { return nil }
