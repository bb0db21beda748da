package model

import "github.com/rdmasim/rdmasim/verbs"

// transition is a row of the kernel's table of states (drivers/infiniband/core/verbs.c, qp_state_table) for types that
// are not XRC: what must and what may be given besides the state.
type transition struct{ must, may verbs.QPAttrMask }

const (
	initConnected = verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	initDatagram  = verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskQKey
	rtrConnected  = verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	rtrReliable   = rtrConnected | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	rtrMay        = verbs.QPMaskAltPath | verbs.QPMaskAccessFlags | verbs.QPMaskPKeyIndex
	rtsReliable   = verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskSQPSN | verbs.QPMaskMaxQPRdAtomic
	liveConnected = verbs.QPMaskCurState | verbs.QPMaskAltPath | verbs.QPMaskAccessFlags | verbs.QPMaskPathMigState
	liveDatagram  = verbs.QPMaskCurState | verbs.QPMaskQKey
	sqdReliable   = rtrMay | verbs.QPMaskPathMigState | verbs.QPMaskPort | verbs.QPMaskAV | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt |
		verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
)

// legal reports whether a queue pair may go from one state to another with the attributes of the mask.
func legal(t verbs.QPType, from, to verbs.QPState, mask verbs.QPAttrMask) bool {
	var tr transition
	rc, ud := t == verbs.QPTRC, t == verbs.QPTUD
	pick := func(reliable, connected, datagram verbs.QPAttrMask) verbs.QPAttrMask {
		switch {
		case rc:
			return reliable
		case ud:
			return datagram
		}
		return connected
	}
	live := pick(liveConnected|verbs.QPMaskMinRNRTimer, liveConnected, liveDatagram)
	switch [2]verbs.QPState{from, to} {
	case [2]verbs.QPState{verbs.QPSReset, verbs.QPSInit}:
		tr.must = pick(initConnected, initConnected, initDatagram)
	case [2]verbs.QPState{verbs.QPSInit, verbs.QPSInit}:
		tr.may = pick(initConnected, initConnected, initDatagram)
	case [2]verbs.QPState{verbs.QPSInit, verbs.QPSRTR}:
		tr = transition{pick(rtrReliable, rtrConnected, 0), pick(rtrMay, rtrMay, verbs.QPMaskPKeyIndex|verbs.QPMaskQKey)}
	case [2]verbs.QPState{verbs.QPSRTR, verbs.QPSRTS}:
		tr = transition{pick(rtsReliable, verbs.QPMaskSQPSN, verbs.QPMaskSQPSN), live}
	case [2]verbs.QPState{verbs.QPSRTS, verbs.QPSRTS}, [2]verbs.QPState{verbs.QPSSQD, verbs.QPSRTS}, [2]verbs.QPState{verbs.QPSSQE, verbs.QPSRTS}:
		tr.may = live
	case [2]verbs.QPState{verbs.QPSRTS, verbs.QPSSQD}:
		tr.may = verbs.QPMaskEnSQDAsyncNotify
	case [2]verbs.QPState{verbs.QPSSQD, verbs.QPSSQD}:
		tr.may = pick(sqdReliable, rtrMay|verbs.QPMaskPathMigState|verbs.QPMaskAV, verbs.QPMaskPKeyIndex|verbs.QPMaskQKey)
	default:
		if to != verbs.QPSReset && (to != verbs.QPSErr || from == verbs.QPSReset) {
			return false
		}
	}
	rest := mask &^ verbs.QPMaskState
	return rest&tr.must == tr.must && rest&^(tr.must|tr.may) == 0
}
