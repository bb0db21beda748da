// Package qps holds the cases of area QPS: creation, attributes and the state machine
// of queue pairs.
package qps

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	registerMachine(s)
	registerAttributes(s)
	registerCreation(s)
	registerLife(s)
	registerDrain(s)
}
