package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/completion"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/workload"
)

// completionPoint is one run.
type completionPoint struct {
	model                                   string
	cores, slower, nodes, partitions        int
	threads, vectors, peers, conns, credits int
	turnaround, handler, duration           time.Duration
	same, merged, dim, burst                bool
	idle                                    string
	wake, lines                             int // percent of the costs of wake-ups, and of cache lines and locks; 0: 100
	batch, budgetIRQ, budgetWQ, background  int
	seed                                    uint64

	warmup     time.Duration // 0: a quarter of duration
	affinity   []int
	unbound    []int  // cpumask of the unbound workqueue; nil: all cores
	receives   string // whose receive queue: connection, vector or device; empty: no locks of receive queues
	disk       func(*sim.Rand) time.Duration
	diskQueues int

	shares   string // of a row: who shares a CQ
	timeline bool
	handles  func(*sim.Rand) time.Duration // service time of a handler; nil: half of handler to one and a half of it
	delays   func(*sim.Rand) time.Duration // and of what comes between: the wire, the peer, a disk; nil: half of turnaround to one and a half of it
}

// completionResult is what a run gave. Counts are of the measured time, which ms is the length of;
// times are in microseconds.
type completionResult struct {
	ms, rate, p50, p99, first, last                             float64
	interrupts, switches, wakeups, polls, arms, softirqs, lines float64
	cpu, busiest, lockWait, fairness                            float64 // us a completion; percent of the busiest core; percent of all CPU time; Jain's index
	schedLocks, poolLocks                                       float64 // acquisitions: of the locks of scheduler threads, and of worker pools
	ksoftirqd                                                   float64 // softirqs that were handed to it
	schedWaits, schedLines                                      float64 // those of the former that waited, and for which the line moved
	inversions                                                  uint64
	most                                                        int      // handlers of a connection at once
	warnings                                                    []string // starvation and livelock
	spans                                                       *sim.Spans
	busy                                                        []float64
}

// completionBed is a machine with its load.
type completionBed struct {
	e *sim.Engine
	m *os.Machine
	a *completion.Adapter
	o *workload.O2IB
}

// burstAt is when a burst arrives: all threads sleep by then.
const burstAt = 100 * time.Microsecond

// build makes the machine and starts the load.
func (p completionPoint) build(x *Env) (*completionBed, error) {
	e := sim.New(sim.Options{Seed: p.seed, Lockstep: x.rec.lockstep, Interrupt: func() bool { return x.Ctx.Err() != nil }})
	if p.timeline {
		e.Spans = &sim.Spans{}
	}
	par := hostCosts(x.costs)
	par.Idle = os.Idle(slices.Index(os.IdleWords, p.idle))
	for _, c := range []*sim.Time{&par.Wake, &par.WakeIdle, &par.Switch, &par.Migrated, &par.MigratedNode} {
		*c = *c * sim.Time(p.wake) / 100
	}
	for _, c := range []*sim.Time{&par.Lock, &par.LockHandover, &par.LineTransfer, &par.LineTransferNode} {
		*c = *c * sim.Time(cmp.Or(p.lines, 100)) / 100
	}
	m, err := os.New(e, os.Config{Params: par, CPUs: p.cores, Nodes: p.nodes, Slower: p.slower})
	if err != nil {
		return nil, Usagef("%w", err)
	}
	vectors := cmp.Or(p.vectors, p.cores)
	a, err := completion.New(m, completion.Config{Params: adapterCosts(x.costs), Vectors: vectors, Affinity: p.affinity, Unbound: p.unbound, Batch: p.batch, BudgetIRQ: p.budgetIRQ, BudgetWorkqueue: p.budgetWQ})
	if err != nil {
		return nil, Usagef("%w", err)
	}
	b := &completionBed{e, m, a, p.load(e)}
	if err := b.o.Start(a); err != nil {
		return nil, Usagef("%w", err)
	}
	return b, p.hog(m)
}

// hog starts threads of programs that use their cores all the time.
func (p completionPoint) hog(m *os.Machine) error {
	if p.background > p.cores {
		return Usagef("%d programs in the background of %d cores: want one for each core at most", p.background, p.cores)
	}
	for i := range p.background {
		set, err := m.CPUSet(i, 1)
		if err != nil {
			return Usagef("%w", err)
		}
		t := m.NewThread(fmt.Sprintf("program %d", i), set, i, func(t *os.Thread) {
			for {
				t.Run(sim.Millisecond)
			}
		})
		t.User = true
		t.SetDaemon()
		t.Start()
	}
	return nil
}

// load is the traffic. Handlers take from half of their time to one and a half of it, and
// turnarounds too; those of a burst all the same.
func (p completionPoint) load(e *sim.Engine) *workload.O2IB {
	r := e.Rand("completions")
	vary := func(d time.Duration) time.Duration { return d/2 + time.Duration(r.Intn(int(d)+1)) }
	o := &workload.O2IB{Model: p.model, Peers: p.peers, ConnsPerPeer: p.conns, Credits: p.credits, Partitions: p.partitions, Threads: p.threads,
		SameVector: p.same, Merged: p.merged, Moderate: p.dim}
	if p.burst {
		o.Handle = func(int) time.Duration { return p.handler }
		o.Turnaround = func(int) time.Duration { return burstAt - time.Duration(e.Now()/sim.Nanosecond) }
		return o
	}
	o.From = cmp.Or(p.warmup, p.duration/4)
	o.Stop = o.From + p.duration
	o.Receives, o.PostReceive = p.receives, postReceive
	o.Handle = func(int) time.Duration { return vary(p.handler) }
	o.Turnaround = func(int) time.Duration { return vary(p.turnaround) }
	if p.handles != nil {
		o.Handle = func(int) time.Duration { return p.handles(r) }
	}
	if p.delays != nil {
		o.Turnaround = func(int) time.Duration { return p.delays(r) }
	}
	if p.disk != nil {
		d, wire := &disk{make([]time.Duration, p.diskQueues), p.disk}, o.Turnaround
		o.Turnaround = func(c int) time.Duration { return d.delay(time.Duration(e.Now()/sim.Nanosecond), r) + wire(c) }
	}
	return o
}

// measure runs the point.
func (p completionPoint) measure(x *Env) (r completionResult, err error) {
	b, err := p.build(x)
	if err != nil {
		return r, err
	}
	defer b.e.Close()
	from, to := b.o.From, b.o.Stop
	if p.burst {
		from, to = burstAt-10*time.Microsecond, burstAt+time.Duration(p.credits+10)*(p.handler+20*time.Microsecond)*time.Duration(p.slower)/100
	}
	if err := b.run(from); err != nil {
		return r, err
	}
	m, a, l, busy, ran := b.m.Counts, b.a.Counts, b.o.Locks(), b.busy(), b.e.Now()
	in := b.inInterrupts()
	if err := b.run(to); err != nil {
		return r, err
	}
	if p.burst && b.o.Stats.Handled != uint64(p.credits) {
		return r, fmt.Errorf("%s: of a burst of %d completions %d were handled", p.model, p.credits, b.o.Stats.Handled)
	}
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	st, after := &b.o.Stats, b.busy()
	r.ms = float64(b.e.Now()-ran) / float64(sim.Millisecond)
	r.rate = float64(st.Handled) / r.ms
	r.p50, r.p99 = us(st.Latency.Percentile(500)), us(st.Latency.Percentile(990))
	r.first, r.last = us(st.First-burstAt), us(st.Last-burstAt)
	r.interrupts, r.switches = float64(b.m.Counts.Interrupts-m.Interrupts), float64(b.m.Switches-m.Switches)
	r.wakeups, r.softirqs = float64(b.m.Wakeups-m.Wakeups), float64(b.m.Softirqs-m.Softirqs)
	r.polls, r.arms = float64(b.a.Polls-a.Polls), float64(b.a.Arms-a.Arms)
	r.lines = float64(b.m.LineMoves - m.LineMoves)
	r.inversions, r.most = st.Inversions, st.Most
	locks := b.o.Locks()
	r.schedLocks, r.schedWaits, r.schedLines = float64(locks.Acquired-l.Acquired), float64(locks.Waited-l.Waited), float64(locks.Lines-l.Lines)
	r.ksoftirqd = float64(b.m.Ksoftirqd - m.Ksoftirqd)
	r.poolLocks = float64(b.m.LocksOfPools - m.LocksOfPools)
	all := 0.0
	for i := range after {
		d := after[i] - busy[i]
		all += d
		r.busy = append(r.busy, d/r.ms/10)
		r.busiest = max(r.busiest, d/r.ms/10)
	}
	if st.Handled > 0 {
		r.cpu = all / float64(st.Handled)
	}
	if all > 0 {
		r.lockWait = float64(b.m.LockWait-m.LockWait) / float64(sim.Microsecond) / all * 100
	}
	r.fairness = jain(st.ByConn)
	r.warnings = p.warnings(b, from, in)
	if r.spans = b.e.Spans; r.spans != nil {
		b.m.EndTimeline()
	}
	return r, nil
}

// run runs to a time. A run that the user has ended is one that is interrupted.
func (b *completionBed) run(to time.Duration) error {
	err := b.e.Run(sim.Time(to) * sim.Nanosecond)
	if errors.Is(err, sim.ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

// busy is the CPU time of each core in microseconds.
func (b *completionBed) busy() []float64 {
	all := make([]float64, b.m.CPUs())
	for i := range all {
		all[i] = float64(b.m.CPU(i).BusyNow()) / float64(sim.Microsecond)
	}
	return all
}

// jain is the index of fairness of R. Jain, D. Chiu and W. Hawe (DEC-TR-301, 1984): 1 when all have
// the same, 1/n when one of n has all.
func jain[N uint64 | float64](all []N) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range all {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / squares / float64(len(all))
}

// setLimit says in a row what the rate was limited by: the cores, if one works for nine tenths of
// the time or more, or locks, if most of the CPU time goes to waiting for them; else the
// completions that are under way, which arrive a turnaround after those before them.
func (r *completionResult) setLimit(row *table.Row) {
	limit, core := sim.Window, 0
	for i, v := range r.busy {
		if v > r.busy[core] {
			core = i
		}
	}
	if r.busiest >= sim.Busy/10 {
		if limit = sim.CPU; r.lockWait > 50 {
			limit = sim.Lock
		}
	}
	row.Set(LimitedBy, limit.String()).Set(limitUnit, fmt.Sprintf("core %d", core)).Set(limitPercent, r.busiest)
}
