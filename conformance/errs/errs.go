// Package errs holds the cases of area ERR: completion in error and recovery.
package errs

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("ERR-001", requesterError)
	s.Case("ERR-002", responderError)
	s.Case("ERR-003", countOfCompletions)
	s.Case("ERR-004", recovery)
	s.Case("ERR-005", otherQPs)
	s.Case("ERR-006", nakCodes)
	s.Case("ERR-007", syndromes)
	s.Case("ERR-008", vendorError)
	s.Case("ERR-009", responderFault)
	s.Case("ERR-010", nothingOfFailingPacket)
	s.Case("ERR-011", endOutOfBounds)
	s.Case("ERR-012", readBecomesInvalid)
	s.Case("ERR-013", unsignalledChain)
	s.Case("ERR-014", statusText)
	s.Case("ERR-015", destroyCQAfterErrors)
	s.Case("ERR-016", peerKilled)
	s.Case("ERR-017", badResponse)
	s.Case("ERR-018", addressGone)
	s.Case("ERR-020", badKeyPosition)
	s.Case("ERR-021", neverBlocks)
	s.Case("ERR-022", wrongQPN)
	s.Case("ERR-023", differentMTU)
	s.Case("ERR-024", wrongPSN)
}
