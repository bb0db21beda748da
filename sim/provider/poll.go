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
	return q.poll(Of(vt), wc, nil)
}

// poll takes the lock, reads entries until one is not there, and writes the consumer
// index. When it finds nothing, w is left to wait from the time of the last look on.
func (q *CQ) poll(t *Thread, wc []verbs.WC, w *poller) (n int, err error) {
	p := q.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PollCall)
	left := q.lock.acquire(t, p, 0)
	left += t.Core.Claim(t.P, &q.line)
	for n < len(wc) && err == nil {
		e, ready := q.look(t, q.ci)
		if !ready {
			break
		}
		q.ci++
		q.entry.DeviceWrote()
		left += t.Core.Claim(t.P, &q.entry) + p.ConsumeCQE
		switch q.parse(t, e, &wc[n]) {
		case polled:
			n++
		case broken:
			err = fmt.Errorf("poll_cq: an entry of QP %#x, which is gone: %w", e.QPN(), syscall.EIO)
		}
		t.Core.Run(t.P, left+t.owed)
		t.Core.LoadFence(t.P)
		t.P.Sync()
		left, t.owed = 0, 0
	}
	prm.CQDBRec(q.db.b).SetCI(q.ci)
	c := &q.ctx.proc.C
	c.Polls++
	c.CQEs += uint64(n)
	if n == 0 {
		c.PollsEmpty++
	}
	if n == 0 && err == nil && w != nil {
		*w = poller{t: t, phase: t.P.Now(), turn: p.PollEmpty}
		q.pollers = append(q.pollers, w)
	}
	t.Core.Run(t.P, left)
	q.lock.release(t)
	if n > 0 {
		t.span("poll_cq", start, uint64(n))
	}
	return n, err
}

// parse is mlx5_parse_cqe for CQE version 1.
func (q *CQ) parse(t *Thread, e prm.CQE64, wc *verbs.WC) outcome {
	op := e.Opcode()
	if op == prm.CQEResizeCQ {
		return swallowed
	}
	if e.Format() == prm.CQEFormatCompressed {
		return broken
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
		wqe := qp.completeRecv(t, e, wc)
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
			qp.completeRecv(t, e, wc)
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
	case prm.WQEOpAtomicWrite:
		wc.Opcode = verbs.WCOpAtomicWrite
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
	wc.PKeyIndex = uint16(e.ImmInvalPKey())
	wc.SrcQP, wc.SLID, wc.SL, wc.DLIDPathBits = e.RQPN(), e.SLID(), uint8(e.SL()), e.MLPath()&0x7f
	if e.GRH() != 0 {
		wc.Flags |= verbs.WCGRH
	}
}

// poller is a thread that spins in PollWait. Its next look at the CQ is at phase plus
// a whole number of turns.
type poller struct {
	t     *Thread
	phase sim.Time
	turn  sim.Time
	next  sim.Time // the look that will find something; 0: nothing has come
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
	deadline := t.until(timeout)
	w := &t.spin
	for {
		n, err := q.poll(t, wc, w)
		if n > 0 || err != nil {
			return n, err
		}
		if t.P.Now() >= deadline {
			q.leave(w)
			return 0, nil
		}
		if w.next == 0 {
			t.ParkUntil("a completion", deadline)
		}
		q.leave(w)
		// Spinning does not count as work of the core, parked or not.
		t.P.Advance(max(0, w.next-t.P.Now()))
	}
}

// deviceWrote tells the threads that spin on the CQ when they will see it.
func (q *CQ) deviceWrote(uint64) {
	for _, w := range q.pollers {
		if w.next != 0 {
			continue
		}
		now := w.t.P.Engine().Now()
		turns := (now - w.phase + w.turn - 1) / w.turn
		w.next = w.phase + max(1, turns)*w.turn
		w.t.Wake(w.next)
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
