package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ completer = (*QP)(nil)

// completeSend retires the request of an entry, and those before it.
func (q *QP) completeSend(t *Thread, e prm.CQE64, wc *verbs.WC) {
	t.unspent += t.Core.Claim(t.P, &q.sq.line)
	idx := uint32(e.WQECounter()) & uint32(q.sq.cnt-1)
	r := &q.sq.requests[idx]
	wc.ID = r.id
	wc.Opcode = r.driver
	if t.breaks(rule.RetiresUnsignalled) {
		q.sq.tail++
		return
	}
	q.sq.tail = r.head + 1
}

// completeRecv retires the oldest request, or the one of the SRQ that the entry names.
func (q *QP) completeRecv(t *Thread, e prm.CQE64, wc *verbs.WC) uint32 {
	if s := q.srq; s != nil {
		idx := e.WQECounter()
		wc.ID = s.retire(t, idx)
		return uint32(idx)
	}
	t.unspent += t.Core.Claim(t.P, &q.rq.line)
	if q.rq.cnt == 0 {
		return 0
	}
	idx := q.rq.tail & uint32(q.rq.cnt-1)
	wc.ID = q.rq.requests[idx].id
	if q.raw() && e.Opcode() == prm.CQERespSend && checksumsOK(e) {
		wc.Flags |= verbs.WCIPCsumOK
	}
	q.rq.tail++
	return idx
}

// repostRecv has the SRQ post a request again.
func (q *QP) repostRecv(t *Thread, e prm.CQE64) bool {
	if q.srq != nil {
		q.srq.repost(t, e.WQECounter())
	}
	return q.srq != nil
}

// scatterSend is mlx5_copy_to_send_wqe.
func (q *QP) scatterSend(t *Thread, e prm.CQE64, wc *verbs.WC, data []byte) {
	ctrl := int(uint32(e.WQECounter())&uint32(q.sq.cnt-1)) << q.sq.shift
	ds := prm.CtrlSegment(q.seg(ctrl)).DS()
	first := 2
	if wc.Opcode != verbs.WCOpRDMARead {
		first = 3
	}
	for i := first; i < ds && len(data) > 0; i++ {
		data = q.ctx.store(t, prm.DataSegment(q.seg(ctrl+i*segSize)), data)
	}
	if len(data) > 0 {
		wc.Status = verbs.WCLocLenErr
	}
}

// scatterRecv is mlx5_copy_to_recv_wqe.
func (q *QP) scatterRecv(t *Thread, wqe uint32, wc *verbs.WC, data []byte) {
	if q.srq != nil {
		q.srq.scatterRecv(t, wqe, wc, data)
		return
	}
	b := q.ring.at(q.rq.off + int(wqe)<<q.rq.shift)
	for i := 0; i < q.rq.maxGS && len(data) > 0; i++ {
		data = q.ctx.store(t, prm.DataSegment(b[i*segSize:]), data)
	}
	if len(data) > 0 {
		wc.Status = verbs.WCLocLenErr
	}
}

// store copies data into one segment and returns what is left of it.
func (c *Context) store(t *Thread, s prm.DataSegment, data []byte) []byte {
	n := min(len(data), int(s.ByteCount()&^prm.InlineFlag))
	if n > 0 {
		t.P.Sync() // the device and other threads see the bytes
		if err := c.proc.K.Space.WriteAt(data[:n], mem.VA(s.Addr())); err != nil {
			panic(Abort{"segmentation fault: " + t.name + " scatters a completion: " + err.Error()})
		}
	}
	return data[n:]
}
