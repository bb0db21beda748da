package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// PostRaw writes a WQE to the beginning of a send queue on which the library has posted nothing,
// and rings for it. The WQE names QP qpn; imm is the last word of its control segment, and body
// follows that.
func PostRaw(c *spec.C, q *QP, op prm.WQEOpcode, qpn, imm uint32, body ...byte) {
	ds := (prm.CtrlSegmentSize + len(body)) / prm.DSSize
	blocks := (ds*prm.DSSize + prm.WQEBBSize - 1) / prm.WQEBBSize
	wqe := make([]byte, blocks*prm.WQEBBSize)
	ctrl := prm.CtrlSegment(wqe)
	ctrl.Set(op, 0, 0, qpn, ds, prm.CtrlCQUpdate, imm)
	copy(wqe[prm.CtrlSegmentSize:], body)
	m := Mlx5(c, q)
	ok(c, "write the send queue", m.WriteSendQueue(c.T, 0, wqe))
	ok(c, "write the doorbell record", m.WriteDoorbellRecord(c.T, uint16(blocks)))
	bell := append(prm.CtrlSegment(nil), ctrl...) // which rings for the queue itself
	bell.Set(op, 0, 0, q.QPN(), ds, 0, 0)
	ok(c, "ring", m.RingDoorbell(c.T, DoorbellValue(bell)))
}

// PollRaw takes the completion of a request that was posted behind the library's back. It returns
// it with wr_id, opcode, byte_len and flags zeroed, because the library takes them from what it
// remembers of an earlier request in that slot.
func PollRaw(c *spec.C, cq verbs.CQ) verbs.WC {
	wc := PollOne(c, cq)
	wc.ID, wc.Opcode, wc.ByteLen, wc.Flags = 0, 0, 0, 0
	return wc
}
