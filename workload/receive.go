package workload

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// fill posts the receives of a set of QPs before the load begins.
func (s *Started) fill(t verbs.Thread, set []*conn) bool {
	for _, k := range set {
		for range s.l.RecvDepth {
			if !s.repost(t, k) {
				return false
			}
		}
	}
	return true
}

func (s *Started) repost(t verbs.Thread, k *conn) bool {
	in := k.ctx.mrs[k.pd]
	wr := [1]verbs.RecvWR{{SGEs: []verbs.SGE{{Addr: in.buf.Addr(), Length: uint32(min(in.buf.Len(), 1<<30)), LKey: in.mr.LKey()}}}}
	if _, err := k.qp.PostRecv(t, wr[:]); err != nil {
		s.fail("post receive: %v", err)
		return false
	}
	return true
}

// receive reposts what completes until the load ends.
func (s *Started) receive(t verbs.Thread, set []*conn) {
	byQPN := map[uint32]*conn{}
	for _, k := range set {
		byQPN[k.qp.QPN()] = k
	}
	wc := make([]verbs.WC, 16)
	for s.running(t) {
		n, err := set[0].rcq.PollWait(t, wc, 10*time.Microsecond)
		if err != nil {
			s.fail("poll of the receive CQ: %v", err)
			return
		}
		for _, w := range wc[:n] {
			if w.Status != verbs.WCSuccess {
				s.fail("receive completed with %v", w.Status)
				return
			}
			if !s.repost(t, byQPN[w.QPN]) {
				return
			}
		}
	}
}

// running reports whether the load has not ended. It yields first, so that threads see
// each other's variables in the order of their clocks.
func (s *Started) running(t verbs.Thread) bool {
	t.Sleep(0)
	return !s.ended.Load() && s.res.Failed == nil
}
