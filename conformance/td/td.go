// Package td holds the cases of area TD: thread domains.
package td

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("TD-001", anyOrder)
	s.Case("TD-002", compMask)
	s.Case("TD-003", referenced)
	s.Case("TD-004", withoutDomains)
	s.Case("TD-005", noLock)
	s.Case("TD-006", lockPerPost)
	s.Case("TD-007", sameTranscript)
	s.Case("TD-008", threadsWithOwn)
	s.Case("TD-009", threadsSharing)
	s.Case("TD-010", raceDetected)
	s.Case("TD-011", twoQPs)
	s.Case("TD-012", srqLock)
	s.Case("TD-013", cqLock)
	s.Case("TD-014", firstPair)
	s.Case("TD-015", thirdOnNewPage)
	s.Case("TD-016", pairsOnly)
	s.Case("TD-017", slotReuse)
	s.Case("TD-018", independentPages)
	s.Case("TD-019", independentCost)
	s.Case("TD-021", exhaustion)
	s.Case("TD-022", neighbourAtFullRate)
	s.Case("TD-023", inOrderOfFreeing)
	s.Case("TD-024", inOrderOfFreeing)
	s.Case("TD-025", lowestFirst)
}
