package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// completeSend finds the request of a requester entry and retires it with all that
// were posted before it.
func (q *QP) completeSend(t *Thread, e prm.CQE64, wc *verbs.WC) {
	t.owed += t.Core.Claim(t.P, &q.sq.line)
	idx := uint32(e.WQECounter()) & uint32(q.sq.cnt-1)
	wc.ID = q.sq.wrid[idx]
	if q.sq.umr != nil && e.SOp() == prm.WQEOpUMR {
		wc.Opcode = q.sq.umr[idx]
	}
	q.sq.tail = q.sq.heads[idx] + 1
}

// completeRecv finds the request of a responder entry, the oldest there is or the one
// of the SRQ that the entry names, and returns its index.
func (q *QP) completeRecv(t *Thread, e prm.CQE64, wc *verbs.WC) uint32 {
	if s := q.srq; s != nil {
		idx := e.WQECounter()
		wc.ID = s.retire(t, idx)
		return uint32(idx)
	}
	t.owed += t.Core.Claim(t.P, &q.rq.line)
	if q.rq.cnt == 0 {
		return 0
	}
	idx := q.rq.tail & uint32(q.rq.cnt-1)
	wc.ID = q.rq.wrid[idx]
	q.rq.tail++
	return idx
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

// scatter copies the result of a read or an atomic from the CQE to where the send WQE
// wants it (mlx5_copy_to_send_wqe).
func (q *CQ) scatter(t *Thread, qp *QP, e prm.CQE64, wc *verbs.WC, _ bool) {
	data := q.inlineOf(e, wc.ByteLen)
	if data == nil {
		return
	}
	ctrl := int(uint32(e.WQECounter())&uint32(qp.sq.cnt-1)) << qp.sq.shift
	ds := prm.CtrlSegment(qp.seg(ctrl)).DS()
	first := 2
	if wc.Opcode != verbs.WCOpRDMARead {
		first = 3
	}
	for i := first; i < ds && len(data) > 0; i++ {
		data = q.store(t, prm.DataSegment(qp.seg(ctrl+i*segSize)), data)
	}
	if len(data) > 0 {
		wc.Status = verbs.WCLocLenErr
	}
}

// scatterRecv is the same for a receive WQE (mlx5_copy_to_recv_wqe).
func (q *CQ) scatterRecv(t *Thread, qp *QP, e prm.CQE64, wc *verbs.WC, wqe uint32) {
	data := q.inlineOf(e, wc.ByteLen)
	var b []byte
	n := qp.rq.maxGS
	if s := qp.srq; s != nil {
		b, n = s.wqe(int(wqe) & (s.max - 1))[prm.SRQNextSegmentSize:], s.maxGS
	} else {
		b = qp.ring.at(qp.rq.off + int(wqe)<<qp.rq.shift)
	}
	for i := 0; i < n && len(data) > 0; i++ {
		data = q.store(t, prm.DataSegment(b[i*segSize:]), data)
	}
	if len(data) > 0 {
		wc.Status = verbs.WCLocLenErr
	}
}

// store copies data into one segment and returns what is left of it.
func (q *CQ) store(t *Thread, s prm.DataSegment, data []byte) []byte {
	n := min(len(data), int(s.ByteCount()&^prm.InlineFlag))
	if n > 0 {
		if err := q.ctx.proc.K.Space.WriteAt(data[:n], mem.VA(s.Addr())); err != nil {
			panic(Abort{"segmentation fault: " + t.name + " scatters a completion: " + err.Error()})
		}
	}
	return data[n:]
}
