package experiment

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
	wake                                    int
	seed                                    uint64
}

// completionResult is what a run gave. Counts are of the measured time, which ms is the length of; times are in microseconds.
type completionResult struct {
	ms, rate, p50, p99, first, last                             float64
	interrupts, switches, wakeups, polls, arms, softirqs, lines float64
	cpu, busiest, lockWait, fairness                            float64 // us a completion; percent of the busiest core; percent of all CPU time; Jain's index
	inversions                                                  uint64
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
	par := hostCosts(x.costs)
	par.Idle = os.Idle(slices.Index(os.IdleWords, p.idle))
	for _, c := range []*sim.Time{&par.Wake, &par.WakeIdle, &par.Switch, &par.Migrated, &par.MigratedNode} {
		*c = *c * sim.Time(p.wake) / 100
	}
	m, err := os.New(e, os.Config{Params: par, CPUs: p.cores, Nodes: p.nodes, Slower: p.slower})
	if err != nil {
		return nil, usage("%w", err)
	}
	vectors := p.vectors
	if vectors == 0 {
		vectors = p.cores
	}
	a, err := completion.New(m, completion.Config{Params: adapterCosts(x.costs), Vectors: vectors})
	if err != nil {
		return nil, usage("%w", err)
	}
	b := &completionBed{e, m, a, p.load(e)}
	if err := b.o.Start(a); err != nil {
		return nil, usage("%w", err)
	}
	return b, nil
}

// load is the traffic. Handlers take from half of their time to one and a half of it, and turnarounds too; those of a burst all the same.
func (p completionPoint) load(e *sim.Engine) *workload.O2IB {
	r := e.Rand("completions")
	vary := func(d time.Duration) time.Duration { return d/2 + time.Duration(r.Intn(int(d)+1)) }
	o := &workload.O2IB{Model: p.model, Peers: p.peers, ConnsPerPeer: p.conns, Credits: p.credits, Partitions: p.partitions, Threads: p.threads,
		SameVector: p.same, Merged: p.merged, Moderate: p.dim}
	if p.burst {
		o.Handle = func(int) time.Duration { return p.handler }
		o.Turnaround = func(int) time.Duration { return burstAt }
		return o
	}
	o.From, o.Stop = p.duration/4, p.duration*5/4
	o.Handle = func(int) time.Duration { return vary(p.handler) }
	o.Turnaround = func(int) time.Duration { return vary(p.turnaround) }
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
	m, a, busy, ran := b.m.Counts, b.a.Counts, b.busy(), b.e.Now()
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
	r.inversions = st.Inversions
	all := 0.0
	for i := range after {
		d := after[i] - busy[i]
		all += d
		r.busiest = max(r.busiest, d/r.ms/10)
	}
	if st.Handled > 0 {
		r.cpu = all / float64(st.Handled)
	}
	if all > 0 {
		r.lockWait = float64(b.m.LockWait-m.LockWait) / float64(sim.Microsecond) / all * 100
	}
	r.fairness = jain(st.ByConn)
	return r, p.starved(st)
}

// starved names a connection that had nothing done in a measured time that is long beside its turnaround.
func (p completionPoint) starved(st *workload.O2IBStats) error {
	if p.burst || p.duration < 10*(p.turnaround+time.Duration(p.peers*p.conns*p.credits)*p.handler*time.Duration(p.slower)/100) {
		return nil
	}
	for i, n := range st.ByConn {
		if n == 0 {
			return fmt.Errorf("%s: starvation: no completion of connection %d was handled in %v, while others had %d", p.model, i, p.duration, st.Handled)
		}
	}
	return nil
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
		for _, d := range b.m.CPU(i).Busy {
			all[i] += float64(d) / float64(sim.Microsecond)
		}
	}
	return all
}

// jain is Jain's index of fairness: 1 when all have the same, 1/n when one has all.
func jain(all []uint64) float64 {
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
