package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Modify is ibv_modify_qp: the kernel's part, then the limits of posting and, on
// RESET, the removal of its completions (verbs.c, mlx5_modify_qp).
func (q *QP) Modify(vt verbs.Thread, a *verbs.QPAttr, mask verbs.QPAttrMask) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	if err := q.ctx.u.ModifyQP(t.caller, q.h, a, mask); err != nil {
		return fmt.Errorf("modify_qp: %w", err)
	}
	if mask&verbs.QPMaskState == 0 {
		return nil
	}
	t.P.Sync()
	if q.dct() {
		q.numbered(a)
		return nil
	}
	q.state = a.State
	switch a.State {
	case verbs.QPSReset:
		q.removeCompletions(t)
		t.P.Sync() // others may be posting
		q.reset()
		if q.ex != nil {
			q.ex.refused = true
		}
	case verbs.QPSInit:
		q.rq.limit = q.rq.maxGS
	case verbs.QPSRTR:
		q.startReceiving(t)
	case verbs.QPSRTS:
		q.sq.limit = q.sq.maxGS
		if q.ex != nil {
			q.ex.refused = false
		}
	}
	return nil
}

// removeCompletions removes the QP's completions from its CQs.
func (q *QP) removeCompletions(t *Thread) {
	for i, cq := range [...]*CQ{q.recvCQ, q.sendCQ} {
		if i == 1 && cq == q.recvCQ {
			return
		}
		if cq == nil { // of a QP that only sends
			continue
		}
		left := cq.lock.acquire(t, q.ctx.proc.Params, 0)
		cq.clean(t, q.uidx, q.srq, &left)
		t.Core.Run(t.P, left)
		cq.lock.release(t)
	}
}

func (q *QP) reset() {
	for _, w := range [...]*queue{&q.sq, &q.rq} {
		w.head, w.tail, w.posted, w.limit = 0, 0, 0, -1
	}
	q.fmCache, q.receives = 0, false
	d := q.dbRecord
	d.SetRecv(0)
	d.SetSend(0)
}

// Query is ibv_query_qp.
func (q *QP) Query(vt verbs.Thread, mask verbs.QPAttrMask) (verbs.QPAttr, verbs.QPInitAttr, error) {
	return q.ctx.queryQP(vt, q.h, mask, q.init, q.Caps(), &q.state)
}

// queryQP is Query of any QP. The state that the kernel answers is the one that the library keeps.
func (c *Context) queryQP(vt verbs.Thread, h kernel.Handle, mask verbs.QPAttrMask, init verbs.QPInitAttr, caps verbs.QPCap, state *verbs.QPState) (verbs.QPAttr, verbs.QPInitAttr, error) {
	a, err := c.u.QueryQP(c.enter(vt).caller, h, mask)
	if err != nil {
		return verbs.QPAttr{}, verbs.QPInitAttr{}, fmt.Errorf("query_qp: %w", err)
	}
	a.Cap, init.Cap, *state = caps, caps, a.State
	return a, init, nil
}

// Destroy is ibv_destroy_qp.
func (q *QP) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	async, err := q.ctx.u.DestroyQP(t.caller, q.h)
	if err != nil {
		return fmt.Errorf("destroy_qp: %w", err)
	}
	if !t.breaks(rule.AsyncEventsAreAwaited) {
		q.acks.wait(t, async, "a QP")
	}
	q.removeCompletions(t)
	t.P.Sync()
	q.ctx.uidx.put(q.uidx)
	q.bf.use(-1)
	q.pd.drop()
	q.release(t)
	return nil
}
