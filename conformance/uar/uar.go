// Package uar holds the cases of area UAR: user access regions.
package uar

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("UAR-001", writeCombining)
	s.Case("UAR-002", singleton)
	s.Case("UAR-003", dedicated)
	s.Case("UAR-004", fourToAPage)
	s.Case("UAR-005", undefinedFlag)
	s.Case("UAR-006", registerInPage)
	s.Case("UAR-007", twoToAPage)
	s.Case("UAR-008", freeSingleton)
	s.Case("UAR-011", foreignPage)
	s.Case("UAR-013", withoutTD)
	s.Case("UAR-014", closeUnmaps)
	s.Case("UAR-015", totalUUARs)
	s.Case("UAR-016", pagesOfBigSystemPage)
	s.Case("UAR-018", legacyPath)
	s.Case("UAR-019", fallback)
	s.Case("UAR-020", oldLibrary)
}
