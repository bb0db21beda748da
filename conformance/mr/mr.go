// Package mr holds the cases of area MR: memory regions.
package mr

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {}
