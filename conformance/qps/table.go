package qps

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// legal lists the states that a state leads to, of the table that the kernel's
// ib_modify_qp_is_ok consults (drivers/infiniband/core/verbs.c, qp_state_table).
var legal = map[verbs.QPState][]verbs.QPState{
	verbs.QPSReset: {verbs.QPSReset, verbs.QPSInit},
	verbs.QPSInit:  {verbs.QPSReset, verbs.QPSInit, verbs.QPSRTR, verbs.QPSErr},
	verbs.QPSRTR:   {verbs.QPSReset, verbs.QPSRTS, verbs.QPSErr},
	verbs.QPSRTS:   {verbs.QPSReset, verbs.QPSRTS, verbs.QPSSQD, verbs.QPSErr},
	verbs.QPSErr:   {verbs.QPSReset, verbs.QPSErr},
}

// states in the order in which the generated cases take them as a start: those that
// software can reach everywhere (SQD is refused by mlx5, SQE is entered by an error).
var starts = []verbs.QPState{verbs.QPSReset, verbs.QPSInit, verbs.QPSRTR, verbs.QPSRTS, verbs.QPSErr}

// targets are all states that a request may name.
var targets = []verbs.QPState{verbs.QPSReset, verbs.QPSInit, verbs.QPSRTR, verbs.QPSRTS, verbs.QPSSQD, verbs.QPSSQE,
	verbs.QPSErr}

func isLegal(from, to verbs.QPState) bool { return slices.Contains(legal[from], to) }

// transition is a row of the table for one type: what must and what may be given
// besides the state.
type transition struct {
	from, to           verbs.QPState
	required, optional verbs.QPAttrMask
}

const (
	connectedInit = verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	datagramInit  = verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskQKey
	connectedRTR  = verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	reliableRTR   = connectedRTR | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	reliableRTS   = verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskSQPSN |
		verbs.QPMaskMaxQPRdAtomic
	rtrOptional   = verbs.QPMaskAltPath | verbs.QPMaskAccessFlags | verbs.QPMaskPKeyIndex
	liveOptional  = verbs.QPMaskCurState | verbs.QPMaskAltPath | verbs.QPMaskAccessFlags | verbs.QPMaskPathMigState
	datagramExtra = verbs.QPMaskPKeyIndex | verbs.QPMaskQKey
	datagramLive  = verbs.QPMaskCurState | verbs.QPMaskQKey
)

// transitions of a type between the states of starts.
func transitions(t verbs.QPType) []transition {
	var initAttrs, toRTR, mayRTR, toRTS, live verbs.QPAttrMask
	switch t {
	case verbs.QPTRC:
		initAttrs, toRTR, mayRTR, toRTS, live = connectedInit, reliableRTR, rtrOptional, reliableRTS,
			liveOptional|verbs.QPMaskMinRNRTimer
	case verbs.QPTUC:
		initAttrs, toRTR, mayRTR, toRTS, live = connectedInit, connectedRTR, rtrOptional, verbs.QPMaskSQPSN, liveOptional
	case verbs.QPTUD:
		initAttrs, toRTR, mayRTR, toRTS, live = datagramInit, 0, datagramExtra, verbs.QPMaskSQPSN, datagramLive
	case verbs.QPTXRCSend:
		initAttrs, toRTR, mayRTR, toRTS, live = connectedInit, connectedRTR, rtrOptional, reliableRTS, liveOptional
	case verbs.QPTXRCRecv:
		initAttrs, toRTR, mayRTR, toRTS, live = connectedInit, reliableRTR, rtrOptional, verbs.QPMaskSQPSN|verbs.QPMaskTimeout,
			liveOptional|verbs.QPMaskMinRNRTimer
	}
	out := []transition{
		{from: verbs.QPSReset, to: verbs.QPSInit, required: initAttrs},
		{from: verbs.QPSInit, to: verbs.QPSInit, optional: initAttrs},
		{from: verbs.QPSInit, to: verbs.QPSRTR, required: toRTR, optional: mayRTR},
		{from: verbs.QPSRTR, to: verbs.QPSRTS, required: toRTS, optional: live},
		{from: verbs.QPSRTS, to: verbs.QPSRTS, optional: live},
	}
	for _, s := range starts {
		if s != verbs.QPSReset {
			out = append(out, transition{from: s, to: verbs.QPSErr})
		}
		out = append(out, transition{from: s, to: verbs.QPSReset})
	}
	return out
}

// drainedTransitions are those into SQD and out of it, which not every device has.
func drainedTransitions(t verbs.QPType) []transition {
	var live, drained verbs.QPAttrMask
	switch t {
	case verbs.QPTRC:
		live = liveOptional | verbs.QPMaskMinRNRTimer
		drained = rtrOptional | verbs.QPMaskPathMigState | verbs.QPMaskPort | verbs.QPMaskAV | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt |
			verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	case verbs.QPTUC:
		live, drained = liveOptional, rtrOptional|verbs.QPMaskPathMigState|verbs.QPMaskAV
	case verbs.QPTUD:
		live, drained = datagramLive, datagramExtra
	}
	return []transition{
		{from: verbs.QPSRTS, to: verbs.QPSSQD, optional: verbs.QPMaskEnSQDAsyncNotify},
		{from: verbs.QPSSQD, to: verbs.QPSSQD, optional: drained},
		{from: verbs.QPSSQD, to: verbs.QPSRTS, optional: live},
		{from: verbs.QPSSQD, to: verbs.QPSErr},
		{from: verbs.QPSSQD, to: verbs.QPSReset},
	}
}

// otherDirection are the attributes that the kernel takes out of the mask of one direction of XRC,
// whatever the transition (modify_qp_mask): QPS-033.
func otherDirection(t verbs.QPType) verbs.QPAttrMask {
	switch t {
	case verbs.QPTXRCSend:
		return verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	case verbs.QPTXRCRecv:
		return verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry
	}
	return 0
}

// attributes names every bit of the mask that a program can set, except the state.
var attributes = []struct {
	name string
	bit  verbs.QPAttrMask
}{
	{"CUR_STATE", verbs.QPMaskCurState}, {"EN_SQD_ASYNC_NOTIFY", verbs.QPMaskEnSQDAsyncNotify},
	{"ACCESS_FLAGS", verbs.QPMaskAccessFlags}, {"PKEY_INDEX", verbs.QPMaskPKeyIndex}, {"PORT", verbs.QPMaskPort},
	{"QKEY", verbs.QPMaskQKey}, {"AV", verbs.QPMaskAV}, {"PATH_MTU", verbs.QPMaskPathMTU},
	{"TIMEOUT", verbs.QPMaskTimeout}, {"RETRY_CNT", verbs.QPMaskRetryCnt}, {"RNR_RETRY", verbs.QPMaskRNRRetry},
	{"RQ_PSN", verbs.QPMaskRQPSN}, {"MAX_QP_RD_ATOMIC", verbs.QPMaskMaxQPRdAtomic}, {"ALT_PATH", verbs.QPMaskAltPath},
	{"MIN_RNR_TIMER", verbs.QPMaskMinRNRTimer}, {"SQ_PSN", verbs.QPMaskSQPSN},
	{"MAX_DEST_RD_ATOMIC", verbs.QPMaskMaxDestRdAtomic}, {"PATH_MIG_STATE", verbs.QPMaskPathMigState},
	{"CAP", verbs.QPMaskCap}, {"DEST_QPN", verbs.QPMaskDestQPN}, {"RATE_LIMIT", verbs.QPMaskRateLimit},
}

// qpType is a type that the generated cases run over, where the target has it.
type qpType struct {
	name, token string
	typ         verbs.QPType
}

// types of the table.
var types = []qpType{{"RC", "", verbs.QPTRC}, {"UC", "uc", verbs.QPTUC}, {"UD", "ud", verbs.QPTUD},
	{"XRC_SEND", "xrc", verbs.QPTXRCSend}, {"XRC_RECV", "xrc", verbs.QPTXRCRecv}}

// offered are the types that the target can create: the states of a queue pair are one
// thing and its traffic another. Only a type that the target says it lacks may be
// refused. Whether there is XRC is the affair of its own cases.
func offered(c *spec.C, e *kit.Env) []qpType {
	var out []qpType
	for _, t := range types {
		if t.token == "xrc" {
			if c.Has(t.token) {
				out = append(out, t)
			}
			continue
		}
		a := initAttr(c, e)
		a.Type = t.typ
		set := []syscall.Errno{0}
		if t.token != "" && c.TB.Capability(t.token) == verbs.Absent {
			set = append(set, syscall.EOPNOTSUPP, syscall.EINVAL)
		}
		if c.ErrnoIn("create a QP of type "+t.name, create(c, e, a), set...) == 0 {
			out = append(out, t)
		}
	}
	return out
}

// optionsOf are the kit's defaults for a type.
func optionsOf(t verbs.QPType) kit.Options {
	o := kit.Default()
	o.Type = t
	return o
}
