package provider

import (
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// CompChannel is a completion event channel.
type CompChannel struct {
	verbs.UnimplementedCompChannel
	ctx  *Context
	k    *kernel.Channel
	refs int // CQs
}

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

// Destroy is ibv_destroy_comp_channel: EBUSY while CQs use it.
func (ch *CompChannel) Destroy(vt verbs.Thread) error {
	t := ch.ctx.enter(vt)
	if ch.refs > 0 {
		return fmt.Errorf("destroy_comp_channel: %d CQs: %w", ch.refs, syscall.EBUSY)
	}
	return ch.ctx.u.DestroyChannel(t.caller, ch.k)
}
