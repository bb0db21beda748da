package kernel

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// QueryQP is QUERY_QP: all attributes, whatever the mask asks, as the driver does.
// Cap.MaxSendWR and MaxSendSGE are 0: for a user QP only the library knows them. The
// driver learns the state here, so a QP that the device moved to ERR is known to be
// there only after a query.
func (u *Ucontext) QueryQP(c Caller, h Handle, mask verbs.QPAttrMask) (a verbs.QPAttr, err error) {
	err = u.do(c, func(k *call) error {
		q, err := lookup[queuePair](&u.objs, h, "QP")
		if err != nil {
			return err
		}
		if of := q.queue(); of.dct != nil {
			a, err = of.queryDCT(k, mask)
		} else {
			a, err = of.query(k)
		}
		return err
	})
	return a, err
}

func (q *qp) query(k *call) (verbs.QPAttr, error) {
	if q.packets != nil {
		return q.queryPackets(k)
	}
	in, out := prm.NewIn(prm.OpQueryQP, 0), prm.NewOut(prm.OpQueryQP, 8*q.pasCount())
	prm.QueryQPIn(in).SetQPN(q.qpn)
	if err := k.exec(in, out); err != nil {
		return verbs.QPAttr{}, fmt.Errorf("query QP %#x: %w", q.qpn, err)
	}
	return q.attributes(prm.QueryQPOut(out).QPC()), nil
}

// pasCount is room for the page list that an answer may carry.
func (q *qp) pasCount() int {
	if q.mem == nil {
		return 0
	}
	return len(q.mem.pages)
}

// qpStates are ib's states by the context's code.
var qpStates = [...]verbs.QPState{
	prm.QPStateRST: verbs.QPSReset, prm.QPStateINIT: verbs.QPSInit, prm.QPStateRTR: verbs.QPSRTR,
	prm.QPStateRTS: verbs.QPSRTS, prm.QPStateSQER: verbs.QPSSQE, prm.QPStateSQD: verbs.QPSSQD,
	prm.QPStateERR: verbs.QPSErr, prm.QPStateSQDraining: verbs.QPSSQD,
}

func (q *qp) attributes(c prm.QPC) verbs.QPAttr {
	if s := int(c.State()); s < len(qpStates) {
		q.state = qpStates[s]
	}
	a := verbs.QPAttr{
		State: q.state, CurState: q.state,
		SQDraining:      c.State() == prm.QPStateSQDraining,
		PathMTU:         verbs.MTU(c.MTU()),
		PathMigState:    migState(c.PMState()),
		QKey:            c.QKey(),
		RQPSN:           c.NextRcvPSN(),
		SQPSN:           c.NextSendPSN(),
		DestQPN:         c.RemoteQPN(),
		MaxRdAtomic:     1 << c.LogSRAMax(),
		MaxDestRdAtomic: 1 << c.LogRRAMax(),
		MinRNRTimer:     uint8(c.MinRNRNAK()),
		RetryCnt:        uint8(c.RetryCount()),
		RNRRetry:        uint8(c.RNRRetry()),
	}
	if c.RRE() {
		a.Access |= verbs.AccessRemoteRead
	}
	if c.RWE() {
		a.Access |= verbs.AccessRemoteWrite
	}
	if c.RAE() {
		a.Access |= verbs.AccessRemoteAtomic
	}
	p, alt := c.PrimaryPath(), c.SecondaryPath()
	if q.svc != svcUD {
		a.AH, a.AltAH = q.dev.ahAttr(p), q.dev.ahAttr(alt)
		a.AltPKeyIndex, a.AltPort = uint16(alt.PKeyIndex()), uint8(alt.VHCAPortNum())
	}
	a.PKeyIndex, a.Port = uint16(p.PKeyIndex()), uint8(p.VHCAPortNum())
	a.Timeout, a.AltTimeout = uint8(p.AckTimeout()), uint8(alt.AckTimeout())
	a.Cap = verbs.QPCap{MaxRecvWR: q.rqCount, MaxInline: q.inline}
	if q.rqCount > 0 {
		a.Cap.MaxRecvSGE = 1 << q.rqShift / 16
	}
	return a
}

func migState(pm uint32) uint8 {
	switch pm {
	case prm.PMStateRearm:
		return 1
	case prm.PMStateArmed:
		return 2
	}
	return 0
}

// ahAttr is to_rdma_ah_attr: a path without a port is no address.
func (d *Device) ahAttr(p prm.ADS) verbs.AHAttr {
	port := p.VHCAPortNum()
	if port == 0 || int(port) > d.caps.ports {
		return verbs.AHAttr{}
	}
	a := verbs.AHAttr{
		Port: uint8(port), SL: uint8(p.SL()), DLID: uint16(p.RLID()), SrcPathBits: uint8(p.MLID()),
		StaticRate: codeToRate(p.StatRate()), IsGlobal: !d.caps.ib || p.GRH(),
	}
	if !a.IsGlobal {
		return a
	}
	a.GRH = verbs.GRH{
		FlowLabel: p.FlowLabel(), SGIDIndex: uint8(p.SrcAddrIndex()),
		HopLimit: uint8(p.HopLimit()), TrafficClass: uint8(p.TClass()),
	}
	copy(a.GRH.DGID[:], p.RGID())
	return a
}
