package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// transition finds the QP of a modify command and checks its state.
func (d *Device) transition(in []byte, from uint32) (*qp, prm.ModifyQPIn, prm.Status) {
	m := prm.ModifyQPIn(in)
	q := d.queue(m.QPN())
	switch {
	case q == nil:
		return nil, m, prm.StatusBadResState
	case q.state != from:
		return nil, m, prm.StatusBadQPState
	}
	d.caches.fillQP(q.cachedQP)
	return q, m, prm.StatusOK
}

// Optional fields that a transition of an RC QP takes.
const (
	optInit2Init = prm.OptParRRE | prm.OptParRAE | prm.OptParRWE | prm.OptParPKeyIndex | prm.OptParPriPort | prm.OptParLAGTXAff
	optInit2RTR  = prm.OptParAltAddrPath | prm.OptParRRE | prm.OptParRAE | prm.OptParRWE | prm.OptParPKeyIndex | prm.OptParLAGTXAff
	optRTR2RTS   = prm.OptParAltAddrPath | prm.OptParRRE | prm.OptParRAE | prm.OptParRWE | prm.OptParPMState | prm.OptParRNRTimeout
	optRTS2RTS   = optRTR2RTS | prm.OptParCounterSetID
	optSQX2RTS   = prm.OptParRNRTimeout | prm.OptParRWE | prm.OptParRAE | prm.OptParRRE
)

// checkOptional looks at the optional fields before anything is changed.
func (d *Device) checkOptional(q *qp, m prm.ModifyQPIn, allowed uint32) prm.Status {
	mask, c := m.OptParamMask(), m.QPC()
	switch {
	case q.special() || q.st == prm.STRegUMR || q.st == prm.STDCI: // the driver's table has none for a DCI (mlx5_ib qp.c, opt_mask)
		allowed = 0
	case q.st == prm.STUD:
		allowed = prm.OptParPKeyIndex | prm.OptParPriPort | prm.OptParQKey | prm.OptParCounterSetID
	}
	switch {
	case mask&^allowed != 0:
		return prm.StatusBadParam
	case mask&prm.OptParCounterSetID != 0 && c.CounterSetID() != 0 && d.qset(c.CounterSetID()) == nil:
		return prm.StatusBadParam
	case mask&prm.OptParPKeyIndex != 0 && c.PrimaryPath().PKeyIndex() >= d.pkeyIndexes():
		return prm.StatusIX
	}
	return prm.StatusOK
}

// takeOptional copies the optional fields whose bits are set.
func (d *Device) takeOptional(q *qp, m prm.ModifyQPIn) {
	mask, from, to := m.OptParamMask(), m.QPC(), q.context()
	if mask&prm.OptParRRE != 0 {
		to.SetRRE(from.RRE())
	}
	if mask&prm.OptParRAE != 0 {
		to.SetRAE(from.RAE())
		to.SetAtomicMode(from.AtomicMode())
	}
	if mask&prm.OptParRWE != 0 {
		to.SetRWE(from.RWE())
	}
	if mask&prm.OptParPKeyIndex != 0 {
		to.PrimaryPath().SetPKeyIndex(from.PrimaryPath().PKeyIndex())
		if d.ib != nil {
			q.repath()
		}
	}
	if mask&prm.OptParPriPort != 0 {
		to.PrimaryPath().SetVHCAPortNum(from.PrimaryPath().VHCAPortNum())
	}
	if mask&prm.OptParRNRTimeout != 0 && (mask != prm.OptParRNRTimeout || !q.breaks(rule.RNRTimerChangesAlone)) {
		to.SetMinRNRNAK(from.MinRNRNAK())
	}
	if mask&prm.OptParPMState != 0 {
		to.SetPMState(from.PMState())
	}
	if mask&prm.OptParAltAddrPath != 0 {
		copy(to.SecondaryPath(), from.SecondaryPath())
	}
	if mask&prm.OptParQKey != 0 {
		to.SetQKey(from.QKey())
	}
	if mask&prm.OptParCounterSetID != 0 {
		q.setCounters(from.CounterSetID(), d.qset(from.CounterSetID()))
	}
	q.responder.takeRights()
}

func cmdRst2Init(d *Device, in, _ []byte) prm.Status {
	q, m, st := d.transition(in, prm.QPStateRST)
	if st != prm.StatusOK {
		return st
	}
	from, to := m.QPC(), q.context()
	a := from.PrimaryPath()
	switch {
	case a.PKeyIndex() >= d.pkeyIndexes():
		return prm.StatusIX
	case a.VHCAPortNum() > 1, from.CounterSetID() != 0 && d.qset(from.CounterSetID()) == nil:
		return prm.StatusBadParam
	}
	if q.st == prm.STRegUMR {
		if !d.hasPD(from.PD()) {
			return prm.StatusBadParam
		}
		d.moveQP(q, from.PD())
	}
	to.PrimaryPath().SetPKeyIndex(a.PKeyIndex())
	to.PrimaryPath().SetVHCAPortNum(a.VHCAPortNum())
	to.SetRRE(from.RRE())
	to.SetRWE(from.RWE())
	to.SetRAE(from.RAE())
	to.SetAtomicMode(from.AtomicMode())
	to.SetPMState(from.PMState())
	if q.st == prm.STUD {
		to.SetQKey(from.QKey())
	}
	q.setCounters(from.CounterSetID(), d.qset(from.CounterSetID()))
	q.responder.takeRights()
	q.setState(prm.QPStateINIT)
	return prm.StatusOK
}

// moveQP gives the queue of a driver's UMRs its PD: it is created without one.
func (d *Device) moveQP(q *qp, pd uint32) {
	if q.pd != 0 {
		d.pds[q.pd]--
	}
	q.pd = pd
	q.context().SetPD(pd)
	d.pds[pd]++
}

func cmdInit2Init(d *Device, in, _ []byte) prm.Status {
	q, m, st := d.transition(in, prm.QPStateINIT)
	if st == prm.StatusOK {
		st = d.checkOptional(q, m, optInit2Init)
	}
	if st == prm.StatusOK {
		d.takeOptional(q, m)
	}
	return st
}

func cmdInit2RTR(d *Device, in, _ []byte) prm.Status {
	q, m, st := d.transition(in, prm.QPStateINIT)
	if st == prm.StatusOK {
		st = d.checkOptional(q, m, optInit2RTR)
	}
	if st != prm.StatusOK {
		return st
	}
	from, to := m.QPC(), q.context()
	if roce.MTU(from.MTU()).Bytes() == 0 || from.LogMsgMax() > uint32(d.p.LogMaxMsg) || from.LogRRAMax() > uint32(d.p.LogMaxRARes) {
		return prm.StatusBadParam
	}
	if q.st == prm.STDCI && !d.carries(roce.MTU(from.MTU())) {
		return prm.StatusBadParam
	}
	if q.st == prm.STUD || q.st == prm.STRegUMR || q.st == prm.STDCI { // addresses come with each request, or there are none
		to.SetMTU(from.MTU())
		to.SetLogMsgMax(from.LogMsgMax())
		d.takeOptional(q, m)
		q.mtu, q.pkey = d.udPayload(roce.MTU(from.MTU())), d.pkeyAt(to.PrimaryPath())
		if q.st == prm.STDCI {
			q.mtu = roce.MTU(from.MTU()).Bytes()
		}
		q.setState(prm.QPStateRTR)
		q.responder.rq.refill(false)
		return prm.StatusOK
	}
	if !d.carries(roce.MTU(from.MTU())) {
		return prm.StatusBadParam // inferred: a path MTU that the port cannot carry
	}
	if d.ib == nil && int(from.PrimaryPath().SrcAddrIndex()) >= len(d.gids) {
		return prm.StatusIX
	}
	old := q.ctx
	path, was := to.PrimaryPath(), q.context().PrimaryPath()
	pkey, port := was.PKeyIndex(), was.VHCAPortNum()
	copy(path, from.PrimaryPath())
	path.SetPKeyIndex(pkey)
	path.SetVHCAPortNum(port)
	to.SetMTU(from.MTU())
	to.SetLogMsgMax(from.LogMsgMax())
	to.SetRemoteQPN(from.RemoteQPN())
	to.SetNextRcvPSN(from.NextRcvPSN())
	to.SetLogRRAMax(from.LogRRAMax())
	to.SetMinRNRNAK(from.MinRNRNAK())
	if !q.setPath() {
		q.ctx = old
		return prm.StatusBadParam
	}
	d.takeOptional(q, m)
	q.mtu = roce.MTU(to.MTU()).Bytes()
	q.responder.connect()
	q.setState(prm.QPStateRTR)
	q.responder.rq.refill(false)
	return prm.StatusOK
}

func cmdRTR2RTS(d *Device, in, _ []byte) prm.Status {
	q, m, st := d.transition(in, prm.QPStateRTR)
	if st == prm.StatusOK {
		st = d.checkOptional(q, m, optRTR2RTS)
	}
	if st != prm.StatusOK {
		return st
	}
	from, to := m.QPC(), q.context()
	if from.LogSRAMax() > uint32(d.p.LogMaxRAReq) && !d.breaks(rule.ReadsAreLimitedByTheDevice) {
		return prm.StatusBadParam
	}
	to.SetNextSendPSN(from.NextSendPSN())
	to.PrimaryPath().SetAckTimeout(from.PrimaryPath().AckTimeout())
	to.SetRetryCount(from.RetryCount())
	to.SetRNRRetry(from.RNRRetry())
	to.SetLogSRAMax(from.LogSRAMax())
	to.SetLogAckReqFreq(from.LogAckReqFreq())
	d.takeOptional(q, m)
	q.requester.connect()
	q.setState(prm.QPStateRTS)
	return prm.StatusOK
}

func cmdRTS2RTS(d *Device, in, _ []byte) prm.Status {
	return d.sameState(in, prm.QPStateRTS, optRTS2RTS)
}

func cmdSQErr2RTS(d *Device, in, _ []byte) prm.Status {
	return d.sameState(in, prm.QPStateSQER, optSQX2RTS)
}

func cmdSQDRTS(d *Device, in, _ []byte) prm.Status {
	allowed := uint32(optSQX2RTS)
	if q := d.qpn(prm.ModifyQPIn(in).QPN()); q != nil && q.st == prm.STXRC {
		allowed = 0 // the driver's table has none (mlx5_ib qp.c)
	}
	return d.sameState(in, prm.QPStateSQD, allowed)
}

// sameState is a transition to RTS that owns no fields.
func (d *Device) sameState(in []byte, from, allowed uint32) prm.Status {
	q, m, st := d.transition(in, from)
	if st == prm.StatusOK {
		st = d.checkOptional(q, m, allowed)
	}
	high := m.OptParamMaskHigh()
	if st == prm.StatusOK && high != 0 {
		st = d.takeHigh(q, m, high, from)
	}
	if st == prm.StatusOK {
		d.takeOptional(q, m)
		q.setState(prm.QPStateRTS)
		q.requester.goOn()
	}
	return st
}

// takeHigh takes the one optional field of the mask's upper part: the UDP source port of a
// connection in RTS, or the stream of a DCI that leaves its error.
func (d *Device) takeHigh(q *qp, m prm.ModifyQPIn, high uint64, from uint32) prm.Status {
	if high == prm.OptParHighDCIStream {
		if ext := m.Ext(); from != prm.QPStateRTS || !m.QPCExt() || len(ext) < prm.QPCExtSize || !q.requester.streams.restart(prm.QPCExt(ext).DCIStream()) {
			return prm.StatusBadParam
		}
		return prm.StatusOK
	}
	if high != prm.OptParHighUDPSport || !d.p.UDPSport || from != prm.QPStateRTS || q.st != prm.STRC && q.st != prm.STUC || d.ib != nil {
		return prm.StatusBadParam
	}
	if d.breaks(rule.SourcePortIsTaken) {
		return prm.StatusOK
	}
	q.context().PrimaryPath().SetUDPSport(m.QPC().PrimaryPath().UDPSport())
	if !q.setPath() {
		return prm.StatusBadParam
	}
	return prm.StatusOK
}

func cmd2Err(d *Device, in, _ []byte) prm.Status {
	q := d.queue(prm.Cmd2ErrQPIn(in).QPN())
	switch {
	case q == nil:
		return prm.StatusBadResState
	case q.state == prm.QPStateRST:
		return prm.StatusBadQPState
	}
	q.abort()
	return prm.StatusOK
}

func cmd2Rst(d *Device, in, _ []byte) prm.Status {
	q := d.queue(prm.Cmd2RstQPIn(in).QPN())
	if q == nil {
		return prm.StatusBadResState
	}
	q.reset()
	return prm.StatusOK
}
