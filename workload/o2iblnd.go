package workload

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// O2IBModels are the ways in which an o2iblnd could have its completions handled. Legacy is what it
// does: the event handler puts the connection on the list of its CPU partition, and scheduler
// threads take one completion at a time. The others are the poll contexts of ib_core; irq-inline is
// hypothetical, since ib_core has no such context.
var O2IBModels = []string{"legacy", "irq-inline", "direct", "softirq", "workqueue", "unbound"}

// O2IBDesigns are designs beside O2IBModels: legacy-16 takes up to 16 completions at a time and
// wakes no other thread before it handles them, as Lustre's efalnd does; in softirq-threads
// ib_core's softirq hands each completion to legacy's threads, as a patch for o2iblnd planned;
// fanout queues a work item on every CPU of the partition for each event, and each takes one
// completion at a time until there is none, as Lustre's kfilnd does.
var O2IBDesigns = []string{"legacy-16", "softirq-threads", "fanout"}

var pollContexts = map[string]kernel.PollContext{"irq-inline": kernel.Interrupt, "direct": kernel.Direct, "softirq": kernel.Softirq,
	"workqueue": kernel.Workqueue, "unbound": kernel.UnboundWorkqueue, "softirq-threads": kernel.Softirq}

// Of a model: whether it has scheduler threads, a CQ of ib_create_cq, and moderation.
func (o *O2IB) hasThreads() bool {
	return o.plain() && o.Model != "fanout" || o.Model == "softirq-threads"
}
func (o *O2IB) plain() bool {
	return o.Model == "legacy" || o.Model == "legacy-16" || o.Model == "fanout"
}

// O2IB is a load like that of Lustre's o2iblnd (lnet/klnds/o2iblnd): connections to peers, of which
// each has as many messages under way as it has credits. What a peer and the wire do takes
// Turnaround, and then the message's completion arrives.
type O2IB struct {
	Model        string
	Peers        int
	ConnsPerPeer int // conns_per_peer
	Credits      int // messages of a connection that are under way
	// Partitions are the CPU partitions (CPTs), of equally many CPUs; each has its list and its
	// threads.
	Partitions int
	// Threads are those of each partition, for legacy and direct: legacy's have the partition's
	// CPUs, and direct's one CPU each.
	Threads int
	// SameVector: all connections of a peer have one completion vector, as before Lustre 2.16.
	SameVector bool
	// Merged: the connections of a vector share a CQ, as those of ib_cq_pool_get.
	Merged bool
	// Moderate: DIM, for the models of ib_core.
	Moderate bool
	// Handle returns the CPU time of a completion, and Turnaround the time from the end of its
	// handler until the completion of the connection's next message arrives.
	Handle, Turnaround func(conn int) time.Duration
	// Receives says whose receive queue a message takes its buffer from: of its own "connection",
	// or an SRQ of the "vector" or the "device". The queue's lock is taken for PostReceive when the
	// buffer is posted again and, if it is an SRQ, also when the completion is polled. Empty:
	// Handle includes both.
	Receives    string
	PostReceive time.Duration
	// Stop ends the traffic; 0: each message is sent once.
	Stop time.Duration
	// From is when counting begins.
	From time.Duration

	Stats O2IBStats

	h     kernel.Host
	conns []*o2ibConn
	parts []*o2ibSched
	srqs  map[int]kernel.Lock // by vector; -1: of the device
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

// Percentile is the least duration, to a sixteenth of its power of two, that p of 1000 do not
// exceed; 0 if there is none.
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
	work      []kernel.Work // of fanout, one for each CPU of the partition
	scheduled bool
	ready     bool
	ended     time.Duration // when the latest completion arrived whose handler has ended
	running   int
	began     time.Duration // when the latest handler began
	receives  kernel.Lock   // of its receive queue
	srq       bool
	sent      uint64
}

// o2ibSched is what a CPU partition has (kib_sched_info).
type o2ibSched struct {
	lock  kernel.Lock
	queue kernel.WaitQueue
	list  []*o2ibConn
	wcs   []kernel.WC // of softirq-threads
	first int         // CPU
	cpus  int
}

// connBits are those of an ID that name the connection; the others count its messages.
const connBits = 16

// Check says what is impossible.
func (o *O2IB) Check(h kernel.Host) error {
	if _, ok := pollContexts[o.Model]; !ok && !o.plain() {
		return fmt.Errorf("model %q: want one of %v, %v", o.Model, O2IBModels, O2IBDesigns)
	}
	if n := o.Peers * o.ConnsPerPeer; o.Peers < 1 || o.ConnsPerPeer < 1 || n >= 1<<connBits {
		return fmt.Errorf("%d peers with %d connections each: want 1 to %d in all", o.Peers, o.ConnsPerPeer, 1<<connBits-1)
	}
	if o.Credits < 1 || o.Credits > 4096 {
		return fmt.Errorf("%d credits: want 1 to 4096", o.Credits)
	}
	if o.Partitions < 1 || h.CPUs()%o.Partitions != 0 {
		return fmt.Errorf("partitions=%d of %d CPUs: want equally many CPUs in each", o.Partitions, h.CPUs())
	}
	if w := h.CPUs() / o.Partitions; (o.hasThreads() || o.Model == "direct") && (o.Threads < 1 || o.Threads > w) {
		return fmt.Errorf("threads=%d in each CPU partition of %d CPUs: want 1 to %d", o.Threads, w, w)
	}
	if o.plain() && (o.Merged || o.Moderate) {
		return fmt.Errorf("%s has a CQ for each connection and no moderation: both belong to ib_core's models", o.Model)
	}
	return nil
}

// Start sets the load up and sends the first messages, which complete one turnaround later.
func (o *O2IB) Start(h kernel.Host) error {
	if err := o.Check(h); err != nil {
		return err
	}
	o.h = h
	o.Stats.ByConn = make([]uint64, o.Peers*o.ConnsPerPeer)
	for i := range o.Partitions {
		w := h.CPUs() / o.Partitions
		o.parts = append(o.parts, &o2ibSched{lock: h.NewLock(0), queue: h.NewWaitQueue(), first: i * w, cpus: w})
	}
	for i := range o.Stats.ByConn {
		if err := o.connect(i); err != nil {
			return err
		}
	}
	if err := o.threads(); err != nil {
		return err
	}
	if o.plain() { // its owner arms a CQ, before anything is sent
		return o.h.Start("connect", 0, 1, func(t kernel.Thread) {
			for _, c := range o.conns {
				c.cq.ReqNotify(t, false)
			}
			o.fill()
		})
	}
	o.fill()
	return nil
}

// fill sends as many messages as there are credits.
func (o *O2IB) fill() {
	for _, c := range o.conns {
		for range o.Credits {
			o.send(c)
		}
	}
}

// connect makes a connection: its partition is that of its peer, and its vector one of the
// partition's CPUs.
func (o *O2IB) connect(i int) error {
	peer, nth := i/o.ConnsPerPeer, i%o.ConnsPerPeer
	s := o.parts[peer%o.Partitions]
	if o.SameVector {
		nth = 0
	}
	c := &o2ibConn{id: i, sched: s}
	a := kernel.CQAttr{Vector: (s.first + (peer/o.Partitions+nth)%s.cpus) % o.h.Vectors(), Size: 2 * o.Credits,
		Poll: pollContexts[o.Model], Moderate: o.Moderate, Done: o.done}
	o.receiveQueue(c, a.Vector)
	var err error
	switch {
	case o.Model == "softirq-threads":
		a.Done = func(k kernel.Context, wc *kernel.WC) { o.handOver(k, s, wc) }
	case o.Model == "fanout":
		for i := range s.cpus {
			c.work = append(c.work, o.h.NewWork(s.first+i, func(t kernel.Thread) { o.drain(t, c) }))
		}
		c.cq, err = o.h.CreateCQ(a, func(k kernel.Context) {
			for _, w := range c.work {
				w.Queue(k)
			}
		})
		o.conns = append(o.conns, c)
		return err
	}
	switch {
	case o.plain():
		c.cq, err = o.h.CreateCQ(a, func(k kernel.Context) { o.event(k, c) })
	case o.Merged:
		c.cq, err = o.h.PoolCQ(a, 2*o.Credits)
	default:
		c.cq, err = o.h.AllocCQ(a)
	}
	o.conns = append(o.conns, c)
	return err
}

// receiveQueue gives a connection on a vector the lock of its receive queue.
func (o *O2IB) receiveQueue(c *o2ibConn, vector int) {
	if c.srq = o.Receives == "vector" || o.Receives == "device"; o.Receives == "connection" {
		c.receives = o.h.NewLock(linesOfReceives)
	} else if c.srq {
		if o.Receives == "device" {
			vector = -1
		}
		if o.srqs == nil {
			o.srqs = map[int]kernel.Lock{}
		}
		if o.srqs[vector] == nil {
			o.srqs[vector] = o.h.NewLock(linesOfReceives)
		}
		c.receives = o.srqs[vector]
	}
}

// linesOfReceives are the cache lines that a receive queue's lock guards and that a post or the
// return of an entry writes: the entry of the ring, and the record of the doorbell or of the work
// request (mlx5_ib_post_srq_recv, mlx5_ib_free_srq_wqe).
const linesOfReceives = 2

// receive takes the lock of the receive queue for an entry.
func (o *O2IB) receive(k kernel.Context, c *o2ibConn) {
	c.receives.Lock(k)
	k.Work(o.PostReceive)
	c.receives.Unlock(k)
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
	st.First = cmp.Or(st.First, k.Now())
	arrived := wc.Arrived
	c.running, c.began = c.running+1, k.Now()
	st.Most = max(st.Most, c.running)
	k.Begin("handler", wc.ID>>connBits)
	if c.srq {
		o.receive(k, c) // the SRQ's list takes the entry back
	}
	k.Work(o.Handle(c.id))
	if c.receives != nil {
		o.receive(k, c)
	}
	k.End()
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
