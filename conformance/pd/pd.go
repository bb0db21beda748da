// Package pd holds the cases of area PD: protection and parent domains.
package pd

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {}
