package hca

import (
	"github.com/rdmasim/rdmasim/prm"
)

// notifyDrained in the modifier of RTS2SQD asks for the event.
const notifyDrained = 1

func cmdRTS2SQD(d *Device, in, _ []byte) prm.Status {
	if !d.p.SQD {
		return prm.StatusBadOp
	}
	q, _, st := d.transition(in, prm.QPStateRTS)
	if st != prm.StatusOK {
		return st
	}
	q.state = prm.QPStateSQD
	q.context().SetState(prm.QPStateSQDraining)
	q.requester.drain(prm.CmdIn(in).OpMod() == notifyDrained)
	return prm.StatusOK
}

// optSQD2SQD are the attributes of an RC QP that may change while its send queue stands still.
const optSQD2SQD = optRTS2RTS | prm.OptParPrimaryPath | prm.OptParPriPort | prm.OptParPKeyIndex | prm.OptParRetryCount |
	prm.OptParRNRRetry | prm.OptParAckTimeout | prm.OptParSRAMax | prm.OptParRRAMax

func cmdSQD2SQD(d *Device, in, _ []byte) prm.Status {
	if !d.p.SQD {
		return prm.StatusBadOp
	}
	q, m, st := d.transition(in, prm.QPStateSQD)
	switch {
	case st != prm.StatusOK:
		return st
	case q.requester.draining:
		return prm.StatusBadQPState
	}
	if st := d.checkOptional(q, m, optSQD2SQD); st != prm.StatusOK {
		return st
	}
	from, to, mask := m.QPC(), q.context(), m.OptParamMask()
	if mask&prm.OptParSRAMax != 0 && from.LogSRAMax() > uint32(d.p.LogMaxRAReq) || mask&prm.OptParRRAMax != 0 && from.LogRRAMax() > uint32(d.p.LogMaxRARes) {
		return prm.StatusBadParam
	}
	if mask&prm.OptParPrimaryPath != 0 && q.st != prm.STUD {
		old := q.ctx
		path, was := to.PrimaryPath(), to.PrimaryPath()
		pkey, port, timeout := was.PKeyIndex(), was.VHCAPortNum(), was.AckTimeout()
		copy(path, from.PrimaryPath())
		path.SetPKeyIndex(pkey)
		path.SetVHCAPortNum(port)
		path.SetAckTimeout(timeout)
		if !q.setPath() {
			q.ctx = old
			return prm.StatusBadParam
		}
	}
	if mask&prm.OptParSRAMax != 0 {
		to.SetLogSRAMax(from.LogSRAMax())
		q.requester.growLanding()
	}
	if mask&prm.OptParRRAMax != 0 {
		to.SetLogRRAMax(from.LogRRAMax())
		q.responder.saved.limit(1 << to.LogRRAMax())
	}
	if mask&prm.OptParRetryCount != 0 {
		to.SetRetryCount(from.RetryCount())
	}
	if mask&prm.OptParAckTimeout != 0 {
		to.PrimaryPath().SetAckTimeout(from.PrimaryPath().AckTimeout())
	}
	if mask&prm.OptParRNRRetry != 0 {
		to.SetRNRRetry(from.RNRRetry())
	}
	d.takeOptional(q, m)
	q.requester.takeRetries()
	return prm.StatusOK
}
