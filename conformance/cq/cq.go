// Package cq holds the cases of area CQ: completion queues.
package cq

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {}
