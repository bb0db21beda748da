package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// Scenario is a traffic scenario as its file describes it.
type Scenario struct {
	Name    string            `yaml:"name" required:"true" help:"name of the scenario in reports"`
	Title   string            `yaml:"title" help:"what it shows, in one line"`
	Source  string            `yaml:"source" help:"the publication that it follows"`
	Profile string            `yaml:"profile" help:"device and host profile: a name from rdmasim list profiles, or the path of a file (default connectx-5)"`
	Set     map[string]string `yaml:"set" help:"values of the profile to change, such as uar.bf_conflict: none"`
	Hosts   int               `yaml:"hosts" min:"1" max:"1024" help:"number of machines, with one device each (default 2, or as many as the clients of loads need)"`
	Cores   int               `yaml:"cores" min:"1" max:"1024" help:"cores of each host (default 16)"`
	Link    string            `yaml:"link" oneof:"cable,switch,loopback" help:"how the ports are joined (default cable, or switch if loads of several clients need it)"`
	Faults  []fault.FileRule  `yaml:"faults" help:"faults on the wire, as in a file for --fault, which replaces them if it is given"`
	Traffic []Traffic         `yaml:"traffic" help:"loads that run at the same time"`
	// Completions stands in place of Traffic.
	Completions *CompletionLoad `yaml:"completions" help:"instead of traffic: a driver in the kernel whose completions are handled by one of its models"`
	Sweep       *Sweep          `yaml:"sweep" help:"grid of settings to run the scenario over; the flags of rdmasim run take precedence"`

	file string
	text string // of the file
	doc  *input.Doc
	// base is the stored profile, read once for the scenario and what is derived from it.
	base *stored
	// every is how often a run is sampled; 0: it is not.
	every time.Duration
	// clock tells from time to time how far a run is; it may be nil.
	clock *clock
	// given is the scenario without defaults, which follow from it again when a value changes.
	given *Scenario
}

// Sweep is the grid of settings over which a scenario runs.
type Sweep struct {
	Over   []string `yaml:"over" help:"keys and their values as --sweep takes them, such as traffic.0.contexts=1,2,4 or traffic.0.payload=64B..4KiB*4; the last key changes fastest"`
	Seeds  int      `yaml:"seeds" min:"1" max:"1000000" help:"number of seeds for each point, from the seed of the run up (default 1)"`
	Sample string   `yaml:"sample" help:"number of points to sample instead of the whole grid, such as 500 (a Latin hypercube) or random:500"`
}

// Traffic is one load.
type Traffic struct {
	Name        string            `yaml:"name" group:"who posts to whom" help:"name of the load in reports"`
	FromHosts   string            `yaml:"from" unit:"hosts" json:"-" help:"host that posts (default 0), or several, such as 0..15: each is a client of its own, with the threads and queue pairs that the load says"`
	ToHosts     string            `yaml:"to" unit:"hosts" json:"-" help:"target host (default 1, or 0 with link loopback, or the host behind the clients), or several: each client posts to each of them"`
	Pattern     string            `yaml:"pattern" oneof:"incast,all-to-all,permutation" help:"who posts to whom: all clients to one host, each to each other, or each to the next one and the last to the first"`
	Clients     int               `yaml:"clients" min:"1" max:"1023" help:"number of hosts that post, in place of a range of from"`
	Threads     int               `yaml:"threads" group:"threads and objects" min:"1" max:"1024" help:"posting threads (default 1)"`
	Cores       []int             `yaml:"cores" help:"core of each thread, in turn (default: thread i on core i)"`
	Contexts    int               `yaml:"contexts" min:"1" max:"1024" help:"device contexts; each is shared by a block of consecutive threads (default 1)"`
	PDs         int               `yaml:"pds" min:"1" max:"1024" help:"protection domains of each context (default 1)"`
	TD          string            `yaml:"td" oneof:"none,per-thread,independent" help:"thread domain of each queue pair (default none)"`
	QPs         int               `yaml:"qps_per_thread" min:"1" max:"10000" help:"queue pairs of each thread (default 1)"`
	QPSharing   int               `yaml:"qp_sharing" min:"1" max:"1024" help:"threads that share one set of queue pairs (default 1)"`
	CQSharing   int               `yaml:"cq_sharing" min:"0" max:"10000" help:"queue pairs that complete on one CQ; 0: those of a thread share one (default 0)"`
	MRs         int               `yaml:"mrs" group:"memory" min:"1" max:"100000" help:"memory regions of each protection domain (default 1, or one for each thread that measures the latency of writes)"`
	MRSize      uint64            `yaml:"mr_size" unit:"size" min:"8B" max:"64GiB" help:"size of a memory region (default 4KiB, or twice the payload and 64 bytes if that is more)"`
	LocalMRSize uint64            `yaml:"local_mr_size" unit:"size" min:"8B" max:"64GiB" help:"size of a memory region of the host that posts (default: mr_size)"`
	Stride      uint64            `yaml:"stride" unit:"size" min:"8B" max:"64GiB" help:"distance of the places in a region that messages use, a multiple of 8 (default: the payload, or 8B)"`
	PageSize    string            `yaml:"page_size" oneof:"4KiB,2MiB,1GiB" help:"pages of the memory under the memory regions: 4KiB, which are not contiguous, or huge pages (default 4KiB)"`
	OnDemand    string            `yaml:"on_demand" oneof:"none,explicit,implicit" help:"regions of on-demand paging instead of pinned ones: one for each buffer, or one of the whole address space (default none)"`
	OnDemandAt  string            `yaml:"on_demand_at" oneof:"from,to,both" help:"the hosts whose regions page on demand (default both)"`
	Cold        bool              `yaml:"cold" help:"before each message its pages are taken from the process and touched again, so that the host has them and the device does not; with measure: latency"`
	Memory      string            `yaml:"memory" oneof:"host,gpu,udmabuf" help:"memory of the memory regions: the host's, a GPU's (gpu.* of the profile), or the host's as a DMA-BUF from /dev/udmabuf (default host)"`
	MemoryAt    string            `yaml:"memory_at" oneof:"from,to,both" help:"the hosts whose regions are in such memory (default both)"`
	BothWays    bool              `yaml:"both_ways" group:"who posts to whom" help:"the target posts the same on the same queue pairs, and is not measured"`
	Access      string            `yaml:"access" group:"memory" oneof:"fixed,random" help:"which part of the memory regions a message uses (default fixed)"`
	Transport   string            `yaml:"transport" group:"queue pairs" oneof:"rc,uc,ud" help:"service of the queue pairs (default rc); uc carries write, write_imm and send, ud send"`
	Receive     string            `yaml:"receive" oneof:"post,none" help:"none: the target posts no receives, so that datagrams and unreliable messages are dropped there, and reliable ones draw RNR NAKs (default post)"`
	AckTimeout  *int              `yaml:"ack_timeout" min:"0" max:"31" help:"code of the queue pairs' ACK timeout, 0 for none (default 14: 67.1 ms)"`
	RetryCnt    *int              `yaml:"retry_cnt" min:"0" max:"7" help:"retries of the queue pairs after timeouts and NAKs (default 7)"`
	RNRRetry    *int              `yaml:"rnr_retry" min:"0" max:"7" help:"retries of the queue pairs after RNR NAKs; 7: without end (default 7)"`
	RNRTimer    *int              `yaml:"min_rnr_timer" min:"0" max:"31" help:"code of the time that an RNR NAK asks for (default 12: 0.64 ms)"`
	Spread      int               `yaml:"spread" group:"requests" min:"0" max:"32768" help:"requests that a thread keeps outstanding, each on one of its queue pairs chosen at random; 0: queue pairs in turn, each up to its window (default 0)"`
	Verb        string            `yaml:"verb" oneof:"write,write_imm,send,read,cas,faa" help:"operation of each request (default write; send on ud)"`
	Mix         []MixItem         `yaml:"mix" help:"several verbs in turn, as often as their weights say, instead of verb"`
	Payload     uint32            `yaml:"payload" unit:"size" max:"1GiB" help:"bytes of a message (default 2B, 8B with atomics)"`
	Empty       bool              `yaml:"empty" help:"send messages without payload"`
	Inline      bool              `yaml:"inline" help:"post with IBV_SEND_INLINE"`
	InlineMax   uint32            `yaml:"inline_max" unit:"size" max:"1024B" help:"max_inline_data asked for when a queue pair is created (default: what the payload needs)"`
	Window      int               `yaml:"window" min:"1" max:"32768" help:"outstanding requests of a queue pair (default 128)"`
	Postlist    int               `yaml:"postlist" min:"1" max:"1024" help:"requests in each post call (default 1)"`
	SignalEvery int               `yaml:"signal_every" min:"1" max:"32768" help:"signal every N-th request (default 1)"`
	Drain       bool              `yaml:"drain" help:"a thread that has posted its whole window on a queue pair posts there again when all of it has completed"`
	RecvDepth   int               `yaml:"recv_depth" group:"queue pairs" min:"1" max:"32768" help:"receives that a queue pair keeps posted (default 128)"`
	RecvPost    int               `yaml:"recv_postlist" min:"1" max:"1024" help:"receives of a queue pair in each post call (default 1)"`
	MTU         string            `yaml:"mtu" oneof:"256,512,1024,2048,4096" help:"path MTU in bytes (default 1024)"`
	RdAtomic    int               `yaml:"rd_atomic" min:"1" max:"128" help:"outstanding READs and atomics of a queue pair (default 16)"`
	Env         map[string]string `yaml:"env" group:"threads and objects" help:"environment variables of the posting process (MLX5_...)"`
	Work        int64             `yaml:"work" group:"requests" unit:"time" max:"1s" help:"time that a thread computes before each post call (default 0ns)"`
	Churn       string            `yaml:"churn" oneof:"reg_mr,dereg_mr" help:"instead of posting, register regions of mr_size, or deregister regions that were registered before the run: one after each work, at most mrs for each thread"`
	Measure     string            `yaml:"measure" group:"what is measured" oneof:"rate,latency,both" help:"what is measured: the rate with a window full of requests, the latency of one request at a time, or with both the rate and the time from post to completion of its signalled requests (default rate)"`
	Messages    int               `yaml:"messages" min:"1" max:"100000000" help:"messages of each thread; or give duration"`
	Start       int64             `yaml:"start" unit:"time" max:"100s" help:"time from the common start of the loads to that of this one, before its warmup (default 0ns)"`
	Warmup      int64             `yaml:"warmup" unit:"time" max:"100s" help:"time before counting begins (default 0ns)"`
	Duration    int64             `yaml:"duration" unit:"time" max:"100s" help:"time that is counted (default 200us if messages is not given)"`

	// From and To are the hosts of one client.
	From    int
	To      *int
	at      int    // in the file
	group   string // name of the load, of whose clients this is one
	bare    bool   // a payload of 0 is given
	crowded bool   // a client whose threads share cores with another's
}

// MixItem is one verb of a mix.
type MixItem struct {
	Verb   string `yaml:"verb" oneof:"write,write_imm,send,read,cas,faa" required:"true" help:"operation of these requests"`
	Weight int    `yaml:"weight" min:"1" max:"1000" help:"share of the verb, against the weights of the others: 70 and 30 are 7 of 10 messages and 3, spread evenly (default 1)"`
}

// ScenarioSchema returns the JSON schema of scenario files.
func ScenarioSchema() ([]byte, error) { return input.Schema(&Scenario{}, "rdmasim traffic scenario") }

// ScenarioKeys returns the keys of scenario files, for a reference.
func ScenarioKeys() []input.Key { return input.Keys(&Scenario{}) }

// ScenarioInfo is a scenario that comes with the program.
type ScenarioInfo struct{ File, Title string }

// Scenarios returns the scenarios that come with the program.
func Scenarios() ([]ScenarioInfo, error) {
	names, err := fixtures.List("scenarios")
	if err != nil {
		return nil, err
	}
	var all []ScenarioInfo
	for _, n := range names {
		src, err := fixtures.Read("scenarios/" + n)
		if err != nil {
			return nil, err
		}
		s, err := ParseScenario(n, src)
		if err != nil {
			return nil, err
		}
		all = append(all, ScenarioInfo{n, s.Title})
	}
	return all, nil
}

// OpenScenario returns the experiment that runs a scenario file: a path, or the file name of a
// scenario that comes with the program.
func OpenScenario(ctx context.Context, name string) (*Experiment, error) {
	src, err := input.ReadFile(ctx, name)
	if errors.Is(err, os.ErrNotExist) && filepath.Base(name) == name {
		own, oerr := fixtures.Read("scenarios/" + name)
		if oerr == nil {
			src, err = own, nil
		} else {
			known, _ := fixtures.List("scenarios")
			err = fmt.Errorf("%w, and the program comes with no scenario of that name%s", err, input.Suggest(name, known))
		}
	}
	if err != nil {
		return nil, Usagef("cannot read the scenario: %w", err)
	}
	s, err := ParseScenario(name, src)
	if err != nil {
		return nil, &UsageError{err}
	}
	return s.experiment(), nil
}

// ParseScenario reads and checks a scenario file. Its errors carry file, line and
// column.
func ParseScenario(file string, src []byte) (*Scenario, error) {
	s := &Scenario{file: file, text: string(src)}
	doc, err := input.Decode(file, src, s)
	if err != nil {
		return nil, err
	}
	s.doc = doc
	return s, s.check()
}

// Text returns the text of the scenario's file.
func (s *Scenario) Text() string { return s.text }

// Items returns how many loads and fault rules the file has.
func (s *Scenario) Items() (loads, rules int) {
	if s.given == nil {
		return 0, len(s.Faults)
	}
	return len(s.given.Traffic), len(s.Faults)
}

// regions is how many memory regions each protection domain has unless the load says: one, or
// enough for threads that time writes and have a region each.
func (t *Traffic) regions() int {
	if t.Measure == "latency" && len(t.Mix) == 0 && (t.Verb == "write" || t.Verb == "" && t.Transport != "ud") {
		return (t.Threads + t.PDs - 1) / t.PDs
	}
	return 1
}

// atomic reports whether some message of the load is an atomic, which has 8 bytes.
func (t *Traffic) atomic() bool {
	is := func(verb string) bool { return verb == "cas" || verb == "faa" }
	if len(t.Mix) > 0 {
		return slices.ContainsFunc(t.Mix, func(m MixItem) bool { return is(m.Verb) })
	}
	return is(t.Verb)
}

var mtus = map[string]verbs.MTU{"256": verbs.MTU256, "512": verbs.MTU512, "1024": verbs.MTU1024, "2048": verbs.MTU2048, "4096": verbs.MTU4096}

var memoryKinds = map[string]verbs.MemoryKind{"gpu": verbs.MemoryGPU, "udmabuf": verbs.MemoryUdmabuf}

var pageSizes = map[string]uint64{"4KiB": 4 << 10, "2MiB": 2 << 20, "1GiB": 1 << 30}

// load is the traffic in the terms of package workload.
func (t *Traffic) load() *workload.Load {
	l := &workload.Load{
		Name: t.Name, From: t.From, To: *t.To, Threads: t.Threads, Cores: t.Cores, Contexts: t.Contexts, PDs: t.PDs,
		TD: workload.TDKind(t.TD), QPs: t.QPs, QPShare: t.QPSharing, CQShare: t.CQSharing, MRs: t.MRs, MRSize: t.MRSize, LocalMRSize: t.LocalMRSize, Stride: t.Stride, PageSize: pageSizes[t.PageSize],
		Random: t.Access == "random", Transport: workload.Transport(t.Transport), Payload: t.Payload, Inline: t.Inline, InlineMax: t.InlineMax, Window: t.Window,
		Postlist: t.Postlist, SignalEvery: t.SignalEvery, RecvDepth: t.RecvDepth, RecvPostlist: t.RecvPost, MTU: mtus[t.MTU], RdAtomic: uint8(t.RdAtomic),
		NoReceive: t.Receive == "none", MinRNRTimer: code(t.RNRTimer), AckTimeout: code(t.AckTimeout), RetryCnt: code(t.RetryCnt), RNRRetry: code(t.RNRRetry), Spread: t.Spread, Env: t.Env, Latency: t.Measure == "latency", Timed: t.Measure == "both", Messages: t.Messages,
		Work: time.Duration(t.Work / 1000), Churn: workload.Churn(t.Churn), Start: time.Duration(t.Start / 1000), Warmup: time.Duration(t.Warmup / 1000), Duration: time.Duration(t.Duration / 1000),
	}
	l.Cold, l.BothWays, l.Drain = t.Cold, t.BothWays, t.Drain
	if t.OnDemand != "none" {
		l.OnDemand = workload.OnDemand(t.OnDemand)
	}
	if t.OnDemandAt != "both" {
		l.OnDemandAt = workload.End(t.OnDemandAt)
	}
	l.Memory = memoryKinds[t.Memory]
	if t.MemoryAt != "both" {
		l.MemoryAt = workload.End(t.MemoryAt)
	}
	for _, m := range t.Mix {
		l.Mix = append(l.Mix, workload.Mix{Verb: workload.Verb(m.Verb), Weight: max(1, m.Weight)})
	}
	if len(l.Mix) == 0 {
		l.Mix = []workload.Mix{{Verb: workload.Verb(t.Verb), Weight: 1}}
	}
	return l
}

// code is an attribute of queue pairs as package workload has it.
func code(v *int) *uint8 {
	if v == nil {
		return nil
	}
	c := uint8(*v)
	return &c
}
