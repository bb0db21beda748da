package workload

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// spread keeps a number of requests outstanding, each on a QP of the thread chosen at
// random, as servers with many clients do.
func (s *Started) spread(t verbs.Thread, i int) {
	l := s.l
	p := s.newPoster(i)
	set := s.a.qps[i]
	r, f := &s.res.Threads[i], &s.flows[i][0] // of all its queue pairs
	wc := make([]verbs.WC, pollBatch)
	for out := 0; s.res.Failed == nil; {
		finished := s.finished(t, i, r.Completed+uint64(out))
		if finished && out == 0 {
			return
		}
		for ; out < l.Spread && !finished; out++ {
			k := set[p.random()%uint64(len(set))]
			if l.Work > 0 {
				t.Work(l.Work)
			}
			if _, err := k.qp.PostSend(t, p.prepare(k, i, 1, p.sent)); err != nil {
				s.fail(t.Now(), "thread %d: post: %v", i, err)
				return
			}
			f.posted++
		}
		n, err := set[0].cq.PollWait(t, wc, l.Patience())
		if err != nil || n == 0 {
			s.silent(t, i, err)
			return
		}
		now := t.Now()
		for j, w := range wc[:n] {
			if w.Status != verbs.WCSuccess {
				s.died(now, &wc[j], fmt.Sprintf("thread %d", i))
				return
			}
			s.count(now, completedAt(set[0].times, j, now), r, f, 1)
		}
		out -= n
		f.completed.Add(uint64(n))
	}
}
