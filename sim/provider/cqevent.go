package provider

import (
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Event is ibv_get_cq_event with a deadline; EAGAIN when it passes. Taking an event
// moves the CQ's arm sequence on (cq.c, mlx5_cq_event).
func (ch *CompChannel) Event(vt verbs.Thread, timeout time.Duration) (verbs.CQ, error) {
	t := Of(vt)
	t.Core.Run(t.P, ch.ctx.proc.Params.Control)
	cookie, err := ch.k.Wait(t.caller, t.until(timeout))
	if err != nil {
		return nil, err
	}
	q := ch.ctx.cqOf(cookie)
	if q == nil {
		return nil, fmt.Errorf("event of CQ %d, which is gone: %w", cookie, syscall.EIO)
	}
	q.armSN++
	return q, nil
}

// Ack is ibv_ack_cq_events.
func (ch *CompChannel) Ack(vt verbs.Thread, cq verbs.CQ, n int) {
	t := ch.ctx.enter(vt)
	if q, ok := cq.(*CQ); ok && n > 0 {
		q.compAcks.ack(t, n)
	}
}

// ReqNotify is ibv_req_notify_cq: the arm word to the record, then to the register.
// It takes no lock.
func (q *CQ) ReqNotify(vt verbs.Thread, solicitedOnly bool) error {
	t := Of(vt)
	t.Core.Run(t.P, q.ctx.proc.Params.ReqNotify)
	t.P.Sync()
	w := prm.MakeArmWord(q.armSN&3, solicitedOnly && !t.breaks(rule.SolicitedArmIsPassedOn), q.ci)
	prm.CQDBRec(q.db.b).SetArm(w)
	var b [prm.CQArmDoorbellSize]byte
	prm.CQArmDoorbell(b[:]).Set(w, q.cqn)
	t.Core.Fence(t.P)
	t.Core.Store(t.P, q.ctx.cqReg.m, q.ctx.cqReg.off+prm.UARCQArm, b[:])
	t.Core.Fence(t.P)
	return nil
}

// cqOf is the CQ of a cookie, or nil.
func (c *Context) cqOf(cookie uint64) *CQ {
	if cookie >= uint64(len(c.cookies.all)) {
		return nil
	}
	q, _ := c.cookies.all[cookie].(*CQ)
	return q
}
