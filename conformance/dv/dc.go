package dv

import "github.com/rdmasim/rdmasim/conformance/spec"

// registerDC adds the cases of the dynamically connected transport.
func registerDC(*spec.Suite) {}
