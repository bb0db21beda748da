package dv

import "github.com/rdmasim/rdmasim/conformance/spec"

// registerMkey adds the cases of memory keys of direct verbs and of copies by the device.
func registerMkey(*spec.Suite) {}
