package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// AttachMcast is ibv_attach_mcast.
func (q *QP) AttachMcast(vt verbs.Thread, group verbs.GID, lid uint16) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	if err := q.ctx.u.AttachMcast(t.caller, q.h, group, lid); err != nil {
		return fmt.Errorf("attach_mcast: %w", err)
	}
	return nil
}

// DetachMcast is ibv_detach_mcast.
func (q *QP) DetachMcast(vt verbs.Thread, group verbs.GID, lid uint16) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	if err := q.ctx.u.DetachMcast(t.caller, q.h, group, lid); err != nil {
		return fmt.Errorf("detach_mcast: %w", err)
	}
	return nil
}
