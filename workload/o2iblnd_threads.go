package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// event is the event handler of legacy, in hard interrupt (kiblnd_cq_completion).
func (o *O2IB) event(k kernel.Context, c *o2ibConn) {
	s := c.sched
	s.lock.Lock(k)
	c.ready = true
	if !c.scheduled {
		c.scheduled = true
		s.list = append(s.list, c)
		s.queue.WakeOne(k)
	}
	s.lock.Unlock(k)
}

func (o *O2IB) threads() error {
	for p, s := range o.parts {
		for i := range o.Threads {
			var err error
			switch o.Model {
			case "legacy", "legacy-16":
				err = o.h.Start(fmt.Sprintf("kiblnd_sd_%02d_%02d", p, i), s.first, s.cpus, func(t kernel.Thread) { o.scheduler(t, s) })
			case "softirq-threads":
				err = o.h.Start(fmt.Sprintf("kiblnd_sd_%02d_%02d", p, i), s.first, s.cpus, func(t kernel.Thread) { o.takeOver(t, s) })
			case "direct":
				err = o.h.Start(fmt.Sprintf("poll_%02d_%02d", p, i), s.first+i, 1, func(t kernel.Thread) { o.poller(t, s, i) })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// scheduler is the loop of a scheduler thread (kiblnd_scheduler). That of legacy-16 takes a batch
// and wakes nobody for the rest; it asks for missed events (kefalnd_scheduler).
func (o *O2IB) scheduler(t kernel.Thread, s *o2ibSched) {
	batched := o.Model == "legacy-16"
	wcs := make([]kernel.WC, 1)
	if batched {
		wcs = make([]kernel.WC, 16)
	}
	s.lock.Lock(t)
	for {
		c := next(t, s, &s.list)
		c.ready = false
		s.lock.Unlock(t)
		n := c.cq.Poll(t, wcs)
		if n == 0 && (c.cq.ReqNotify(t, batched) || !batched) {
			n = c.cq.Poll(t, wcs)
		}
		s.lock.Lock(t)
		if n > 0 || c.ready {
			s.list = append(s.list, c)
			if !batched {
				s.queue.WakeOne(t)
			}
		} else {
			c.scheduled = false
		}
		if n > 0 {
			s.lock.Unlock(t)
			for i := range n {
				o.handle(t, c, &wcs[i])
			}
			s.lock.Lock(t)
		}
	}
}

// next takes the first of a list of s, whose lock t holds, and waits for one.
func next[T any](t kernel.Thread, s *o2ibSched, list *[]T) T {
	for {
		if t.NeedResched() {
			s.lock.Unlock(t)
			t.Resched()
			s.lock.Lock(t)
		}
		if len(*list) > 0 {
			x := (*list)[0]
			*list = (*list)[:copy(*list, (*list)[1:])]
			return x
		}
		s.queue.Wait(t, s.lock)
	}
}

// handOver is what ib_core's softirq does with a completion of softirq-threads.
func (o *O2IB) handOver(k kernel.Context, s *o2ibSched, wc *kernel.WC) {
	s.lock.Lock(k)
	s.wcs = append(s.wcs, *wc)
	s.queue.WakeOne(k)
	s.lock.Unlock(k)
}

// takeOver is the loop of a thread that takes what the softirq hands over.
func (o *O2IB) takeOver(t kernel.Thread, s *o2ibSched) {
	s.lock.Lock(t)
	for {
		wc := next(t, s, &s.wcs)
		s.lock.Unlock(t)
		o.handle(t, o.conns[wc.ID&(1<<connBits-1)], &wc)
		s.lock.Lock(t)
	}
}

// drain is the work item of fanout on one CPU: it takes one completion at a time, and arms the CQ
// when it finds none.
func (o *O2IB) drain(t kernel.Thread, c *o2ibConn) {
	var wc [1]kernel.WC
	for {
		n := c.cq.Poll(t, wc[:])
		if n == 0 {
			c.cq.ReqNotify(t, false)
			n = c.cq.Poll(t, wc[:])
		}
		if n == 0 {
			return
		}
		o.handle(t, c, &wc[0])
	}
}

// poller polls every Threads-th connection of its partition.
func (o *O2IB) poller(t kernel.Thread, s *o2ibSched, nth int) {
	var own []kernel.CQ
	i := 0
	for _, c := range o.conns {
		if c.sched != s {
			continue
		}
		if i%o.Threads == nth && !slices.Contains(own, c.cq) {
			own = append(own, c.cq)
		}
		i++
	}
	for len(own) > 0 {
		for _, q := range own {
			if _, err := q.ProcessDirect(t, 256); err != nil {
				panic(err) // o.connect has made it
			}
		}
		t.Resched()
	}
}

// Locks are the counts of the locks of all partitions.
func (o *O2IB) Locks() (sum kernel.LockStats) {
	for _, s := range o.parts {
		l := s.lock.Stats()
		sum.Acquired, sum.Waited, sum.Wait, sum.Lines = sum.Acquired+l.Acquired, sum.Waited+l.Waited, sum.Wait+l.Wait, sum.Lines+l.Lines
	}
	return sum
}

// Stuck is the connection whose handler has run since before a time and has not ended, if there is
// one.
func (o *O2IB) Stuck(since time.Duration) (conn int, began time.Duration, ok bool) {
	for _, c := range o.conns {
		if c.running > 0 && c.began < since {
			return c.id, c.began, true
		}
	}
	return 0, 0, false
}
