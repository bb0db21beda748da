package main

import (
	"errors"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

// newSim is the simulator with a profile.
func newSim(string) (spec.Target, error) {
	return nil, errors.New("the simulator's testbed is not wired up yet")
}

// profiles are the names that --profile takes.
func profiles() []string { return []string{"connectx-5"} }
