package verbs

import (
	"fmt"
	"syscall"
)

// The Unimplemented types are embedded by implementations, so that an interface can grow without
// breaking them. Their methods do nothing; those that can report it return EOPNOTSUPP. A new method
// of an interface is in its type after go generate. An optional interface (one that is found by a
// type assertion) has no such type: to embed it would be to claim it.

//go:generate go run ./internal/genunimplemented Testbed Host Process Buffer Thread Device Context PD DM TD MR CQ CompChannel QP Flow UAR SRQ XRCD AH MW EventChannel CMID

// unimplemented is the answer of a method that an implementation does not have.
func unimplemented(method string) error {
	return fmt.Errorf("verbs: %s is not implemented here: %w", method, syscall.EOPNOTSUPP)
}
