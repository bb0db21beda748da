// Package ud holds the cases of area UD: datagrams, address handles, multicast.
package ud

import "github.com/rdmasim/rdmasim/conformance/spec"

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("UD-001", routingHeader)
	s.Case("UD-002", ipv4Header)
	s.Case("UD-003", reply)
	s.Case("UD-004", wrongQKey)
	s.Case("UD-005", aboveMTU)
	s.Case("UD-006", shortReceive)
	s.Case("UD-007", noReceive)
	s.Case("UD-008", manyPeers)
	s.Case("UD-009", badPort)
	s.Case("UD-010", noRoute)
	s.Case("UD-011", unreachableGID)
	s.Case("UD-012", emptyGID)
	s.Case("UD-013", handleDestroyed)
	s.Case("UD-014", classAndHops)
	s.Case("UD-015", attachOtherType)
	s.Case("UD-016", attachUnicast)
	s.Case("UD-017", groupOfTwo)
	s.Case("UD-018", attachedTwice)
	s.Case("UD-019", detach)
	s.Case("UD-020", ownGroup)
	s.Case("UD-021", zeroBytes)
	s.Case("UD-022", immediate)
	s.Case("UD-023", longerThanMTU)
	s.Case("UD-024", badReceiveKey)
	s.Case("UD-025", sourceGone)
	s.Case("UD-026", otherDestination)
}
