package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// PostRecv is ibv_post_recv (qp.c, mlx5_post_recv): no register is written.
func (q *QP) PostRecv(vt verbs.Thread, wrs []verbs.RecvWR) (bad int, err error) {
	t := Of(vt)
	p := q.ctx.proc.Params
	rq := &q.rq
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	cost := p.Bookkeeping
	for i := range wrs {
		cost += p.BuildRecv + sim.Time(len(wrs[i].SGEs))*p.BuildSegment
	}
	left := rq.lock.acquire(t, p, cost)
	left += t.Core.Claim(t.P, &rq.line)
	nreq := 0
	for bad = range wrs {
		if err = q.buildRecv(t, nreq, &wrs[bad]); err != nil {
			err = fmt.Errorf("post_recv: request %d: %w", bad, err)
			t.answers(&err)
			break
		}
		nreq++
	}
	if err == nil {
		bad = len(wrs)
	}
	if nreq > 0 {
		q.ctx.proc.C.RecvCalls++
		q.ctx.proc.C.RecvWRs += uint64(nreq)
		rq.head += uint32(nreq)
		if !q.raw() || q.receives || t.breaks(rule.PacketsWaitForRTR) {
			q.dbRecord.SetRecv(uint16(rq.head))
			left += p.DoorbellRecord
		}
		t.Core.DMABarrier(t.P)
	}
	t.Core.Run(t.P, left)
	rq.lock.release(t)
	t.span("post_recv", start, uint64(q.qpn))
	return bad, err
}

func (q *QP) buildRecv(t *Thread, nreq int, w *verbs.RecvWR) error {
	rq := &q.rq
	if q.overflow(t, rq, nreq, q.recvCQ) {
		return fmt.Errorf("the receive queue holds %d: %w", rq.maxPost, syscall.ENOMEM)
	}
	if len(w.SGEs) > rq.limit {
		return fmt.Errorf("%d SGEs, limit %d: %w", len(w.SGEs), rq.limit, syscall.EINVAL)
	}
	idx := (rq.head + uint32(nreq)) & uint32(rq.cnt-1)
	off := rq.off + int(idx)<<rq.shift
	wqe := q.ring.at(off)[: 1<<rq.shift : 1<<rq.shift]
	j := 0
	for i := range w.SGEs {
		if g := &w.SGEs[i]; g.Length != 0 {
			prm.DataSegment(wqe[j*segSize:]).Set(g.Length, g.LKey, g.Addr)
			j++
		}
	}
	if j < rq.maxGS && !t.breaks(rule.ReceiveListEnds) {
		prm.DataSegment(wqe[j*segSize:]).Set(0, prm.InvalidLKey, 0)
	}
	rq.requests[idx].id = w.ID
	return nil
}
