package kernel

import (
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Attribute masks under short names, for the tables below.
const (
	mState    = verbs.QPMaskState
	mCur      = verbs.QPMaskCurState
	mSQDEvent = verbs.QPMaskEnSQDAsyncNotify
	mAccess   = verbs.QPMaskAccessFlags
	mPKey     = verbs.QPMaskPKeyIndex
	mPort     = verbs.QPMaskPort
	mQKey     = verbs.QPMaskQKey
	mAV       = verbs.QPMaskAV
	mMTU      = verbs.QPMaskPathMTU
	mTimeout  = verbs.QPMaskTimeout
	mRetry    = verbs.QPMaskRetryCnt
	mRNRRetry = verbs.QPMaskRNRRetry
	mRQPSN    = verbs.QPMaskRQPSN
	mRdAtom   = verbs.QPMaskMaxQPRdAtomic
	mAlt      = verbs.QPMaskAltPath
	mRNRTimer = verbs.QPMaskMinRNRTimer
	mSQPSN    = verbs.QPMaskSQPSN
	mDestRd   = verbs.QPMaskMaxDestRdAtomic
	mPathMig  = verbs.QPMaskPathMigState
	mDestQPN  = verbs.QPMaskDestQPN
	mRate     = verbs.QPMaskRateLimit

	// knownMask is what modify understands at all (IB_QP_ATTR_STANDARD_BITS and the
	// rate limit).
	knownMask = 1<<21 - 1 | mRate
)

// service is a column of the table: transports with rules of their own.
type service uint8

const (
	svcRC service = iota
	svcUC
	svcUD
	svcXRCSend
	svcXRCRecv
	svcRaw
	services
	// The ends of the dynamically connected transport, which have no column (dc.go).
	svcDCI
	svcDCT
)

// connected says whether ib_core resolves the addresses that come with a transition
// (is_qp_type_connected).
func (s service) connected() bool {
	return s == svcRC || s == svcUC || s == svcXRCSend || s == svcXRCRecv
}

var serviceOf = map[verbs.QPType]service{verbs.QPTRC: svcRC, verbs.QPTUC: svcUC, verbs.QPTUD: svcUD, verbs.QPTXRCSend: svcXRCSend,
	verbs.QPTXRCRecv: svcXRCRecv, verbs.QPTRawPacket: svcRaw}

// transition is one cell: whether it exists, and for each service the attributes
// that must and that may come with it.
type transition struct {
	valid bool
	must  [services]verbs.QPAttrMask
	may   [services]verbs.QPAttrMask
}

const states = int(verbs.QPSErr) + 1

// Rows that several cells share.
var (
	initAttrs = [services]verbs.QPAttrMask{
		svcRC: mPKey | mPort | mAccess, svcUC: mPKey | mPort | mAccess, svcUD: mPKey | mPort | mQKey,
		svcXRCSend: mPKey | mPort | mAccess, svcXRCRecv: mPKey | mPort | mAccess, svcRaw: mPort,
	}
	initAgain = [services]verbs.QPAttrMask{ // the same, without the raw packet port
		svcRC: mPKey | mPort | mAccess, svcUC: mPKey | mPort | mAccess, svcUD: mPKey | mPort | mQKey,
		svcXRCSend: mPKey | mPort | mAccess, svcXRCRecv: mPKey | mPort | mAccess,
	}
	liveAttrs = [services]verbs.QPAttrMask{ // what may change while the QP can send
		svcRC: mCur | mAlt | mAccess | mRNRTimer | mPathMig, svcUC: mCur | mAlt | mAccess | mPathMig,
		svcUD: mCur | mQKey, svcXRCSend: mCur | mAlt | mAccess | mPathMig,
		svcXRCRecv: mCur | mAlt | mAccess | mRNRTimer | mPathMig, svcRaw: mRate,
	}
	resumeAttrs = [services]verbs.QPAttrMask{ // SQD to RTS: the same without raw packet
		svcRC: mCur | mAlt | mAccess | mRNRTimer | mPathMig, svcUC: mCur | mAlt | mAccess | mPathMig,
		svcUD: mCur | mQKey, svcXRCSend: mCur | mAlt | mAccess | mPathMig,
		svcXRCRecv: mCur | mAlt | mAccess | mRNRTimer | mPathMig,
	}
)

// transitions is qp_state_table of ib_core (core/verbs.c): [from][to].
var transitions = [states][states]transition{
	verbs.QPSReset: {
		verbs.QPSReset: {valid: true},
		verbs.QPSInit:  {valid: true, must: initAttrs},
	},
	verbs.QPSInit: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
		verbs.QPSInit:  {valid: true, may: initAgain},
		verbs.QPSRTR: {
			valid: true,
			must: [services]verbs.QPAttrMask{
				svcRC:      mAV | mMTU | mDestQPN | mRQPSN | mDestRd | mRNRTimer,
				svcUC:      mAV | mMTU | mDestQPN | mRQPSN,
				svcXRCSend: mAV | mMTU | mDestQPN | mRQPSN,
				svcXRCRecv: mAV | mMTU | mDestQPN | mRQPSN | mDestRd | mRNRTimer,
			},
			may: [services]verbs.QPAttrMask{
				svcRC: mAlt | mAccess | mPKey, svcUC: mAlt | mAccess | mPKey, svcUD: mPKey | mQKey,
				svcXRCSend: mAlt | mAccess | mPKey, svcXRCRecv: mAlt | mAccess | mPKey,
			},
		},
	},
	verbs.QPSRTR: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
		verbs.QPSRTS: {
			valid: true,
			must: [services]verbs.QPAttrMask{
				svcRC: mTimeout | mRetry | mRNRRetry | mSQPSN | mRdAtom, svcUC: mSQPSN, svcUD: mSQPSN,
				svcXRCSend: mTimeout | mRetry | mRNRRetry | mSQPSN | mRdAtom, svcXRCRecv: mTimeout | mSQPSN,
			},
			may: liveAttrs,
		},
	},
	verbs.QPSRTS: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
		verbs.QPSRTS:   {valid: true, may: liveAttrs},
		verbs.QPSSQD: {
			valid: true,
			may: [services]verbs.QPAttrMask{
				svcRC: mSQDEvent, svcUC: mSQDEvent, svcUD: mSQDEvent, svcXRCSend: mSQDEvent, svcXRCRecv: mSQDEvent,
			},
		},
	},
	verbs.QPSSQD: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
		verbs.QPSRTS:   {valid: true, may: resumeAttrs},
		verbs.QPSSQD: {
			valid: true,
			may: [services]verbs.QPAttrMask{
				svcRC: mPort | mAV | mTimeout | mRetry | mRNRRetry | mRdAtom | mDestRd | mAlt | mAccess | mPKey | mRNRTimer | mPathMig,
				svcUC: mAV | mAlt | mAccess | mPKey | mPathMig,
				svcUD: mPKey | mQKey,
				svcXRCSend: mPort | mAV | mTimeout | mRetry | mRNRRetry | mRdAtom | mAlt | mAccess | mPKey |
					mPathMig,
				svcXRCRecv: mPort | mAV | mTimeout | mDestRd | mAlt | mAccess | mPKey | mRNRTimer | mPathMig,
			},
		},
	},
	verbs.QPSSQE: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
		verbs.QPSRTS: {
			valid: true,
			may:   [services]verbs.QPAttrMask{svcUC: mCur | mAccess, svcUD: mCur | mQKey},
		},
	},
	verbs.QPSErr: {
		verbs.QPSReset: {valid: true},
		verbs.QPSErr:   {valid: true},
	},
}

// modifyIsOK is ib_modify_qp_is_ok: all that the cell demands, nothing beside what
// it demands or allows, and the state bit.
func modifyIsOK(from, to verbs.QPState, s service, mask verbs.QPAttrMask) bool {
	return transitions[from][to].takes(from, s, mask)
}

func (t *transition) takes(from verbs.QPState, s service, mask verbs.QPAttrMask) bool {
	if mask&mCur != 0 && from != verbs.QPSRTR && from != verbs.QPSRTS && from != verbs.QPSSQD && from != verbs.QPSSQE {
		return false
	}
	must, may := t.must[s], t.may[s]
	return t.valid && mask&must == must && mask&^(must|may|mState) == 0
}

// broken is the cell, with what a run has wrong in it (sim/mutant).
func (t transition) broken(from, to verbs.QPState, s service, b rule.TableBit) transition {
	of := serviceOf[verbs.QPType(b.Type)]
	if b.As == 0 || uint8(from) != b.From || uint8(to) != b.To || s != of {
		return t
	}
	bit := verbs.QPAttrMask(b.Attribute)
	if bit == 0 {
		t.valid = b.As != rule.Refused
		return t
	}
	t.must[s] &^= bit
	t.may[s] &^= bit
	switch b.As {
	case rule.Needed:
		t.must[s] |= bit
	case rule.Optional:
		t.may[s] |= bit
	}
	return t
}

// Transition reports whether QPs of a type can go from one state to another, and returns the
// attributes that the transition needs and those that it may have.
func Transition(t verbs.QPType, from, to verbs.QPState) (needed, optional verbs.QPAttrMask, ok bool) {
	s, known := serviceOf[t]
	if !known || int(from) >= states || int(to) >= states {
		return 0, 0, false
	}
	c := &transitions[from][to]
	return c.must[s], c.may[s], c.valid
}
