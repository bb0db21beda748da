package perf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// createQueues makes one send CQ, one receive CQ where there are receives, and the queue pairs
// (ctx_init).
func (e *End) createQueues(t verbs.Thread) (err error) {
	o := e.o
	if o.Events {
		if e.sendCh, err = e.channel(t); err != nil {
			return err
		}
		if e.rcCh, err = e.channel(t); err != nil {
			return err
		}
	}
	if e.sendCQ, err = e.queue(t, o.TxDepth*o.QPs, e.sendCh, "-t or -q"); err != nil {
		return err
	}
	if o.Test.Verb.receives() {
		if e.rcq, err = e.queue(t, o.RxDepth*o.QPs, e.rcCh, "-r or -q"); err != nil {
			return err
		}
	}
	if o.SRQ && (o.Test.Latency || e.o.receiver()) {
		if e.srq, err = e.dom.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: uint32(o.RxDepth), MaxSGE: 1}); err != nil {
			return &StepError{Step: stepQueues, Err: fmt.Errorf("ibv_create_srq of %d receives: %w", o.RxDepth, err), Hint: "give a smaller -r", Words: "Couldn't create SRQ\n"}
		}
		e.later(func(t verbs.Thread) error { return e.srq.Destroy(t) })
	}
	for i, c := range e.conns {
		if e.o.CM && e.ids[i] == nil {
			break // until its request comes
		}
		if err := e.createQP(t, c); err != nil {
			return err
		}
	}
	return nil
}

func (e *End) channel(t verbs.Thread) (verbs.CompChannel, error) {
	ch, err := e.ctx.CreateCompChannel(t)
	if err != nil {
		return nil, fmt.Errorf("ibv_create_comp_channel: %w", err)
	}
	e.later(func(t verbs.Thread) error { return ch.Destroy(t) })
	return ch, nil
}

func (e *End) queue(t verbs.Thread, n int, ch verbs.CompChannel, flags string) (verbs.CQ, error) {
	attr := verbs.CQAttr{CQE: max(n, 1), Channel: ch, CompVector: e.o.Vector}
	if e.o.NoLock {
		attr.Ex, attr.ParentDomain, attr.CompMask = true, e.dom, cqParentDomain
	}
	q, err := e.ctx.CreateCQ(t, attr)
	if err != nil {
		return nil, &StepError{Step: stepQueues, Err: fmt.Errorf("ibv_create_cq of %d entries: %w", n, err), Hint: fmt.Sprintf("give a smaller %s; the device has at most %d entries", flags, e.attr.MaxCQE), Words: "Couldn't create CQ\n Couldn't create IB resources\n"}
	}
	e.later(func(t verbs.Thread) error { return q.Destroy(t) })
	return q, nil
}

// cqParentDomain is IBV_CQ_INIT_ATTR_MASK_PD.
const cqParentDomain = 1 << 1

// builders are the calls that a queue pair of a verb is created for.
var builders = map[Verb]uint64{Send: verbs.QPExSend, SendImm: verbs.QPExSendImm, Write: verbs.QPExRDMAWrite, WriteImm: verbs.QPExRDMAWriteImm, Read: verbs.QPExRDMARead}

func (e *End) createQP(t verbs.Thread, c *conn) error {
	o := e.o
	attr := verbs.QPInitAttr{Type: o.qpType(), SendCQ: e.sendCQ, RecvCQ: e.sendCQ, SRQ: e.srq,
		Cap: verbs.QPCap{MaxSendWR: uint32(o.TxDepth), MaxRecvWR: uint32(o.RxDepth), MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: uint32(e.inline)}}
	if e.rcq != nil {
		attr.RecvCQ = e.rcq
	}
	if e.srq != nil {
		attr.Cap.MaxRecvWR = 0
	}
	if !e.old {
		attr.CompMask, attr.SendOpsFlags = verbs.QPInitSendOpsFlags, builders[o.Test.Verb]
		if o.Test.Verb == Atomic {
			attr.SendOpsFlags = verbs.QPExAtomicFetchAdd
			if o.CmpSwap {
				attr.SendOpsFlags = verbs.QPExAtomicCmpSwp
			}
		}
	}
	qp, err := e.newQP(t, c, attr)
	if err != nil {
		words := "Unable to create QP.\nFailed to create QP.\n Couldn't create IB resources\n"
		if verbs.ErrnoName(verbs.ErrnoOf(err)) == "ENOMEM" {
			words = fmt.Sprintf("Requested QP size might be too big. Try reducing TX depth and/or inline size.\nCurrent TX depth is %d and inline size is %d .\n", o.TxDepth, e.inline) + words
		}
		return &StepError{Step: stepQueues, Err: fmt.Errorf("ibv_create_qp %d of %d: %w", c.index, o.QPs, err), Hint: "give a smaller -t, -r, -I or -q", Words: words}
	}
	if c.qp = qp; !e.old {
		if c.ex = qp.Ex(); c.ex == nil {
			e.old = true
		}
	}
	if got := int(qp.Caps().MaxInline); got < e.inline {
		fmt.Fprintf(e.env.Out, "  Actual inline-receive/inline size is %d\n", got)
		e.inline = got
	}
	return nil
}

// newQP makes a queue pair, and says how it is taken back.
func (e *End) newQP(t verbs.Thread, c *conn, attr verbs.QPInitAttr) (verbs.QP, error) {
	if !e.o.CM {
		qp, err := e.dom.CreateQP(t, attr)
		if err == nil {
			e.later(qp.Destroy)
		}
		return qp, err
	}
	qp, err := e.ids[c.index].CreateQP(t, e.dom, attr)
	if err == nil {
		e.later(func(t verbs.Thread) error {
			if id := e.ids[c.index]; id.QP() != nil { // another try has another id
				return id.DestroyQP(t)
			}
			return nil
		})
	}
	return qp, err
}

// qKey is DEF_QKEY.
const qKey = 0x11111111

// toInit is ctx_modify_qp_to_init.
func (e *End) toInit(t verbs.Thread) error {
	access := map[Verb]verbs.AccessFlags{Send: verbs.AccessRemoteWrite | verbs.AccessLocalWrite, SendImm: verbs.AccessRemoteWrite | verbs.AccessLocalWrite, Write: verbs.AccessRemoteWrite, WriteImm: verbs.AccessRemoteWrite,
		Read: verbs.AccessRemoteRead, Atomic: verbs.AccessRemoteAtomic}[e.o.Test.Verb]
	attr := verbs.QPAttr{State: verbs.QPSInit, PKeyIndex: uint16(e.o.PKeyIndex), Port: uint8(e.o.IBPort), Access: access, QKey: qKey}
	mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	if e.o.Connection == UD {
		mask = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskQKey
	}
	return e.modify(t, &attr, func(*conn) verbs.QPAttrMask { return mask })
}

// modify moves all queue pairs to the state of the attributes, to which prepare adds those of each.
func (e *End) modify(t verbs.Thread, attr *verbs.QPAttr, prepare func(c *conn) verbs.QPAttrMask) error {
	for _, c := range e.conns {
		mask := prepare(c)
		if err := c.qp.Modify(t, attr, mask); err != nil {
			return &StepError{Step: attr.State.String(), Err: fmt.Errorf("ibv_modify_qp of queue pair %#06x to %v: %w", c.qp.QPN(), attr.State, err), Hint: e.modifyHint(attr.State),
				Words: fmt.Sprintf("Failed to modify QP %d to %v\n Unable to Connect the HCA's through the link\n", c.qp.QPN(), attr.State)}
		}
	}
	return nil
}

func (e *End) modifyHint(to verbs.QPState) string {
	if to == verbs.QPSRTR && e.useGID {
		return fmt.Sprintf("the peer's address must be reachable from GID %d, %v: choose another with -x", e.gidIndex, e.gid)
	}
	return ""
}

// path is the address of the peer of a queue pair.
func (e *End) path(c *conn) verbs.AHAttr {
	r := &e.remote[c.index]
	a := verbs.AHAttr{Port: uint8(e.o.IBPort), SL: e.o.SL, DLID: r.LID}
	if e.o.DLID != 0 {
		a.DLID = e.o.DLID
	}
	if e.useGID {
		a.IsGlobal = true
		a.GRH = verbs.GRH{DGID: r.GID, SGIDIndex: uint8(e.gidIndex), HopLimit: 0xff, TrafficClass: e.o.Traffic}
		if n := len(e.o.Flows); n > 0 {
			a.GRH.FlowLabel = e.o.Flows[c.index%n]
		}
	}
	return a
}

// minRNRTimer is 0.64 ms; both retry counts are 7 (perftest_resources.h).
const (
	minRNRTimer = 12
	retries     = 7
)

// toRTR is ctx_modify_qp_to_rtr.
func (e *End) toRTR(t verbs.Thread) error {
	attr := verbs.QPAttr{State: verbs.QPSRTR, PathMTU: e.mtu, MinRNRTimer: minRNRTimer, MaxDestRdAtomic: uint8(e.reads)}
	return e.modify(t, &attr, func(c *conn) verbs.QPAttrMask {
		r := &e.remote[c.index]
		attr.DestQPN, attr.RQPSN, attr.AH = r.QPN, r.PSN, e.path(c)
		switch e.o.Connection {
		case UD:
			return verbs.QPMaskState
		case UC:
			return verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
		}
		return verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	})
}

// toRTS is ctx_modify_qp_to_rts: an end that only receives stays in RTR.
func (e *End) toRTS(t verbs.Thread) error {
	if !e.o.Test.Latency && !e.o.Sender && !e.o.BothWays {
		return nil
	}
	attr := verbs.QPAttr{State: verbs.QPSRTS, Timeout: e.o.QPTimeout, RetryCnt: retries, RNRRetry: retries}
	err := e.modify(t, &attr, func(c *conn) verbs.QPAttrMask {
		attr.SQPSN, attr.MaxRdAtomic = c.psn, uint8(min(e.remote[c.index].OutReads, 255))
		if e.o.Connection != RC {
			return verbs.QPMaskState | verbs.QPMaskSQPSN
		}
		return verbs.QPMaskState | verbs.QPMaskSQPSN | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
	})
	if err != nil || e.o.Connection != UD {
		return err
	}
	for _, c := range e.conns {
		ah, err := e.pd.CreateAH(t, e.path(c))
		if err != nil {
			return &StepError{Step: stepRTS, Err: fmt.Errorf("ibv_create_ah: %w", err), Hint: e.modifyHint(verbs.QPSRTR), Words: "Failed to create AH for UD\n"}
		}
		c.ah = ah
		e.later(func(t verbs.Thread) error { return ah.Destroy(t) })
	}
	return nil
}
