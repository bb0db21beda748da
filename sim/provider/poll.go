package provider

import (
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// outcome of looking at one entry.
type outcome uint8

const (
	polled    outcome = iota
	swallowed         // the entry was for the library only
	broken            // it names no QP: CQ_POLL_ERR
)

// Poll is ibv_poll_cq. An entry that names no QP ends it with EIO, as CQ_POLL_ERR
// does.
func (q *CQ) Poll(vt verbs.Thread, wc []verbs.WC) (int, error) {
	t := Of(vt)
	t.Core.Run(t.P, q.ctx.proc.Params.PollCall)
	n, _, err := q.poll(t, wc)
	return n, err
}

// poll takes the lock, reads entries until one is not there, and writes the consumer
// index. It also returns when it last looked at an entry.
func (q *CQ) poll(t *Thread, wc []verbs.WC) (n int, seen sim.Time, err error) {
	p := q.ctx.proc.Params
	came := t.P.Now()
	q.lock.acquire(t, p)
	t.P.Sync()
	q.lock.check(t, came)
	t.Core.Touch(t.P, &q.line)
	for n < len(wc) {
		t.P.Sync()
		e := q.at(q.ci)
		if !e.Ready(q.ci, q.n) {
			break
		}
		q.ci++
		q.entry.DeviceWrote()
		t.Core.Touch(t.P, &q.entry)
		t.Core.LoadFence(t.P)
		t.Core.Run(t.P, p.ConsumeCQE)
		t.P.Sync()
		switch q.parse(t, e, &wc[n]) {
		case polled:
			n++
		case broken:
			err = fmt.Errorf("poll_cq: an entry of QP %#x, which is gone: %w", e.QPN(), syscall.EIO)
		}
		if err != nil {
			break
		}
	}
	seen = t.P.Now()
	prm.CQDBRec(q.db.b).SetCI(q.ci)
	q.lock.release(t)
	return n, seen, err
}

// parse is mlx5_parse_cqe for CQE version 1.
func (q *CQ) parse(t *Thread, e prm.CQE64, wc *verbs.WC) outcome {
	op := e.Opcode()
	if op == prm.CQEResizeCQ {
		return swallowed
	}
	qp := q.ctx.qpOf(e.SRQNUIdx())
	if qp == nil {
		return broken
	}
	*wc = verbs.WC{QPN: e.QPN()}
	switch op {
	case prm.CQEReq:
		qp.completeSend(t, e, wc)
		goodRequest(e, wc)
		q.scatter(t, qp, e, wc, true)
	case prm.CQERespWrImm, prm.CQERespSend, prm.CQERespSendImm, prm.CQERespSendInv:
		wqe := qp.completeRecv(t, wc)
		goodResponse(e, wc)
		if e.Format() != prm.CQEFormatPlain {
			q.scatterRecv(t, qp, e, wc, wqe)
		}
	case prm.CQEReqErr, prm.CQERespErr:
		wc.Status, wc.VendorErr = verbs.WCStatus(e.Syndrome().WCStatus()), uint32(e.VendorErrSynd())
		q.freeze(t, e)
		if op == prm.CQEReqErr {
			qp.completeSend(t, e, wc)
		} else {
			qp.completeRecv(t, wc)
		}
	default:
		return broken
	}
	return polled
}

// freeze is MLX5_FREEZE_ON_ERROR_CQE: sleep for ever on the first error that is not
// a consequence of another.
func (q *CQ) freeze(t *Thread, e prm.CQE64) {
	if !q.ctx.env.freezeOnError {
		return
	}
	if s := e.Syndrome(); s != prm.SyndromeWRFlush && s != prm.SyndromeTransportRetryExc {
		t.ParkUntil("ever: MLX5_FREEZE_ON_ERROR_CQE is set", neverDeadline)
	}
}

// goodRequest is handle_good_req.
func goodRequest(e prm.CQE64, wc *verbs.WC) {
	switch e.SOp() {
	case prm.WQEOpRDMAWriteImm:
		wc.Flags |= verbs.WCWithImm
		wc.Opcode = verbs.WCOpRDMAWrite
	case prm.WQEOpRDMAWrite:
		wc.Opcode = verbs.WCOpRDMAWrite
	case prm.WQEOpSendImm:
		wc.Flags |= verbs.WCWithImm
		wc.Opcode = verbs.WCOpSend
	case prm.WQEOpSend, prm.WQEOpSendInv:
		wc.Opcode = verbs.WCOpSend
	case prm.WQEOpRDMARead:
		wc.Opcode, wc.ByteLen = verbs.WCOpRDMARead, e.ByteCnt()
	case prm.WQEOpAtomicCS:
		wc.Opcode, wc.ByteLen = verbs.WCOpCompSwap, 8
	case prm.WQEOpAtomicFA:
		wc.Opcode, wc.ByteLen = verbs.WCOpFetchAdd, 8
	case prm.WQEOpTSO:
		wc.Opcode = verbs.WCOpTSO
	}
}

// goodResponse is handle_responder.
func goodResponse(e prm.CQE64, wc *verbs.WC) {
	wc.ByteLen = e.ByteCnt()
	switch e.Opcode() {
	case prm.CQERespWrImm:
		wc.Opcode, wc.Flags, wc.Imm = verbs.WCOpRecvRDMAImm, verbs.WCWithImm, e.ImmInvalPKey()
	case prm.CQERespSendImm:
		wc.Opcode, wc.Flags, wc.Imm = verbs.WCOpRecv, verbs.WCWithImm, e.ImmInvalPKey()
	case prm.CQERespSendInv:
		wc.Opcode, wc.Flags, wc.Imm = verbs.WCOpRecv, verbs.WCWithInv, e.ImmInvalPKey()
	default:
		wc.Opcode = verbs.WCOpRecv
	}
	wc.SrcQP, wc.SLID, wc.SL, wc.DLIDPathBits = e.RQPN(), e.SLID(), uint8(e.SL()), e.MLPath()&0x7f
	if e.GRH() != 0 {
		wc.Flags |= verbs.WCGRH
	}
}

// poller is a thread that spins in PollWait. It is parked, and its next look at the
// CQ is at phase plus a whole number of turns.
type poller struct {
	t     *Thread
	phase sim.Time
	turn  sim.Time
}

// PollWait polls in a loop until there is a completion or the time is up.
//
// The thread does not run the empty turns: it parks, and a write of the device to
// the ring resumes it at the turn in which the loop would have seen it. Contention
// of spinning threads for the CQ's lock and lines during empty turns is not
// modelled.
func (q *CQ) PollWait(vt verbs.Thread, wc []verbs.WC, timeout time.Duration) (int, error) {
	t := Of(vt)
	if len(wc) == 0 {
		return 0, nil
	}
	p := q.ctx.proc.Params
	deadline := t.until(timeout)
	for {
		t.Core.Run(t.P, p.PollCall)
		n, seen, err := q.poll(t, wc)
		if n > 0 || err != nil || t.P.Now() >= deadline {
			return n, err
		}
		t.P.Sync()
		if q.at(q.ci).Ready(q.ci, q.n) { // it came while the lock was released
			t.Core.Run(t.P, max(0, seen+p.PollEmpty-t.P.Now()))
			continue
		}
		w := &t.spin
		*w = poller{t, seen, p.PollEmpty}
		q.pollers = append(q.pollers, w)
		t.ParkUntil("a completion", deadline)
		q.leave(w)
	}
}

// deviceWrote resumes the threads that spin on the CQ.
func (q *CQ) deviceWrote(uint64) {
	for _, w := range q.pollers {
		now := w.t.P.Engine().Now()
		turns := (now - w.phase + w.turn - 1) / w.turn
		w.t.Wake(w.phase + max(0, turns)*w.turn)
	}
}

func (q *CQ) leave(w *poller) {
	for i, x := range q.pollers {
		if x == w {
			q.pollers = append(q.pollers[:i], q.pollers[i+1:]...)
			return
		}
	}
}
