package experiment

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// CompletionLoad is a driver in the kernel, in place of traffic through verbs: messages on
// connections. A model handles the completion of each message; the connection's next message
// completes one turnaround later.
type CompletionLoad struct {
	Model        string   `yaml:"model" oneof:"legacy,irq-inline,direct,softirq,workqueue,unbound,legacy-16,softirq-threads,fanout" required:"true" help:"how completions are handled: by threads of the driver (legacy, legacy-16, softirq-threads), in a poll context of ib_core (direct, softirq, workqueue, unbound), in the interrupt (irq-inline, which ib_core does not have), or by a work item on each core (fanout)"`
	Slower       int      `yaml:"slower_percent" min:"10" max:"1000" help:"time that a core takes for instructions, in percent (default 100)"`
	Nodes        int      `yaml:"nodes" min:"1" max:"8" help:"NUMA nodes (default 1)"`
	Idle         string   `yaml:"idle" oneof:"poll,c1,c6" help:"what idle cores do (default c1)"`
	Vectors      int      `yaml:"vectors" min:"1" max:"1024" help:"completion vectors (default: one for each core)"`
	Affinity     []int    `yaml:"affinity" help:"core that each vector interrupts (default: vector i core i)"`
	Peers        int      `yaml:"peers" min:"1" max:"1024" help:"peers (default 16)"`
	ConnsPerPeer int      `yaml:"conns_per_peer" min:"1" max:"16" help:"connections to each peer (default 1)"`
	Credits      int      `yaml:"credits" min:"1" max:"4096" help:"messages of a connection that are in flight (default 8)"`
	Partitions   int      `yaml:"partitions" min:"1" max:"64" help:"CPU partitions (default 1)"`
	Threads      int      `yaml:"threads" min:"1" max:"256" help:"threads of each partition, for models with threads (default 4)"`
	SameVector   bool     `yaml:"same_vector" help:"all connections of a peer have one vector"`
	Pool         bool     `yaml:"pool" help:"connections of a vector share a CQ of the kernel's pool (ib_cq_pool_get)"`
	DIM          bool     `yaml:"dim" help:"adaptive moderation of interrupts"`
	Batch        int      `yaml:"batch" min:"1" max:"4096" help:"completions that ib_core takes in a poll (default 16)"`
	BudgetIRQ    int      `yaml:"budget_softirq" min:"1" max:"65536" help:"completions of a CQ before the next one has its turn in a softirq (default 256)"`
	BudgetWQ     int      `yaml:"budget_workqueue" min:"1" max:"65536" help:"completions of a CQ before the next one has its turn in a worker (default 65536)"`
	Unbound      []int    `yaml:"unbound_cpus" help:"cpumask of the unbound workqueue: the cores that its workers run on (default: all)"`
	Background   int      `yaml:"background" min:"0" max:"1024" help:"programs that use their cores all the time, on the first cores (default 0)"`
	Receives     string   `yaml:"receives" oneof:"connection,vector,device" help:"whose receive queue a message takes its buffer from: the connection's own, or an SRQ of the vector or of the device, whose lock is taken for each buffer (default connection)"`
	Handler      *Service `yaml:"handler" help:"CPU time of a completion, such as {mean: 2.5us, distribution: exponential} (default a mean of 2.5us)"`
	Turnaround   *Service `yaml:"turnaround" help:"from the end of a handler to the next completion: the wire and the peer (default a mean of 20us)"`
	Disk         *Service `yaml:"disk" help:"service time of a disk, to which each message goes after its handler (default none)"`
	DiskQueues   int      `yaml:"disk_queues" min:"1" max:"4096" help:"messages that the disk serves at once (default 1)"`
	Warmup       int64    `yaml:"warmup" unit:"time" max:"10s" help:"time before counting begins (default 1ms)"`
	Duration     int64    `yaml:"duration" unit:"time" max:"10s" help:"time that is counted (default 4ms)"`
}

// defaults fills in what is left out.
func (c *CompletionLoad) defaults() {
	for _, d := range []struct {
		v *int
		d int
	}{{&c.Slower, 100}, {&c.Nodes, 1}, {&c.Peers, 16}, {&c.ConnsPerPeer, 1}, {&c.Credits, 8}, {&c.Partitions, 1}, {&c.Threads, 4}, {&c.DiskQueues, 1}} {
		*d.v = cmp.Or(*d.v, d.d)
	}
	c.Idle, c.Receives = cmp.Or(c.Idle, "c1"), cmp.Or(c.Receives, "connection")
	if c.Handler == nil || c.Handler.Mean == 0 {
		c.Handler = c.Handler.or(2_500_000)
	}
	if c.Turnaround == nil {
		c.Turnaround = c.Turnaround.or(20_000_000)
	}
	c.Warmup, c.Duration = cmp.Or(c.Warmup, 1_000_000_000), cmp.Or(c.Duration, 4_000_000_000)
}

// or is the time with a mean, in picoseconds, if it has none.
func (s *Service) or(mean int64) *Service {
	if s == nil {
		return &Service{Mean: mean}
	}
	t := *s
	t.Mean = mean
	return &t
}

// checkCompletions reports what decoding alone cannot see.
func (s *Scenario) checkCompletions() error {
	c := s.Completions
	for _, x := range []struct {
		at   string
		what *Service
	}{{"handler", c.Handler}, {"turnaround", c.Turnaround}, {"disk", c.Disk}} {
		if err := x.what.check(); err != nil {
			return s.doc.Errorf("completions."+x.at, "%s: %v", x.at, err)
		}
	}
	if h := c.Handler.worst(); 10*h > time.Duration(c.Duration/1000) {
		return s.doc.Errorf("completions.handler", "a handler of %v hardly ends in a counted time of %v: give a duration of ten handlers at least, or a shorter handler", h, time.Duration(c.Duration/1000))
	}
	if len(c.Affinity) > 0 {
		if n := cmp.Or(c.Vectors, s.Cores); len(c.Affinity) != n {
			return s.doc.Errorf("completions.affinity", "an affinity of %d vectors, and there are %d: give each a core", len(c.Affinity), n)
		}
		for i, cpu := range c.Affinity {
			if cpu < 0 || cpu >= s.Cores {
				return s.doc.Errorf("completions.affinity", "vector %d on core %d: the host has cores 0 to %d", i, cpu, s.Cores-1)
			}
		}
	}
	if err := s.checkMask(); err != nil {
		return err
	}
	b, err := s.completionPoint(1).build(&Env{rec: &recorder{}})
	if err != nil {
		return s.doc.Errorf("completions", "%v", err)
	}
	b.e.Close()
	return nil
}

// checkMask looks at the cpumask of the unbound workqueue.
func (s *Scenario) checkMask() error {
	c := s.Completions
	if len(c.Unbound) > 0 && c.Model != "unbound" {
		return s.doc.Errorf("completions.unbound_cpus", "only the unbound workqueue has a cpumask, and the model is %s: give model unbound, or leave it out", c.Model)
	}
	for i, cpu := range c.Unbound {
		if cpu < 0 || cpu >= s.Cores {
			return s.doc.Errorf("completions.unbound_cpus", "core %d in the cpumask: the host has cores 0 to %d", cpu, s.Cores-1)
		}
		if slices.Contains(c.Unbound[:i], cpu) {
			return s.doc.Errorf("completions.unbound_cpus", "core %d is twice in the cpumask: name each once", cpu)
		}
	}
	return nil
}

// onlyCompletions refuses what belongs to traffic.
func (s *Scenario) onlyCompletions() error {
	for _, k := range []struct {
		given bool
		key   string
	}{{len(s.Traffic) > 0, "traffic"}, {len(s.Faults) > 0, "faults"}, {len(s.Set) > 0, "set"}, {s.Link != "", "link"}, {s.Hosts != 0, "hosts"}} {
		if k.given {
			return s.doc.Errorf(k.key, "completions have no wire and no device behind them, and so no %s: leave it out, or completions", k.key)
		}
	}
	return nil
}

// completionPoint is the run of a scenario's completions.
func (s *Scenario) completionPoint(seed uint64) completionPoint {
	c := s.Completions
	p := completionPoint{model: c.Model, cores: s.Cores, slower: c.Slower, nodes: c.Nodes, partitions: c.Partitions, threads: c.Threads, vectors: c.Vectors, peers: c.Peers,
		conns: c.ConnsPerPeer, credits: c.Credits, same: c.SameVector, merged: c.Pool, dim: c.DIM, idle: c.Idle, wake: 100, batch: c.Batch, budgetIRQ: c.BudgetIRQ,
		budgetWQ: c.BudgetWQ, background: c.Background, affinity: c.Affinity, unbound: c.Unbound, receives: c.Receives, seed: seed,
		handler: c.Handler.mean(), turnaround: c.Turnaround.mean(), duration: time.Duration(c.Duration / 1000), warmup: time.Duration(c.Warmup / 1000)}
	p.handles, p.delays = c.Handler.draw(), c.Turnaround.draw()
	if c.Disk != nil {
		p.disk, p.diskQueues = c.Disk.draw(), c.DiskQueues
	}
	return p
}

// runCompletions runs them and emits the row.
func (s *Scenario) runCompletions(env *Env) error {
	if env.rec.capture != nil || env.rec.faults != nil {
		return Usagef("completions have no wire: their completions arrive by schedule: leave out --pcap and --fault")
	}
	p := s.completionPoint(env.Seed)
	p.timeline = env.rec.timeline != nil
	r, err := p.measure(env)
	if err != nil {
		return err
	}
	if r.spans != nil {
		env.rec.write(r.spans)
	}
	for _, w := range r.warnings {
		env.Note("%s: %s.", p.model, w)
	}
	env.Emit(p.row("completions", r))
	env.Note("The completions of a scenario arrive by schedule, with no device or wire behind them. Costs are those that rdmasim run completions prints, most of them assumed.")
	return nil
}

// disk is a disk that serves some messages at once, first come first served.
type disk struct {
	free    []time.Duration // when each of its queues is
	service func(*sim.Rand) time.Duration
}

// delay is how long a message takes that comes now.
func (d *disk) delay(now time.Duration, r *sim.Rand) time.Duration {
	i := slices.Index(d.free, slices.Min(d.free))
	d.free[i] = max(d.free[i], now) + d.service(r)
	return d.free[i] - now
}

// completionColumns are the columns of the table for people.
var completionColumns = []string{"row", "model", "cores", "peers", "conns_per_peer", "rate_kps", "latency_us_p50", "latency_us_p99", "interrupts_kps", "context_switches_kps",
	"cpu_us_per_wc", "busiest_percent", "lock_wait_percent", "fairness"}
