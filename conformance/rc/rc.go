// Package rc holds the cases of area RC: the reliable connection.
package rc

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("RC-001", sizes)
	s.Case("RC-002", immediate)
	s.Case("RC-003", write)
	s.Case("RC-004", writeImmediate)
	s.Case("RC-005", read)
	s.Case("RC-006", zeroLength)
	s.Case("RC-007", bounds)
	s.Case("RC-008", wrap)
	s.Case("RC-009", readNotAllowed)
	s.Case("RC-010", writeNotAllowed)
	s.Case("RC-011", qpAccess)
	s.Case("RC-012", tooLong)
	s.Case("RC-013", rnrZero)
	s.Case("RC-014", rnrCount)
	s.Case("RC-015", rnrForEver)
	s.Case("RC-016", peerGone)
	s.Case("RC-017", retryCount)
	s.Case("RC-018", retryTime, spec.Deadline(20*time.Minute)) // the longest timer is of 69 s
	s.Case("RC-019", timeoutZero)
	s.Case("RC-020", postedOrder)
	s.Case("RC-021", fence)
	s.Case("RC-022", readAfterWrite)
	s.Case("RC-023", aboveResponder)
	s.Case("RC-024", responderInRTR)
	s.Case("RC-025", responderNotReady)
	s.Case("RC-026", otherSource)
	s.Case("RC-027", selfLoop)
	s.Case("RC-028", largest)
	s.Case("RC-029", sendInvalidate)
	s.Case("RC-030", redZones)
	s.Case("RC-031", atomicWrite)
	s.Case("RC-033", otherAddress)
	s.Case("RC-034", randomMessages, spec.Deadline(10*time.Minute)) // timeouts of half a second, some hundred of them
	s.Case("RC-035", timerInRNRWait)
	s.Case("RC-036", silenceAfterRNR)
	s.Case("RC-037", rnrTimerAlone)
	s.Case("RC-038", announcedReceives)
}
