package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// CompChannel is a completion event channel.
type CompChannel struct {
	verbs.UnimplementedCompChannel
	ctx  *Context
	k    *kernel.Channel
	refs int // CQs
	fd   *descriptor
}

// Destroy is ibv_destroy_comp_channel: EBUSY while CQs use it.
func (ch *CompChannel) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := ch.ctx.enter(vt)
	if ch.refs > 0 && !t.breaks(rule.ChannelInUseIsBusy) {
		return fmt.Errorf("destroy_comp_channel: %d CQs: %w", ch.refs, syscall.EBUSY)
	}
	if err := ch.ctx.u.DestroyChannel(t.caller, ch.k); err != nil {
		return err
	}
	ch.ctx.proc.forgetFD(ch.fd)
	return nil
}

// CreateCompChannel is ibv_create_comp_channel.
func (c *Context) CreateCompChannel(vt verbs.Thread) (_ verbs.CompChannel, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	k, err := c.u.CreateChannel(t.caller)
	if err != nil {
		return nil, fmt.Errorf("create_comp_channel: %w", err)
	}
	ch := &CompChannel{ctx: c, k: k, fd: &descriptor{}}
	c.proc.openFD(ch.fd)
	return ch, nil
}
