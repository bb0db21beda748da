package completion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// Config is an adapter in a machine.
type Config struct {
	Params Params
	// Vectors is how many completion vectors the adapter has, up to one for each CPU and
	// mostVectors. Vector i interrupts CPU Affinity[i]; without Affinity CPU i.
	Vectors  int
	Affinity []int
	// ReportsMissed: ib_req_notify_cq says when completions wait, and the device does not fire for
	// them, as some providers do it. Without it the device fires at once, as mlx5 does.
	ReportsMissed bool
	// Unbound is the cpumask of the unbound workqueue: the CPUs that its workers may run on; nil:
	// all.
	Unbound []int
	// Batch, BudgetIRQ and BudgetWorkqueue are what ib_core takes in a poll, and what it handles
	// before others have their turn: in softirq, and in a workqueue. 0: its own 16, 256 and 65536.
	Batch, BudgetIRQ, BudgetWorkqueue int
}

// numbers are those of cfg, with ib_core's for what it leaves out.
func (cfg *Config) numbers() error {
	for _, n := range []struct {
		v    *int
		def  int
		name string
	}{{&cfg.Batch, batch, "a batch"}, {&cfg.BudgetIRQ, budgetIRQ, "a budget of the softirq"}, {&cfg.BudgetWorkqueue, budgetWorkqueue, "a budget of the workqueue"}} {
		*n.v = cmp.Or(*n.v, n.def)
		if *n.v < 1 || *n.v > budgetWorkqueue {
			return fmt.Errorf("completion: %s of %d: want 1 to %d, or 0 for ib_core's %d", n.name, *n.v, budgetWorkqueue, n.def)
		}
	}
	return nil
}

// mostVectors is what an mlx5 has of MSI-X vectors for completions at most
// (num_total_dynamic_vf_msix is above it on no device that we know).
const mostVectors = 1024

// Counts are those of an adapter and its driver.
type Counts struct {
	MSIs, EQEs, Arms, Polls, EmptyPolls, MMIO uint64
	Completions                               uint64 // that were taken by polls
	Missed                                    uint64 // re-arms that found completions
	ModifyCQs                                 uint64 // commands of DIM
}

// Adapter is an adapter as the kernel sees it. It implements kernel.Host.
type Adapter struct {
	Counts
	m       *os.Machine
	par     Params
	vectors []*vector
	unbound *os.Pool
	missed  bool
	broken  rule.Broken

	batch, budgetIRQ, budgetWQ int

	pool []*CQ // shared CQs
	cqs  int
	line int32 // of the timeline
}

// vector is a completion vector with its event queue.
type vector struct {
	a       *Adapter
	cpu     *os.CPU
	events  []*CQ
	armed   bool
	handler func(*os.Context)
}

// New puts an adapter into a machine.
func New(m *os.Machine, cfg Config) (*Adapter, error) {
	if err := cfg.Params.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.numbers(); err != nil {
		return nil, err
	}
	most := min(m.CPUs(), mostVectors)
	if cfg.Vectors < 1 || cfg.Vectors > most {
		return nil, fmt.Errorf("completion: %d completion vectors: the device has 1 to %d, one for each CPU", cfg.Vectors, most)
	}
	if cfg.Affinity != nil && len(cfg.Affinity) != cfg.Vectors {
		return nil, fmt.Errorf("completion: an affinity of %d vectors, and there are %d: give each a CPU", len(cfg.Affinity), cfg.Vectors)
	}
	a := &Adapter{m: m, par: cfg.Params, batch: cfg.Batch, budgetIRQ: cfg.BudgetIRQ, budgetWQ: cfg.BudgetWorkqueue, missed: cfg.ReportsMissed, broken: m.Broken()}
	for i := range cfg.Vectors {
		cpu := i
		if cfg.Affinity != nil {
			if cpu = cfg.Affinity[i]; cpu < 0 || cpu >= m.CPUs() {
				return nil, fmt.Errorf("completion: the affinity of vector %d is CPU %d: the machine has CPUs 0 to %d", i, cpu, m.CPUs()-1)
			}
		}
		v := &vector{a: a, cpu: m.CPU(cpu), armed: true}
		v.handler = v.interrupt
		a.vectors = append(a.vectors, v)
	}
	allowed, err := mask(m, cfg.Unbound)
	if err != nil {
		return nil, err
	}
	if s := m.Engine().Spans; s != nil {
		a.line = s.Track("adapter/completions")
	}
	a.unbound = m.UnboundPool(allowed)
	m.OnSoftirq(os.IRQPoll, a.irqPoll)
	return a, nil
}

// mask is the set of the CPUs that a cpumask of the unbound workqueue names.
func mask(m *os.Machine, cpus []int) (allowed os.Set, err error) {
	for i, cpu := range cpus {
		one, err := m.CPUSet(cpu, 1)
		if err != nil {
			return nil, fmt.Errorf("completion: CPU %d in the cpumask of the unbound workqueue: the machine has CPUs 0 to %d", cpu, m.CPUs()-1)
		}
		if slices.Contains(cpus[:i], cpu) {
			return nil, fmt.Errorf("completion: CPU %d is twice in the cpumask of the unbound workqueue", cpu)
		}
		if allowed == nil {
			allowed = one
		}
		allowed[cpu] = true
	}
	return allowed, nil
}

// event puts an event into the queue, and sends an interrupt if the queue is armed.
func (v *vector) event(q *CQ) {
	v.a.EQEs++
	v.events = append(v.events, q)
	v.fire()
}

func (v *vector) fire() {
	if v.armed && len(v.events) > 0 {
		v.armed = false
		v.a.MSIs++
		v.a.mark("interrupt", uint64(v.cpu.ID()))
		v.cpu.Interrupt(v.handler)
	}
}

// interrupt is mlx5_eq_comp_int, in hard interrupt.
func (v *vector) interrupt(c *os.Context) {
	p := &v.a.par
	c.Begin("event queue", 0)
	c.Run(p.EQHandler)
	n := 0
	for ; len(v.events) > 0 && (n < budgetEQ || v.a.broken.Has(rule.EQHasABudget)); n++ {
		q := v.events[0]
		v.events = v.events[:copy(v.events, v.events[1:])]
		c.Run(p.EQE)
		q.Event(c)
	}
	c.Sync()
	c.End()
	v.a.MMIO++
	if !v.a.broken.Has(rule.EQIsArmedAgain) {
		v.armed = true
	}
	v.fire()
	c.RaiseSoftirq(os.Tasklet) // also when all events were of CQs of the kernel
}

// mark adds an instant to the timeline.
func (a *Adapter) mark(name string, id uint64) {
	if e := a.m.Engine(); e.Spans != nil {
		e.Spans.Span(a.line, name, e.Now(), e.Now(), id)
	}
}

func ps(d time.Duration) sim.Time  { return sim.Time(d) * sim.Nanosecond }
func dur(t sim.Time) time.Duration { return time.Duration(t / sim.Nanosecond) }

var _ kernel.Host = (*Adapter)(nil)
