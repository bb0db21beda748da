// Package dev holds the cases of area DEV: device, port and GID queries.
package dev

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {}
