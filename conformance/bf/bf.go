// Package bf holds the cases of area BF: BlueFlame and doorbell writes.
package bf

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("BF-001", wholeBlocks)
	s.Case("BF-002", oneDoorbellForTwo)
	s.Case("BF-003", preferBF)
	s.Case("BF-004", shutUpBlueFlame)
	s.Case("BF-005", alternateHalves)
	s.Case("BF-006", recordFirst)
	s.Case("BF-007", torn)
	s.Case("BF-008", sharedRegister)
	s.Case("BF-009", wrongOrder)
	s.Case("BF-010", unchangedIndex)
	s.Case("BF-011", recordAlone)
	s.Case("BF-012", firstOfItsClassLocked)
	s.Case("BF-013", firstOfItsClassUnlocked)
	s.Case("BF-014", sharedHalves)
}
