package workload

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// receiver posts receives in calls of RecvPostlist, so that a call allocates nothing.
type receiver struct {
	s    *Started
	wrs  []verbs.RecvWR
	sges []verbs.SGE
}

func (s *Started) newReceiver() *receiver {
	n := max(s.l.RecvPostlist, 1)
	r := &receiver{s: s, wrs: make([]verbs.RecvWR, n), sges: make([]verbs.SGE, n)}
	for i := range r.wrs {
		r.wrs[i].SGEs = r.sges[i : i+1 : i+1]
	}
	return r
}

// post posts n receives, at most RecvPostlist, to a queue pair.
func (r *receiver) post(t verbs.Thread, k *conn, n int) bool {
	in := k.ctx.mrs[k.pd]
	for i := range r.sges[:n] {
		r.sges[i] = verbs.SGE{Addr: in.buf.Addr(), Length: uint32(min(in.buf.Len(), 1<<30)), LKey: in.mr.LKey()}
	}
	if _, err := k.qp.PostRecv(t, r.wrs[:n]); err != nil {
		r.s.fail(t.Now(), "post receive: %v", err)
		return false
	}
	return true
}

// fill posts the receives of a set of QPs before the load begins.
func (s *Started) fill(t verbs.Thread, set []*conn) bool {
	r := s.newReceiver()
	for _, k := range set {
		for left := s.l.RecvDepth; left > 0; left -= len(r.wrs) {
			if !r.post(t, k, min(left, len(r.wrs))) {
				return false
			}
		}
	}
	return true
}

// receive reposts what completes until the load ends.
func (s *Started) receive(t verbs.Thread, set []*conn) {
	r := s.newReceiver()
	byQPN := map[uint32]*conn{}
	for _, k := range set {
		byQPN[k.qp.QPN()] = k
	}
	wc := make([]verbs.WC, 16)
	for s.running(t) {
		n, err := set[0].rcq.PollWait(t, wc, 10*time.Microsecond)
		if err != nil {
			s.fail(t.Now(), "poll of the receive CQ: %v", err)
			return
		}
		for _, w := range wc[:n] {
			if w.Status != verbs.WCSuccess {
				s.fail(t.Now(), "receive completed with %v", w.Status)
				return
			}
			k := byQPN[w.QPN]
			if k.received++; k.received < len(r.wrs) {
				continue
			}
			if k.received = 0; !r.post(t, k, len(r.wrs)) {
				return
			}
			if now := t.Now(); now >= s.begin() && (s.stop() == 0 || now < s.stop()) {
				s.refilled.Add(uint64(len(r.wrs)))
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
