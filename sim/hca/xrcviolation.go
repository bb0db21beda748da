package hca

import "github.com/rdmasim/rdmasim/roce"

// XRCViolation is how an XRC target answers a request that names no SRQ which it may use: none, or
// one of another domain. The target goes to ERR.
type XRCViolation uint8

// Answers.
const (
	ViolationIsAccess  XRCViolation = iota // remote access error; the event of the target is QP_ACCESS_ERR
	ViolationIsRequest                     // invalid request; QP_REQ_ERR
)

// nak is the answer on the wire.
func (v XRCViolation) nak() roce.Syndrome {
	if v == ViolationIsRequest {
		return roce.NAKInvalidRequest
	}
	return roce.NAKRemoteAccess
}
