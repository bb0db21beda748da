package comp

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// manyCQs has 64 CQs on one channel, of which a random part gets completions in each
// round. A CQ stays armed until its event comes.
func manyCQs(c *spec.C) {
	const cqs, rounds = 64, 20
	e := kit.Open(c)
	ch := e.Channel(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	index := map[verbs.CQ]int{}
	var all [cqs]verbs.CQ
	var qps [cqs]*kit.QP
	for i := range all {
		all[i] = e.CQOn(c, ch, i)
		index[all[i]] = i
		o := kit.Default()
		o.SendCQ, o.CQE = all[i], 7
		qps[i] = e.Pair(c, o).A
		kit.Arm(c, all[i], false)
	}
	var events [cqs]int
	for range rounds {
		var sent [cqs]int
		loaded := 0
		for i := range qps {
			if c.Rand().Intn(2) == 0 {
				continue
			}
			loaded++
			sent[i] = 1 + c.Rand().Intn(4)
			for k := range sent[i] {
				qps[i].Post(c, kit.Write(uint64(k), mem, 32, mem.SGE(0, 8)))
			}
		}
		var reported [cqs]int
		for range loaded {
			got, err := ch.Event(c.T, kit.CompletionTimeout)
			kit.Must(c, "get_cq_event", err)
			i, known := index[got]
			if !known || sent[i] == 0 {
				c.Failf("an event of CQ %d, which has no completion", i)
			}
			reported[i]++
			events[i]++
		}
		if _, err := ch.Event(c.T, kit.QuietPeriod); verbs.ErrnoOf(err) != syscall.EAGAIN {
			c.Failf("an event too many, or %v", err)
		}
		for i, n := range reported {
			if want := min(sent[i], 1); n != want {
				c.Failf("CQ %d: %d events for one arm and %d completions", i, n, sent[i])
			}
			if sent[i] > 0 {
				kit.ExpectSuccess(c, all[i], sent[i])
				kit.Arm(c, all[i], false)
			}
		}
	}
	total := 0
	for i, n := range events {
		ch.Ack(c.T, all[i], n)
		total += n
	}
	c.Observe("events", total)
}

// wakeUps is how many completions are sent to a thread that sleeps between them.
const wakeUps = 100_000

// noLostWakeUp has one thread send at random moments while another sleeps on the
// channel as the manual says: take the event, arm again, poll until nothing is left.
func noLostWakeUp(c *spec.C) {
	b := newBench(c)
	var taken atomic.Int64
	kit.Arm(c, b.send, false)
	receiver := c.Go("receiver", -1, func(c *spec.C) { c.Observe("completions", b.sleepAndDrain(c, &taken)) })
	for i := range int64(wakeUps) {
		for i-taken.Load() >= 32 {
			c.T.Sleep(time.Microsecond)
		}
		b.A.Post(c, kit.Write(uint64(i), b.mem, 128, b.mem.SGE(0, 8)))
		c.T.Work(time.Duration(c.Rand().Intn(12_000)))
	}
	kit.JoinThreads(c, receiver)
}

func (b *bench) sleepAndDrain(c *spec.C, taken *atomic.Int64) int64 {
	wc := make([]verbs.WC, 16)
	for unacked := 0; taken.Load() < wakeUps; {
		cq, err := b.ch.Event(c.T, kit.CompletionTimeout)
		if err != nil {
			c.Failf("no event, with %d of %d completions taken: %v", taken.Load(), wakeUps, err)
		}
		if unacked++; unacked == 100 {
			b.ch.Ack(c.T, cq, unacked)
			unacked = 0
		}
		kit.Must(c, "req_notify_cq", cq.ReqNotify(c.T, false))
		for {
			n, err := cq.Poll(c.T, wc)
			kit.Must(c, "poll_cq", err)
			if n == 0 {
				break
			}
			for _, w := range wc[:n] {
				if w.Status != verbs.WCSuccess {
					c.Status("write", w, verbs.WCSuccess)
				}
			}
			taken.Add(int64(n))
		}
		if taken.Load() == wakeUps {
			b.ch.Ack(c.T, cq, unacked)
		}
	}
	return taken.Load()
}
