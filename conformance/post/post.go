// Package post holds the cases of area POST: the rules of posting that all transports
// share.
package post

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("POST-001", badInList)
	s.Case("POST-002", sendQueueFull)
	s.Case("POST-003", recvQueueFull)
	s.Case("POST-004", tooManySendSGEs)
	s.Case("POST-005", tooManyRecvSGEs)
	s.Case("POST-006", inlineTooBig)
	s.Case("POST-007", inlineUpToMax)
	s.Case("POST-008", sendTooEarly)
	s.Case("POST-009", recvInResetAndInit)
	s.Case("POST-010", sendInErr)
	s.Case("POST-011", recvInErr)
	s.Case("POST-012", opcodeOfOtherType)
	s.Case("POST-013", undefinedOpcode)
	s.Case("POST-014", abort)
	s.Case("POST-015", buildError)
	s.Case("POST-016", foreignOps)
	s.Case("POST-017", samePackets)
	s.Case("POST-018", wrIDBits)
	s.Case("POST-019", gatherList)
	s.Case("POST-020", completeInReset)
	s.Case("POST-021", emptySGE)
	s.Case("POST-022", noSGE)
	s.Case("POST-023", chainEqualsSingles)
	s.Case("POST-024", malformedWQEs)
	s.Case("POST-025", foreignOpcodes)
}
