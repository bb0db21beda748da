package workload

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// O2IBModels are the ways in which an o2iblnd could have its completions handled. Legacy is what it does: the event handler puts the
// connection on the list of its CPU partition, and scheduler threads take one completion at a time. The others are the poll
// contexts of ib_core; irq-inline is hypothetical, since ib_core has no such context.
var O2IBModels = []string{"legacy", "irq-inline", "direct", "softirq", "workqueue", "unbound"}

var pollContexts = map[string]kernel.PollContext{"irq-inline": kernel.Interrupt, "direct": kernel.Direct, "softirq": kernel.Softirq,
	"workqueue": kernel.Workqueue, "unbound": kernel.UnboundWorkqueue}

// O2IB is a load like that of Lustre's o2iblnd (lnet/klnds/o2iblnd): connections to peers, of which each has as many messages under
// way as it has credits. What a peer and the wire do takes Turnaround, and then the message's completion arrives.
type O2IB struct {
	Model        string
	Peers        int
	ConnsPerPeer int // conns_per_peer
	Credits      int // messages of a connection that are under way
	// Partitions are the CPU partitions (CPTs), of equally many CPUs; each has its list and its threads.
	Partitions int
	// Threads are those of each partition, for legacy and direct: legacy's have the partition's CPUs, and direct's one CPU each.
	Threads int
	// SameVector: all connections of a peer have one completion vector, as before Lustre 2.16.
	SameVector bool
	// Merged: the connections of a vector share a CQ, as those of ib_cq_pool_get.
	Merged bool
	// Moderate: DIM, for the models of ib_core.
	Moderate bool
	// Handle is the CPU time of a completion, and Turnaround the time until the next one of its message's successor arrives.
	Handle, Turnaround func(conn int) time.Duration
	// Stop ends the traffic; 0: each message is sent once.
	Stop time.Duration
	// From is when counting begins.
	From time.Duration

	Stats O2IBStats

	h     kernel.Host
	conns []*o2ibConn
	parts []*o2ibSched
}

// O2IBStats is what a load has seen since From.
type O2IBStats struct {
	Handled    uint64
	ByConn     []uint64
	Latency    Histogram     // from the CQE to the end of its handler
	First      time.Duration // when the first handler began
	Last       time.Duration // when the last one ended
	Inversions uint64        // handlers that ended before one of the same connection whose completion was earlier
	Most       int           // handlers that ran at once
}

// Histogram counts durations: 16 bins for each power of two of nanoseconds.
type Histogram struct {
	bins [64 * 16]uint64
	n    uint64
}

// Add counts one.
func (h *Histogram) Add(d time.Duration) {
	h.bins[durationBin(uint64(max(d, 0)))]++
	h.n++
}

func durationBin(v uint64) int {
	if v < 16 {
		return int(v)
	}
	e := bits.Len64(v) - 5
	return (e+1)*16 + int(v>>e)&15
}

// Percentile is the least duration, to a sixteenth of its power of two, that p of 1000 do not exceed; 0 if there is none.
func (h *Histogram) Percentile(p int) time.Duration {
	want, seen := (h.n*uint64(p)+999)/1000, uint64(0)
	for i, n := range h.bins {
		if seen += n; seen >= want && n > 0 {
			if i < 16 {
				return time.Duration(i)
			}
			return time.Duration(uint64(i%16+16) << (i/16 - 1))
		}
	}
	return 0
}

// o2ibConn is a connection: of legacy a CQ of its own.
type o2ibConn struct {
	id        int
	cq        kernel.CQ
	sched     *o2ibSched
	scheduled bool
	ready     bool
	ended     time.Duration // when the latest completion arrived whose handler has ended
	running   int
	sent      uint64
}

// o2ibSched is what a CPU partition has (kib_sched_info).
type o2ibSched struct {
	lock  kernel.Lock
	queue kernel.WaitQueue
	list  []*o2ibConn
	first int // CPU
	cpus  int
}

// connBits are those of an ID that name the connection; the others count its messages.
const connBits = 16

// Check says what is impossible.
func (o *O2IB) Check(h kernel.Host) error {
	if _, ok := pollContexts[o.Model]; !ok && o.Model != "legacy" {
		return fmt.Errorf("model %q: want one of %v", o.Model, O2IBModels)
	}
	if n := o.Peers * o.ConnsPerPeer; o.Peers < 1 || o.ConnsPerPeer < 1 || n >= 1<<connBits {
		return fmt.Errorf("%d peers with %d connections each: want 1 to %d in all", o.Peers, o.ConnsPerPeer, 1<<connBits-1)
	}
	if o.Credits < 1 || o.Credits > 4096 {
		return fmt.Errorf("%d credits: want 1 to 4096", o.Credits)
	}
	if o.Partitions < 1 || h.CPUs()%o.Partitions != 0 {
		return fmt.Errorf("%d CPU partitions of %d CPUs: want equally many CPUs in each", o.Partitions, h.CPUs())
	}
	if w := h.CPUs() / o.Partitions; (o.Model == "legacy" || o.Model == "direct") && (o.Threads < 1 || o.Threads > w) {
		return fmt.Errorf("%d threads in each CPU partition of %d CPUs: want 1 to %d", o.Threads, w, w)
	}
	if o.Model == "legacy" && (o.Merged || o.Moderate) {
		return fmt.Errorf("legacy has a CQ for each connection and no moderation: both belong to ib_core's models")
	}
	return nil
}

// Start sets the load up and sends the first messages, which complete their turnaround after that.
func (o *O2IB) Start(h kernel.Host) error {
	if err := o.Check(h); err != nil {
		return err
	}
	o.h = h
	o.Stats.ByConn = make([]uint64, o.Peers*o.ConnsPerPeer)
	for i := range o.Partitions {
		w := h.CPUs() / o.Partitions
		o.parts = append(o.parts, &o2ibSched{lock: h.NewLock(), queue: h.NewWaitQueue(), first: i * w, cpus: w})
	}
	for i := range o.Stats.ByConn {
		if err := o.connect(i); err != nil {
			return err
		}
	}
	if err := o.threads(); err != nil {
		return err
	}
	for _, c := range o.conns {
		for range o.Credits {
			o.send(c)
		}
	}
	return nil
}

// connect makes a connection: its partition is that of its peer, and its vector one of the partition's CPUs.
func (o *O2IB) connect(i int) error {
	peer, nth := i/o.ConnsPerPeer, i%o.ConnsPerPeer
	s := o.parts[peer%o.Partitions]
	if o.SameVector {
		nth = 0
	}
	c := &o2ibConn{id: i, sched: s}
	a := kernel.CQAttr{Vector: (s.first + (peer/o.Partitions+nth)%s.cpus) % o.h.Vectors(), Size: 2 * o.Credits,
		Poll: pollContexts[o.Model], Moderate: o.Moderate, Done: o.done}
	var err error
	switch {
	case o.Model == "legacy":
		c.cq, err = o.h.CreateCQ(a, func(k kernel.Context) { o.event(k, c) })
	case o.Merged:
		c.cq, err = o.h.PoolCQ(a, 2*o.Credits)
	default:
		c.cq, err = o.h.AllocCQ(a)
	}
	o.conns = append(o.conns, c)
	return err
}

// send has a message of the connection complete after its turnaround.
func (o *O2IB) send(c *o2ibConn) {
	c.sent++
	c.cq.Arrive(o.Turnaround(c.id), c.sent<<connBits|uint64(c.id))
}

func (o *O2IB) done(k kernel.Context, wc *kernel.WC) {
	o.handle(k, o.conns[wc.ID&(1<<connBits-1)], wc)
}

// handle is the handling of a completion, and the repost.
func (o *O2IB) handle(k kernel.Context, c *o2ibConn, wc *kernel.WC) {
	st := &o.Stats
	if st.First == 0 {
		st.First = k.Now()
	}
	arrived := wc.Arrived
	c.running++
	st.Most = max(st.Most, c.running)
	k.Work(o.Handle(c.id))
	c.running--
	now := k.Now()
	if c.ended > arrived {
		st.Inversions++
	}
	c.ended = max(c.ended, arrived)
	if now >= o.From {
		st.Handled++
		st.ByConn[c.id]++
		st.Latency.Add(now - arrived)
		st.Last = now
	}
	if now < o.Stop {
		o.send(c)
	}
}

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
			case "legacy":
				err = o.h.Start(fmt.Sprintf("kiblnd_sd_%02d_%02d", p, i), s.first, s.cpus, func(t kernel.Thread) { o.scheduler(t, s) })
			case "direct":
				err = o.h.Start(fmt.Sprintf("poll_%02d_%02d", p, i), s.first+i, 1, func(t kernel.Thread) { o.poller(t, s, i) })
			}
			if err != nil {
				return err
			}
		}
	}
	if o.Model == "legacy" {
		for _, c := range o.conns { // kiblnd_connect_peer arms a new CQ
			c := c
			if err := o.h.Start("arm", 0, 1, func(t kernel.Thread) { c.cq.ReqNotify(t, false) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// scheduler is the loop of a scheduler thread (kiblnd_scheduler).
func (o *O2IB) scheduler(t kernel.Thread, s *o2ibSched) {
	var wc [1]kernel.WC
	s.lock.Lock(t)
	for {
		s.lock.Unlock(t)
		t.Resched()
		s.lock.Lock(t)
		if len(s.list) == 0 {
			s.queue.Wait(t, s.lock)
			continue
		}
		c := s.list[0]
		s.list = s.list[:copy(s.list, s.list[1:])]
		c.ready = false
		s.lock.Unlock(t)
		n := c.cq.Poll(t, wc[:])
		if n == 0 {
			c.cq.ReqNotify(t, false)
			n = c.cq.Poll(t, wc[:])
		}
		s.lock.Lock(t)
		if n > 0 || c.ready {
			s.list = append(s.list, c)
			s.queue.WakeOne(t)
		} else {
			c.scheduled = false
		}
		if n > 0 {
			s.lock.Unlock(t)
			o.handle(t, c, &wc[0])
			s.lock.Lock(t)
		}
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
		if i%o.Threads == nth && !holds(own, c.cq) {
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

func holds(all []kernel.CQ, q kernel.CQ) bool {
	for _, x := range all {
		if x == q {
			return true
		}
	}
	return false
}
