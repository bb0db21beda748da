// Package oracle judges a capture: a state machine for each direction of a
// connection replays what its requester sent and what the responder answered, and
// says which rule of the transport is broken, where, and by whom.
//
// The rules are numbered OR-001 to OR-110 (Rules). Each verdict names its rule and,
// where there is one, the frame and the flow. A verdict is a violation, a warning, a
// note, or inconclusive: the last wherever a frame that was lost, or that the capture
// lacks, would explain what is seen.
//
// The gate comes first: unless the capture is whole (times in order, nothing dropped
// by the tap), no rule that needs history is judged. What the capture cannot show
// (keys, timers, limits of a QP) is learned from the frames or given in Options; a
// rule whose facts are missing gives no verdict.
package oracle
