package os

import (
	"cmp"
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// mostCPUs bounds a machine.
const mostCPUs = 1024

// Config is a machine.
type Config struct {
	Params Params
	CPUs   int
	Nodes  int // NUMA nodes, of equally many CPUs that follow each other; each is one last-level cache. 0: one
	// Slower stretches what every instruction costs: 400 is a CPU that takes four times as long. 0:
	// 100. Interrupt delivery, line transfers and exits from idle states are not instructions.
	Slower int
}

// Counts is what a machine has done, in all its CPUs.
type Counts struct {
	Interrupts   uint64 // hard interrupts of devices
	Softirqs     uint64 // handlers of softirqs that ran, one for each kind and round
	Ksoftirqd    uint64 // softirqs that were handed over to ksoftirqd
	Wakeups      uint64 // threads that were woken from sleep
	Switches     uint64 // context switches to a thread
	IPIs         uint64 // interprocessor interrupts for wake-ups
	LockWaits    uint64 // acquisitions of spinlocks that had to wait
	LockWait     sim.Time
	LineMoves    uint64 // cache lines of locks that came from another CPU
	WorkersMade  uint64
	WorkerWakes  uint64
	LocksOfPools uint64 // acquisitions of the locks of worker pools
}

// Machine is the operating system of one host.
type Machine struct {
	Counts
	eng     *sim.Engine
	par     Params
	cpus    []*CPU
	perNode int
	slower  sim.Time
	broken  rule.Broken
	handler [softirqs]func(*Context)
	bound   []*Pool // of CPUs, made when asked for
}

// New makes a machine whose CPUs are idle.
func New(eng *sim.Engine, cfg Config) (*Machine, error) {
	if err := cfg.Params.Validate(); err != nil {
		return nil, err
	}
	if cfg.CPUs < 1 || cfg.CPUs > mostCPUs {
		return nil, fmt.Errorf("os: a machine of %d CPUs: want 1 to %d", cfg.CPUs, mostCPUs)
	}
	cfg.Nodes = cmp.Or(cfg.Nodes, 1)
	if cfg.Nodes < 1 || cfg.CPUs%cfg.Nodes != 0 {
		return nil, fmt.Errorf("os: %d CPUs on %d NUMA nodes: want equally many on each", cfg.CPUs, cfg.Nodes)
	}
	cfg.Slower = cmp.Or(cfg.Slower, 100)
	if cfg.Slower < 10 || cfg.Slower > 10_000 {
		return nil, fmt.Errorf("os: CPUs that take %d %% of the time: want 10 to 10000", cfg.Slower)
	}
	m := &Machine{eng: eng, par: cfg.Params, perNode: cfg.CPUs / cfg.Nodes, slower: sim.Time(cfg.Slower), broken: eng.Broken()}
	for i := range cfg.CPUs {
		m.cpus = append(m.cpus, newCPU(m, i))
	}
	m.bound = make([]*Pool, cfg.CPUs)
	m.handler[Tasklet] = func(c *Context) { c.Spend(m.par.Tasklet) }
	return m, nil
}

// CPUs is how many there are.
func (m *Machine) CPUs() int { return len(m.cpus) }

// Params are the costs.
func (m *Machine) Params() *Params { return &m.par }

// Engine is the engine that runs the machine.
func (m *Machine) Engine() *sim.Engine { return m.eng }

// CPU is the CPU of a number, which exists.
func (m *Machine) CPU(i int) *CPU { return m.cpus[i] }

// Node is the NUMA node of a CPU.
func (m *Machine) Node(cpu int) int { return cpu / m.perNode }

// Broken are the rules that the machine breaks.
func (m *Machine) Broken() rule.Broken { return m.broken }

// OnSoftirq has f called when a softirq of that kind is due on a CPU.
func (m *Machine) OnSoftirq(s Softirq, f func(*Context)) { m.handler[s] = f }

// line is how long a cache line takes from one CPU to another.
func (m *Machine) line(from, to int) sim.Time {
	switch {
	case from == to:
		return 0
	case m.Node(from) == m.Node(to):
		return m.par.LineTransfer
	}
	return m.par.LineTransferNode
}

// Set is a set of CPUs.
type Set []bool

// CPUSet is the set of n CPUs from the first on. What lies beyond the machine is refused.
func (m *Machine) CPUSet(first, n int) (Set, error) {
	if first < 0 || n < 1 || first+n > len(m.cpus) {
		return nil, fmt.Errorf("os: an affinity for CPUs %d to %d: the machine has CPUs 0 to %d", first, first+n-1, len(m.cpus)-1)
	}
	s := make(Set, len(m.cpus))
	for i := range n {
		s[first+i] = true
	}
	return s, nil
}

// has says whether a CPU is in the set; a nil set has all.
func (s Set) has(cpu int) bool { return s == nil || s[cpu] }
