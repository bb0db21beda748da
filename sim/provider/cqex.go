package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// StartPoll is ibv_start_poll: it takes the CQ's lock, which EndPoll gives back, unless
// there is nothing (ENOENT). EINVAL: an unknown comp_mask. EOPNOTSUPP: the CQ was not
// made by the extended call.
func (q *CQ) StartPoll(vt verbs.Thread, compMask uint32) error {
	t := Of(vt)
	p := q.ctx.proc.Params
	switch {
	case q.ex == nil:
		return fmt.Errorf("start_poll on a CQ of the plain call: %w", syscall.EOPNOTSUPP)
	case compMask != 0:
		return fmt.Errorf("start_poll: comp_mask %#x: %w", compMask, syscall.EINVAL)
	}
	t.Core.Run(t.P, p.PollCall)
	q.enterEx(t, p)
	t.unspent += t.Core.Claim(t.P, &q.line)
	q.ctx.proc.C.Polls++
	err := q.take(t)
	if err != nil {
		q.leaveEx(t)
		q.ctx.proc.C.PollsEmpty++
		t.answers(&err)
	}
	return err
}

// NextPoll is ibv_next_poll.
func (q *CQ) NextPoll(vt verbs.Thread) error { return q.take(Of(vt)) }

// EndPoll is ibv_end_poll: it reports the consumer index.
func (q *CQ) EndPoll(vt verbs.Thread) {
	t := Of(vt)
	prm.CQDBRec(q.db.b).SetCI(q.ci)
	q.leaveEx(t)
}

// enterEx takes the lock for the extended way to poll, which goes without where the CQ was promised
// to one thread. Nothing checks that promise, and ibv_poll_cq locks all the same (the table ops of
// mlx5's cq.c).
func (q *CQ) enterEx(t *Thread, p *Params) {
	if q.ex.unlocked {
		t.P.Sync()
		return
	}
	t.unspent += q.lock.acquire(t, p, 0)
}

func (q *CQ) leaveEx(t *Thread) {
	if !q.ex.unlocked {
		q.lock.release(t)
	}
}

// take finds the next completion. What it costs is spent, with what t has unspent.
func (q *CQ) take(t *Thread) error {
	for {
		e, ready := q.look(t, q.ci)
		if !ready {
			t.Core.Run(t.P, t.unspent)
			t.P.Sync()
			t.unspent = 0
			return fmt.Errorf("no completion: %w", syscall.ENOENT)
		}
		q.ci++
		q.entry.DeviceWrote()
		t.unspent += t.Core.Claim(t.P, &q.entry) + q.ctx.proc.Params.ConsumeCQE
		q.ex.ts = e.Timestamp()
		found := q.parse(t, e, &q.ex.cur)
		t.Core.Run(t.P, t.unspent)
		t.unspent = 0
		t.Core.LoadFence(t.P)
		t.P.Sync()
		switch found {
		case polled:
			q.ctx.proc.C.CQEs++
			return nil
		case broken:
			return fmt.Errorf("an entry of QP %#x, which is gone: %w", e.QPN(), syscall.EIO)
		}
	}
}

// asked ends the process when a field is read that was not asked for: the library's
// pointer to the function is not set.
func (q *CQ) asked(flag uint64, what string) {
	if q.ex.flags&flag == 0 {
		panic(Abort{"segmentation fault in ibv_wc_read_" + what + ": the CQ was created without it"})
	}
}

// WRID is ibv_cq_ex.wr_id.
func (q *CQ) WRID() uint64 { return q.ex.cur.ID }

// Status is ibv_cq_ex.status.
func (q *CQ) Status() verbs.WCStatus { return q.ex.cur.Status }

// ReadOpcode is ibv_wc_read_opcode.
func (q *CQ) ReadOpcode() verbs.WCOpcode { return q.ex.cur.Opcode }

// ReadVendorErr is ibv_wc_read_vendor_err.
func (q *CQ) ReadVendorErr() uint32 { return q.ex.cur.VendorErr }

// ReadWCFlags is ibv_wc_read_wc_flags. Unlike ibv_poll_cq, libmlx5 says nothing of
// immediate data here when it was sent and not received.
func (q *CQ) ReadWCFlags() verbs.WCFlags {
	if q.ex.cur.Opcode < verbs.WCOpRecv {
		return q.ex.cur.Flags &^ verbs.WCWithImm
	}
	return q.ex.cur.Flags
}

// ReadByteLen is ibv_wc_read_byte_len.
func (q *CQ) ReadByteLen() uint32 {
	q.asked(verbs.WCExByteLen, "byte_len")
	return q.ex.cur.ByteLen
}

// ReadImmData is ibv_wc_read_imm_data, in host order.
func (q *CQ) ReadImmData() uint32 {
	q.asked(verbs.WCExImm, "imm_data")
	return q.ex.cur.Imm
}

// ReadQPNum is ibv_wc_read_qp_num.
func (q *CQ) ReadQPNum() uint32 {
	q.asked(verbs.WCExQPNum, "qp_num")
	return q.ex.cur.QPN
}

// ReadSrcQP is ibv_wc_read_src_qp.
func (q *CQ) ReadSrcQP() uint32 {
	q.asked(verbs.WCExSrcQP, "src_qp")
	return q.ex.cur.SrcQP
}

// ReadSLID is ibv_wc_read_slid.
func (q *CQ) ReadSLID() uint32 {
	q.asked(verbs.WCExSLID, "slid")
	return uint32(q.ex.cur.SLID)
}

// ReadSL is ibv_wc_read_sl.
func (q *CQ) ReadSL() uint8 {
	q.asked(verbs.WCExSL, "sl")
	return q.ex.cur.SL
}

// ReadDLIDPathBits is ibv_wc_read_dlid_path_bits.
func (q *CQ) ReadDLIDPathBits() uint8 {
	q.asked(verbs.WCExDLIDPathBits, "dlid_path_bits")
	return q.ex.cur.DLIDPathBits
}

// ReadCompletionTS is ibv_wc_read_completion_ts.
func (q *CQ) ReadCompletionTS() uint64 {
	q.asked(verbs.WCExCompletionTimestamp, "completion_ts")
	return q.ex.ts
}

var _ verbs.CQEx = (*CQ)(nil)

// Modify is ibv_modify_cq.
func (q *CQ) Modify(vt verbs.Thread, m verbs.CQModeration) error {
	t := q.ctx.enter(vt)
	if err := q.ctx.u.ModerateCQ(t.caller, q.h, m.Count, m.Period); err != nil {
		return fmt.Errorf("modify_cq: %w", err)
	}
	return nil
}
