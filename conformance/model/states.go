package model

import "github.com/rdmasim/rdmasim/verbs"

// transition is a row of the kernel's table of states (drivers/infiniband/core/verbs.c,
// qp_state_table) by type: what must and what may be given besides the state.
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

// Attributes of a queue pair that answers, and of one that asks.
const (
	ofReplies  = verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	ofRequests = verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
)

// ignored are the attributes that a call may give and that the type does not have
// (drivers/infiniband/core/uverbs_cmd.c, modify_qp_mask).
func ignored(t verbs.QPType) verbs.QPAttrMask {
	switch t {
	case verbs.QPTXRCSend:
		return ofReplies
	case verbs.QPTXRCRecv:
		return ofRequests
	}
	return 0
}

// legal reports whether a queue pair may go from one state to another with the attributes of the
// mask.
func legal(t verbs.QPType, from, to verbs.QPState, mask verbs.QPAttrMask) bool {
	var tr transition
	pick := func(reliable, connected, datagram verbs.QPAttrMask) verbs.QPAttrMask {
		switch t {
		case verbs.QPTRC, verbs.QPTXRCRecv:
			return reliable
		case verbs.QPTUD:
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
		switch t {
		case verbs.QPTXRCSend:
			tr.must = rtsReliable
		case verbs.QPTXRCRecv:
			tr.must = rtsReliable &^ ofRequests
		}
	case [2]verbs.QPState{verbs.QPSRTS, verbs.QPSRTS}, [2]verbs.QPState{verbs.QPSSQD, verbs.QPSRTS}, [2]verbs.QPState{verbs.QPSSQE, verbs.QPSRTS}:
		tr.may = live
	case [2]verbs.QPState{verbs.QPSRTS, verbs.QPSSQD}:
		tr.may = verbs.QPMaskEnSQDAsyncNotify
	case [2]verbs.QPState{verbs.QPSSQD, verbs.QPSSQD}:
		tr.may = pick(sqdReliable, rtrMay|verbs.QPMaskPathMigState|verbs.QPMaskAV, verbs.QPMaskPKeyIndex|verbs.QPMaskQKey)
		switch t {
		case verbs.QPTXRCSend:
			tr.may = sqdReliable &^ ofReplies
		case verbs.QPTXRCRecv:
			tr.may = sqdReliable &^ ofRequests
		}
	default:
		if to != verbs.QPSReset && (to != verbs.QPSErr || from == verbs.QPSReset) {
			return false
		}
	}
	rest := mask &^ verbs.QPMaskState
	return rest&tr.must == tr.must && rest&^(tr.must|tr.may) == 0
}
