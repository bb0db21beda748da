package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// PostSend is ibv_post_send (qp.c, _mlx5_post_send). All bytes of the list and the
// doorbell record are written at one instant: when the queue's lock is taken, or,
// without a lock, when they are built. The register write leaves at the thread's
// time, after the cost of building.
func (q *QP) PostSend(vt verbs.Thread, wrs []verbs.SendWR) (bad int, err error) {
	t := Of(vt)
	p := q.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	if t.breaks(rule.TargetTakesNoPosts) && q.dct() {
		return len(wrs), nil
	}
	left := q.sq.lock.acquire(t, p, p.Bookkeeping)
	left += t.Core.Claim(t.P, &q.sq.line)
	var s posting
	for bad = range wrs {
		if err = q.buildSend(t, &s, &wrs[bad]); err != nil {
			err = badRequest(bad, err)
			t.answers(&err)
			break
		}
		left += s.cost(p)
		s.nreq++
	}
	if err == nil {
		bad = len(wrs)
	}
	if s.nreq > 0 {
		c := &q.ctx.proc.C
		c.SendCalls++
		c.SendWRs += uint64(s.nreq)
		if t.breaks(rule.RecordBeforeDoorbell) {
			q.ringBell(t, &s, left)
			q.record(t, &s)
		} else {
			q.record(t, &s)
			q.ringBell(t, &s, left)
		}
	} else {
		t.Core.Run(t.P, left)
	}
	q.sq.lock.release(t)
	t.span("post_send", start, uint64(q.qpn))
	return bad, err
}

//go:noinline
func badRequest(n int, err error) error { return fmt.Errorf("post_send: request %d: %w", n, err) }

// cost is the CPU time to build a request, counted from what has been built: 16-byte units, of
// which the inline data take some, and the further lines of the ring that they are in.
func (s *posting) cost(p *Params) sim.Time {
	segments := s.ds - 1
	if s.copied > 0 {
		segments -= prm.InlineSize(s.copied) / segSize
	}
	return p.BuildWQE + sim.Time(segments)*p.BuildSegment + sim.Time((s.ds*segSize-1)/wqebb)*p.BuildLine +
		sim.Time((s.copied+wqebb-1)/wqebb)*p.InlineCopy
}
