package cm

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// Attributes of each change of state (cm_init_qp_init_attr, cm_init_qp_rtr_attr,
// cm_init_qp_rts_attr).
const (
	initMask = verbs.QPMaskState | verbs.QPMaskAccessFlags | verbs.QPMaskPKeyIndex | verbs.QPMaskPort
	rtrMask  = verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	rtrRC    = verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	rtsMask  = verbs.QPMaskState | verbs.QPMaskSQPSN
	rtsRC    = verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
)

// initiates and responds say which of the attributes of RC a type of QP has.
func initiates(t verbs.QPType) bool { return t == verbs.QPTRC || t == verbs.QPTXRCSend }
func responds(t verbs.QPType) bool  { return t == verbs.QPTRC || t == verbs.QPTXRCRecv }

// qpAttr is ib_cm_init_qp_attr.
func (c *conn) qpAttr(to verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch to {
	case verbs.QPSInit:
		return c.initAttr()
	case verbs.QPSRTR:
		return c.rtrAttr()
	case verbs.QPSRTS:
		return c.rtsAttr()
	}
	return verbs.QPAttr{}, 0, fmt.Errorf("attributes of state %v: %w", to, errInvalid)
}

func (c *conn) initAttr() (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch c.state {
	case reqSent, mraReqRcvd, reqRcvd, mraReqSent, repRcvd, mraRepSent, repSent, mraRepRcvd, established:
	default:
		return verbs.QPAttr{}, 0, c.wrongState("INIT")
	}
	a := verbs.QPAttr{State: verbs.QPSInit, Access: verbs.AccessRemoteWrite, Port: 1, PKeyIndex: uint16(c.av.pkey)}
	if c.respRes > 0 {
		a.Access |= verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	}
	return a, initMask, nil
}

func (c *conn) rtrAttr() (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch c.state {
	case reqRcvd, mraReqSent, repRcvd, mraRepSent, repSent, mraRepRcvd, established:
	default:
		return verbs.QPAttr{}, 0, c.wrongState("RTR")
	}
	a := verbs.QPAttr{State: verbs.QPSRTR, AH: c.av.ah, PathMTU: c.mtu, DestQPN: c.remoteQPN, RQPSN: c.rqPSN}
	mask := rtrMask
	if responds(c.typ) {
		mask |= rtrRC
		a.MaxDestRdAtomic = c.respRes
	}
	return a, mask, nil
}

func (c *conn) rtsAttr() (verbs.QPAttr, verbs.QPAttrMask, error) {
	switch c.state {
	case reqRcvd, mraReqSent, repRcvd, mraRepSent, repSent, mraRepRcvd, established:
	default:
		return verbs.QPAttr{}, 0, c.wrongState("RTS")
	}
	a := verbs.QPAttr{State: verbs.QPSRTS, SQPSN: c.sqPSN}
	mask := rtsMask
	if initiates(c.typ) {
		mask |= rtsRC
		a.RetryCnt, a.RNRRetry, a.MaxRdAtomic = c.retryCount, c.rnrRetry, c.initDepth
	}
	if initiates(c.typ) || c.typ == verbs.QPTXRCRecv {
		mask |= verbs.QPMaskTimeout
		a.Timeout = c.av.timeout
	}
	return a, mask, nil
}
