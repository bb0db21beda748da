package dv

import (
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// registerDC adds the cases of the dynamically connected transport.
func registerDC(s *spec.Suite) {
	s.Case("DV-006", dcOfAnotherType)
	s.Case("DV-008", manyTargets)
	s.Case("DV-009", wrongAccessKey)
	s.Case("DV-010", targetTakesNoPosts)
}

// target is a DCT with an SRQ and a CQ of its own.
type target struct {
	*kit.QP
	srq *kit.SRQ
	key uint64
}

// Attributes of the transitions of both ends (mlx5_ib qp.c: mlx5_ib_modify_dct,
// modify_dci_qp_is_ok).
const (
	dctInit = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags
	dctRTR  = verbs.QPMaskState | verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskMinRNRTimer
	dciInit = verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort
	dciRTR  = verbs.QPMaskState | verbs.QPMaskPathMTU
	dciRTS  = verbs.QPMaskState | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskSQPSN
)

// step moves an end into a state.
func step(c *spec.C, q *kit.QP, to verbs.QPState, mask verbs.QPAttrMask) {
	a := q.AttrFor(kit.Peer{Addr: q.Env.LocalAddr})
	a.State = to
	kit.Must(c, "modify_qp to "+to.String(), q.Modify(c.T, &a, mask))
}

// dctOptions are those of a DCT.
func dctOptions(key uint64, srq *kit.SRQ) kit.Options {
	o := kit.Default()
	o.Type, o.Cap = verbs.QPTDriver, verbs.QPCap{}
	o.Direct = &verbs.DirectQPAttr{CompMask: verbs.DirectQPDC, DCType: verbs.DCT, DCTAccessKey: key}
	if srq != nil {
		o.SRQ = srq.SRQ
	}
	return o
}

// dciOptions are those of a DCI.
func dciOptions() kit.Options {
	o := kit.Default()
	o.Type, o.SendOps, o.Timeout = verbs.QPTDriver, kit.OpsUD|verbs.QPExRDMAWrite|verbs.QPExRDMARead, 12
	o.Cap.MaxRecvWR, o.Cap.MaxRecvSGE = 0, 0
	o.Direct = &verbs.DirectQPAttr{CompMask: verbs.DirectQPDC, DCType: verbs.DCI}
	return o
}

// newTarget makes a DCT that is ready to receive.
func newTarget(c *spec.C, e *kit.Env, key uint64) *target {
	t := &target{srq: e.CreateSRQ(c, 16, 1), key: key}
	t.QP = e.CreateQP(c, dctOptions(key, t.srq))
	step(c, t.QP, verbs.QPSInit, dctInit)
	step(c, t.QP, verbs.QPSRTR, dctRTR)
	return t
}

// initiator is a DCI, with the way to this port.
type initiator struct {
	*kit.QP
	ah verbs.AH
}

// newInitiator makes a DCI that is ready to send.
func newInitiator(c *spec.C, e *kit.Env) *initiator {
	q := e.CreateQP(c, dciOptions())
	step(c, q, verbs.QPSInit, dciInit)
	step(c, q, verbs.QPSRTR, dciRTR)
	step(c, q, verbs.QPSRTS, dciRTS)
	return &initiator{q, e.CreateAH(c, e.PathTo(e.LocalAddr))}
}

// batch builds requests from WRStart to WRComplete.
func (q *initiator) batch(c *spec.C, build func(x verbs.DirectQPEx)) {
	x := directEx(c, q.QP)
	x.WRStart(c.T)
	build(x)
	kit.Must(c, "wr_complete", x.WRComplete(c.T))
}

// to builds a request to a target.
func (q *initiator) to(c *spec.C, x verbs.DirectQPEx, t *target, key uint64, wr verbs.SendWR) {
	kit.BuildWR(c, x, &wr)
	x.SetDCAddr(c.T, q.ah, t.QPN(), key)
}

// post posts one request to a target and returns its completion.
func (q *initiator) post(c *spec.C, t *target, key uint64, wr verbs.SendWR) verbs.WC {
	q.batch(c, func(x verbs.DirectQPEx) { q.to(c, x, t, key, wr) })
	return kit.PollOne(c, q.SendCQ)
}

func dcOfAnotherType(c *spec.C) {
	e := kit.Open(c)
	cq := e.CreateCQ(c, 16)
	for _, typ := range []verbs.QPType{verbs.QPTRC, verbs.QPTUC, verbs.QPTUD} {
		for _, end := range []verbs.DCType{verbs.DCT, verbs.DCI} {
			_, err := e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
				Direct: &verbs.DirectQPAttr{CompMask: verbs.DirectQPDC, DCType: end}})
			c.Errno(fmt.Sprintf("QP of type %d as end %d", typ, end), err, syscall.EINVAL)
		}
	}
	_, err := e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTDriver, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxSendSGE: 1},
		Direct: &verbs.DirectQPAttr{CompMask: verbs.DirectQPDC, DCType: verbs.DCI + 1}})
	c.Errno("an end that there is not", err, syscall.EINVAL)
}

func manyTargets(c *spec.C) {
	const n, size = 16, 64
	e := kit.Open(c)
	q := newInitiator(c, e)
	mem := e.Buffer(c, 3*n*size, kit.AllAccess)
	targets, numbers := make([]*target, n), map[uint32]bool{}
	for i := range targets {
		t := newTarget(c, e, c.Rand().Uint64())
		targets[i], numbers[t.QPN()] = t, true
		t.srq.RecvInto(c, uint64(i), mem.SGE((n+i)*size, size))
		t.srq.RecvInto(c, uint64(100+i), mem.SGE((2*n+i)*size, size))
		mem.SetWord(c, i*size, c.Rand().Uint64())
	}
	c.Equal("numbers of the targets", len(numbers), n)
	q.batch(c, func(x verbs.DirectQPEx) {
		for i, t := range targets {
			q.to(c, x, t, t.key, kit.Send(uint64(i), mem.SGE(i*size, 8)))
		}
	})
	for i, wc := range kit.ExpectSuccess(c, q.SendCQ, n) {
		if wc.ID != uint64(i) {
			c.Failf("completion %d is of send %d", i, wc.ID)
		}
	}
	for i, t := range targets {
		wc := kit.ExpectSuccess(c, t.RecvCQ, 1)[0]
		c.Equal(fmt.Sprintf("target %d: wr_id and bytes", i), [2]uint64{wc.ID, uint64(wc.ByteLen)}, [2]uint64{uint64(i), 8})
		c.True(fmt.Sprintf("target %d: QP number", i), wc.QPN == t.QPN(), "%#x for %#x", wc.QPN, t.QPN())
		if mem.Word(c, (n+i)*size) != mem.Word(c, i*size) {
			c.Failf("target %d has the word of another", i)
		}
		kit.ExpectNoCompletion(c, t.RecvCQ, 0)
	}
	back(c, q, targets, mem)
}

// back goes to the targets in the other order, with other operations.
func back(c *spec.C, q *initiator, targets []*target, mem *kit.Buffer) {
	const size = 64
	n := len(targets)
	for i := n - 1; i >= 0; i-- {
		t := targets[i]
		var got [4]string
		for k, wr := range []verbs.SendWR{kit.Write(1, mem, (2*n+i)*size+8, mem.SGE(i*size, 8)), kit.Read(2, mem, i*size, mem.SGE((2*n+i)*size+16, 8)),
			kit.Send(3, mem.SGE(i*size, 8))} {
			got[k] = q.post(c, t, t.key, wr).Status.String()
		}
		got[3] = fmt.Sprint(kit.ExpectSuccess(c, t.RecvCQ, 1)[0].ID)
		done := verbs.WCSuccess.String()
		c.Equal(fmt.Sprintf("target %d: write, read, send and wr_id of the receive", i), got, [4]string{done, done, done, fmt.Sprint(100 + i)})
		for _, off := range []int{0, 8, 16} {
			if mem.Word(c, (2*n+i)*size+off) != mem.Word(c, i*size) {
				c.Failf("target %d: the word at %d is another", i, off)
			}
		}
	}
}

func wrongAccessKey(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 128, kit.AllAccess)
	t := newTarget(c, e, 0x1122334455667788)
	t.srq.RecvInto(c, 7, mem.SGE(64, 8))
	for _, key := range []uint64{t.key ^ 1, t.key ^ 1<<63, 0} {
		q := newInitiator(c, e)
		c.StatusIn("a send with another key", q.post(c, t, key, kit.Send(1, mem.SGE(0, 8))), verbs.WCRemInvReqErr, verbs.WCRetryExcErr, verbs.WCRemOpErr)
		c.Equal("state of the initiator", q.QueryState(c).String(), verbs.QPSErr.String())
	}
	kit.ExpectNoCompletion(c, t.RecvCQ, time.Millisecond)
	c.Status("a send with the key", newInitiator(c, e).post(c, t, t.key, kit.Send(2, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("wr_id of the receive", kit.ExpectSuccess(c, t.RecvCQ, 1)[0].ID, uint64(7))
}

func targetTakesNoPosts(c *spec.C) {
	e := kit.Open(c)
	cq := e.CreateCQ(c, 16)
	o := dctOptions(1, nil)
	o.SendCQ, o.RecvCQ = cq, cq
	_, err := e.PD.CreateQP(c.T, (&kit.QP{SendCQ: cq, RecvCQ: cq, Opt: o}).InitAttr())
	c.Errno("a target without an SRQ", err, syscall.EINVAL)
	mem := e.Buffer(c, 128, kit.AllAccess)
	t := newTarget(c, e, 5)
	_, err = t.PostSend(c.T, []verbs.SendWR{kit.Send(1, mem.SGE(0, 8))})
	c.ErrnoIn("post_send to a target", err, syscall.ENOMEM, syscall.EINVAL, syscall.EOPNOTSUPP)
	_, err = t.PostRecv(c.T, []verbs.RecvWR{{ID: 1, SGEs: []verbs.SGE{mem.SGE(64, 8)}}})
	c.ErrnoIn("post_recv to a target", err, syscall.ENOMEM, syscall.EINVAL, syscall.EOPNOTSUPP)
	t.srq.RecvInto(c, 2, mem.SGE(64, 8))
	c.Status("send", newInitiator(c, e).post(c, t, t.key, kit.Send(3, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("wr_id of the receive", kit.ExpectSuccess(c, t.RecvCQ, 1)[0].ID, uint64(2))
}
