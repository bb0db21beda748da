// Package errs holds the cases of area ERR: completion in error and recovery.
package errs

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

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
	s.Case("ERR-025", localKeyUnknown)
	s.Case("ERR-026", localLength)
	s.Case("ERR-027", readWithoutLocalWrite)
	s.Case("ERR-028", refusedByQP)
	s.Case("ERR-029", refusedByKey)
	s.Case("ERR-030", noReceive)
	s.Case("ERR-031", noAnswer)
	s.Case("ERR-032", takesInRTR)
	s.Case("ERR-033", flushedHead)
	s.Case("ERR-034", requesterCounters)
	s.Case("ERR-035", responderCounters)
	s.Case("ERR-036", countersOfRefused)
	s.Case("ERR-037", flushCounters)
	s.Case("ERR-038", noAnswerCounters)
	s.Case("ERR-039", detectionTimes, spec.Deadline(10*time.Minute))
	s.Case("ERR-040", transmissions)
	s.Case("ERR-041", landedPackets)
	s.Case("ERR-042", sentBeforeLengthError)
	s.Case("ERR-043", psnAfterNAK)
	s.Case("ERR-044", psnAfterSilence)
	s.Case("ERR-045", movedInTheMiddle)
	s.Case("ERR-046", silenceAfterDereg)
	s.Case("ERR-047", recordInError)
}
