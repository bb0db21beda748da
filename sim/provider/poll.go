package provider

import (
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// outcome of looking at one entry.
type outcome uint8

const (
	polled   outcome = iota
	internal         // the entry was for the library only
	broken           // it names no QP: CQ_POLL_ERR
)

// Poll is ibv_poll_cq. An entry that names no QP ends it with EIO, as CQ_POLL_ERR
// does.
func (q *CQ) Poll(vt verbs.Thread, wc []verbs.WC) (int, error) {
	return q.poll(Of(vt), wc, false)
}

// poll takes the lock, reads entries until one is not there, and writes the consumer
// index. When it finds nothing and spins is set, the thread joins those that wait for the
// device's next write, from the time of the last look on.
func (q *CQ) poll(t *Thread, wc []verbs.WC, spins bool) (n int, err error) {
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
			if n < len(q.times) {
				q.times[n] = e.Timestamp()
			}
			n++
		case broken:
			err = fmt.Errorf("poll_cq: an entry of QP %#x, which is gone: %w", e.QPN(), syscall.EIO)
		}
		t.Core.Run(t.P, left+t.unspent)
		t.Core.LoadFence(t.P)
		t.P.Sync()
		left, t.unspent = 0, 0
	}
	if !t.breaks(rule.ConsumerIndexIsWritten) {
		prm.CQDBRec(q.db.b).SetCI(q.ci)
	}
	c := &q.ctx.proc.C
	c.Polls++
	c.CQEs += uint64(n)
	if n == 0 {
		c.PollsEmpty++
	}
	if n == 0 && err == nil && spins {
		t.spin = spin{phase: t.P.Now(), turn: p.PollEmpty}
		q.pollers = append(q.pollers, t)
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
		return internal
	}
	if e.Format() == prm.CQEFormatCompressed {
		return broken
	}
	r := q.ctx.completerOf(e.SRQNUIdx())
	if r == nil {
		return broken
	}
	*wc = verbs.WC{QPN: e.QPN()}
	switch op {
	case prm.CQEReq:
		r.completeSend(t, e, wc)
		goodRequest(e, wc)
		if data := q.inlineOf(e, wc.ByteLen); data != nil {
			r.scatterSend(t, e, wc, data)
		}
	case prm.CQERespWrImm, prm.CQERespSend, prm.CQERespSendImm, prm.CQERespSendInv:
		wqe := r.completeRecv(t, e, wc)
		goodResponse(e, wc)
		if t.breaks(rule.ImmediateIsFlagged) {
			wc.Flags &^= verbs.WCWithImm
		}
		if e.Format() != prm.CQEFormatPlain {
			r.scatterRecv(t, wqe, wc, q.inlineOf(e, wc.ByteLen))
		}
	case prm.CQEReqErr, prm.CQERespErr:
		if op == prm.CQERespErr && e.Syndrome() == prm.SyndromeRemoteAborted && e.VendorErrSynd() == prm.VendorSyndODPFault && r.repostRecv(t, e) {
			return internal
		}
		wc.Status, wc.VendorErr = verbs.WCStatus(e.Syndrome().WCStatus()), uint32(e.VendorErrSynd())
		q.freeze(t, e)
		if op == prm.CQEReqErr {
			r.completeSend(t, e, wc)
		} else {
			r.completeRecv(t, e, wc)
		}
	default:
		return broken
	}
	if rule.Mutants {
		t.spoil(e, wc)
	}
	return polled
}

// spoil changes what a completion says, in a run that breaks a rule of it.
func (t *Thread) spoil(e prm.CQE64, wc *verbs.WC) {
	request := e.Opcode() == prm.CQEReq
	for _, s := range []struct {
		broken rule.Rule
		does   bool
		change func()
	}{
		{rule.RequestKeepsItsID, true, func() { wc.ID ^= 1 << 33 }},
		{rule.CompletionNamesItsQP, true, func() { wc.QPN ^= 1 }},
		{rule.SourceQPIsReported, wc.SrcQP != 0, func() { wc.SrcQP ^= 1 }},
		{rule.GRHIsFlagged, wc.Opcode&verbs.WCOpRecv != 0, func() { wc.Flags ^= verbs.WCGRH }},
		{rule.ReceiveSaysItsKind, wc.Opcode&verbs.WCOpRecv != 0, func() { wc.Opcode ^= verbs.WCOpRecv ^ verbs.WCOpRecvRDMAImm }},
		{rule.RequestSaysItsKind, request, func() { wc.Opcode ^= verbs.WCOpSend ^ verbs.WCOpRDMAWrite }},
	} {
		if s.does && t.breaks(s.broken) {
			s.change()
		}
	}
}

// inlineOf is the payload that a CQE carries itself (cq.c, MLX5_INLINE_SCATTER_32
// and _64).
func (q *CQ) inlineOf(e prm.CQE64, n uint32) []byte {
	switch e.Format() {
	case prm.CQEFormatInline32:
		return e.InlineData()[:min(n, 32)]
	case prm.CQEFormatInline64:
		if q.esize == 128 {
			return q.ring.at(int((q.ci-1)&(q.n-1)) * q.esize)[:min(n, 64)]
		}
	}
	return nil
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

// goodRequest is handle_good_req. The completion has what the library remembers of the request,
// which the entry says better but for raw ones.
func goodRequest(e prm.CQE64, wc *verbs.WC) {
	raw := wc.Opcode == verbs.WCOpDriver2
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
	if raw {
		wc.Opcode = verbs.WCOpDriver2
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
	for {
		n, err := q.poll(t, wc, true)
		if n > 0 || err != nil {
			return n, err
		}
		if t.P.Now() >= deadline {
			q.leave(t)
			return 0, nil
		}
		if t.spin.next == 0 {
			t.ParkUntil("a completion", deadline)
		}
		q.leave(t)
		// Spinning does not count as work of the core, parked or not.
		t.P.Advance(max(0, t.spin.next-t.P.Now()))
	}
}

// deviceWrote wakes each thread that spins on the CQ at its first poll after the write.
func (q *CQ) deviceWrote(uint64) {
	for _, t := range q.pollers {
		s := &t.spin
		if s.next != 0 {
			continue
		}
		now := t.P.Engine().Now()
		turns := (now - s.phase + s.turn - 1) / s.turn
		s.next = s.phase + max(1, turns)*s.turn
		t.Wake(s.next)
	}
}

func (q *CQ) leave(t *Thread) {
	for i, x := range q.pollers {
		if x == t {
			q.pollers = append(q.pollers[:i], q.pollers[i+1:]...)
			return
		}
	}
}
