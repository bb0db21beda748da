package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/fixtures"
	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// Scenario is a traffic scenario as its file describes it.
type Scenario struct {
	Name    string            `yaml:"name" required:"true" help:"name of the scenario in reports"`
	Title   string            `yaml:"title" help:"what it shows, in one line"`
	Source  string            `yaml:"source" help:"the publication that it follows"`
	Profile string            `yaml:"profile" help:"device and host profile, as listed by rdmasim profile list"`
	Set     map[string]string `yaml:"set" help:"values of the profile to change, such as uar.bf_conflict: none"`
	Hosts   int               `yaml:"hosts" min:"1" max:"64" help:"number of machines, with one device each (default 2)"`
	Cores   int               `yaml:"cores" min:"1" max:"1024" help:"cores of each host (default 16)"`
	Link    string            `yaml:"link" oneof:"cable,switch,loopback" help:"how the ports are joined (default cable)"`
	Faults  []fault.FileRule  `yaml:"faults" help:"faults on the wire, as in a file for --fault, which replaces them if it is given"`
	Traffic []Traffic         `yaml:"traffic" required:"true" help:"loads that run at the same time"`

	file string
	doc  *input.Doc
	// base is the stored profile, read once for the scenario and what is derived from it.
	base *stored
	// given is the scenario without defaults, which follow from it again when a value changes.
	given *Scenario
}

// Traffic is one load.
type Traffic struct {
	Name        string            `yaml:"name" help:"name of the load in reports"`
	From        int               `yaml:"from" min:"0" max:"63" help:"host that posts (default 0)"`
	To          *int              `yaml:"to" min:"0" max:"63" help:"target host (default 1, or 0 with link loopback)"`
	Threads     int               `yaml:"threads" min:"1" max:"1024" help:"posting threads (default 1)"`
	Cores       []int             `yaml:"cores" help:"core of each thread, in turn (default: thread i on core i)"`
	Contexts    int               `yaml:"contexts" min:"1" max:"1024" help:"device contexts; each is shared by a block of consecutive threads (default 1)"`
	PDs         int               `yaml:"pds" min:"1" max:"1024" help:"protection domains of each context (default 1)"`
	TD          string            `yaml:"td" oneof:"none,per-thread,independent" help:"thread domain of each queue pair (default none)"`
	QPs         int               `yaml:"qps_per_thread" min:"1" max:"10000" help:"queue pairs of each thread (default 1)"`
	QPSharing   int               `yaml:"qp_sharing" min:"1" max:"1024" help:"threads that share one set of queue pairs (default 1)"`
	CQSharing   int               `yaml:"cq_sharing" min:"0" max:"10000" help:"queue pairs that complete on one CQ; 0: those of a thread share one (default 0)"`
	MRs         int               `yaml:"mrs" min:"1" max:"100000" help:"memory regions of each protection domain (default 1, or one for each thread that measures the latency of writes)"`
	MRSize      uint64            `yaml:"mr_size" unit:"size" min:"8B" max:"64GiB" help:"size of a memory region (default 4KiB, or twice the payload and 64 bytes if that is more)"`
	PageSize    string            `yaml:"page_size" oneof:"4KiB,2MiB,1GiB" help:"pages of the memory under the memory regions: 4KiB, which are not contiguous, or huge pages (default 4KiB)"`
	Access      string            `yaml:"access" oneof:"fixed,random" help:"which part of the memory regions a message uses (default fixed)"`
	Transport   string            `yaml:"transport" oneof:"rc,uc,ud" help:"service of the queue pairs (default rc); uc carries write, write_imm and send, ud send"`
	Receive     string            `yaml:"receive" oneof:"post,none" help:"none: the target posts no receives, so that datagrams and unreliable messages are dropped there, and reliable ones draw RNR NAKs (default post)"`
	AckTimeout  *int              `yaml:"ack_timeout" min:"0" max:"31" help:"code of the queue pairs' ACK timeout, 0 for none (default 14: 67.1 ms)"`
	RNRTimer    *int              `yaml:"min_rnr_timer" min:"0" max:"31" help:"code of the time that an RNR NAK asks for (default 12: 0.64 ms)"`
	Spread      int               `yaml:"spread" min:"0" max:"32768" help:"requests that a thread keeps outstanding, each on one of its queue pairs chosen at random; 0: queue pairs in turn, each up to its window (default 0)"`
	Verb        string            `yaml:"verb" oneof:"write,write_imm,send,read,cas,faa" help:"operation of each request (default write; send on ud)"`
	Mix         []MixItem         `yaml:"mix" help:"several verbs in turn, instead of verb"`
	Payload     uint32            `yaml:"payload" unit:"size" max:"1GiB" help:"bytes of a message (default 2B, 8B with atomics)"`
	Empty       bool              `yaml:"empty" help:"send messages without payload"`
	Inline      bool              `yaml:"inline" help:"post with IBV_SEND_INLINE"`
	InlineMax   uint32            `yaml:"inline_max" unit:"size" max:"1024B" help:"max_inline_data asked for when a queue pair is created (default: what the payload needs)"`
	Window      int               `yaml:"window" min:"1" max:"32768" help:"outstanding requests of a queue pair (default 128)"`
	Postlist    int               `yaml:"postlist" min:"1" max:"1024" help:"requests in each post call (default 1)"`
	SignalEvery int               `yaml:"signal_every" min:"1" max:"32768" help:"signal every N-th request (default 1)"`
	RecvDepth   int               `yaml:"recv_depth" min:"1" max:"32768" help:"receives that a queue pair keeps posted (default 128)"`
	RecvPost    int               `yaml:"recv_postlist" min:"1" max:"1024" help:"receives of a queue pair in each post call (default 1)"`
	MTU         string            `yaml:"mtu" oneof:"256,512,1024,2048,4096" help:"path MTU in bytes (default 1024)"`
	RdAtomic    int               `yaml:"rd_atomic" min:"1" max:"128" help:"outstanding READs and atomics of a queue pair (default 16)"`
	Env         map[string]string `yaml:"env" help:"environment variables of the posting process (MLX5_...)"`
	Work        int64             `yaml:"work" unit:"time" max:"1s" help:"time that a thread computes before each post call (default 0ns)"`
	Churn       string            `yaml:"churn" oneof:"reg_mr,dereg_mr" help:"instead of posting, register regions of mr_size, or deregister regions that were registered before the run: one after each work, at most mrs for each thread"`
	Measure     string            `yaml:"measure" oneof:"rate,latency" help:"what is measured (default rate)"`
	Messages    int               `yaml:"messages" min:"1" max:"100000000" help:"messages of each thread; or give duration"`
	Warmup      int64             `yaml:"warmup" unit:"time" help:"time before counting begins (default 0ns)"`
	Duration    int64             `yaml:"duration" unit:"time" max:"100s" help:"time that is counted (default 200us if messages is not given)"`

	bare bool // a payload of 0 is given
}

// MixItem is one verb of a mix.
type MixItem struct {
	Verb   string `yaml:"verb" oneof:"write,write_imm,send,read,cas,faa" required:"true"`
	Weight int    `yaml:"weight" min:"1" max:"1000" help:"how many times in a row the verb is posted (default 1)"`
}

// ScenarioSchema is the JSON schema of scenario files.
func ScenarioSchema() ([]byte, error) { return input.Schema(&Scenario{}, "rdmasim traffic scenario") }

// ScenarioInfo is a scenario that comes with the program.
type ScenarioInfo struct{ File, Title string }

// Scenarios lists the scenarios that come with the program.
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

// Open finds an experiment by name, or makes one of a scenario file: a path, or the
// file name of a scenario that comes with the program.
func Open(ctx context.Context, name string) (*Experiment, error) {
	if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
		return Find(name)
	}
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
		return nil, usage("cannot read the scenario: %w", err)
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
	s := &Scenario{file: file}
	doc, err := input.Decode(file, src, s)
	if err != nil {
		return nil, err
	}
	s.doc = doc
	return s, s.check()
}

// mostLoads bounds the loads of a scenario: of a host's threads there are no more.
const mostLoads = 1024

// check reports what decoding alone cannot see.
func (s *Scenario) check() error {
	if len(s.Traffic) > mostLoads {
		return s.doc.Errorf("traffic", "%d loads are more than the %d that a scenario may have", len(s.Traffic), mostLoads)
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.checkGiven(); err != nil {
		return err
	}
	s.keepGiven()
	s.defaults()
	if _, err := s.profile(); err != nil {
		at := "set"
		if e := (*profileError)(nil); errors.As(err, &e) {
			at = e.at
		}
		return s.doc.Errorf(at, "%v", err)
	}
	if _, err := fault.NewPlan(s.doc, s.Faults); err != nil {
		return err
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		at := "traffic." + strconv.Itoa(i)
		if err := s.checkEnv(at, t.Env); err != nil {
			return err
		}
		if t.From >= s.Hosts || *t.To >= s.Hosts {
			return s.doc.Errorf(at+".to", "from %d to %d: the scenario has hosts 0 to %d", t.From, *t.To, s.Hosts-1)
		}
		if s.Link == "loopback" && t.From != *t.To {
			return s.doc.Errorf(at+".to", "with link: loopback, from and to are the same host")
		}
		if s.Link == "cable" && t.From != *t.To && t.From^1 != *t.To {
			return s.doc.Errorf(at+".to", "from %d to %d: no cable joins them, for cables join hosts 0 and 1, 2 and 3 and so on: give link: switch", t.From, *t.To)
		}
		for _, c := range t.Cores {
			if c < 0 || c >= s.Cores {
				return s.doc.Errorf(at+".cores", "core %d: the hosts have cores 0 to %d", c, s.Cores-1)
			}
		}
		if len(t.Cores) == 0 && t.Threads > s.Cores {
			return s.doc.Errorf(at+".threads", "%d threads on %d cores: name the cores that they run on with cores, or give the hosts more", t.Threads, s.Cores)
		}
		l := t.load()
		if err := l.Validate(); err != nil {
			return s.doc.Errorf(at, "%v", err)
		}
	}
	return nil
}

// checkGiven reports values that contradict each other, before defaults fill in the others. A
// payload of 0 is a message without payload.
func (s *Scenario) checkGiven() error {
	for i := range s.Traffic {
		t := &s.Traffic[i]
		at := "traffic." + strconv.Itoa(i)
		if t.Payload == 0 && s.doc != nil && s.doc.Has(at+".payload") {
			t.bare = true
		}
		switch {
		case t.Empty && t.Payload > 0:
			return s.doc.Errorf(at+".empty", "empty is true and payload is %s: leave one out, or let payload be 0", input.FormatSize(uint64(t.Payload)))
		case t.Verb != "" && len(t.Mix) > 0:
			return s.doc.Errorf(at+".mix", "the load has a mix, and verb is %s: leave one out", t.Verb)
		case t.Messages == 0 && t.Duration == 0 && s.doc != nil && s.doc.Has(at+".duration"):
			return s.doc.Errorf(at+".duration", "duration is 0: give the time that is counted, such as 200us, or messages")
		case t.Duration > 0 && t.Duration < 1000:
			return s.doc.Errorf(at+".duration", "duration is less than 1ns: give the time that is counted, such as 200us")
		}
	}
	return nil
}

// keepGiven keeps the scenario as it is.
func (s *Scenario) keepGiven() {
	g := *s
	g.Traffic = slices.Clone(s.Traffic)
	s.given = &g
}

func (s *Scenario) defaults() {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if s.Link == "" {
		s.Link = "cable"
	}
	if s.Link == "loopback" {
		def(&s.Hosts, 1)
	}
	def(&s.Hosts, 2)
	def(&s.Cores, 16)
	if s.Profile == "" {
		s.Profile = profile.Default
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.Name == "" {
			t.Name = "load" + strconv.Itoa(i)
		}
		if t.To == nil {
			to := min(1, s.Hosts-1)
			t.To = &to
		}
		for _, d := range []struct {
			v *int
			d int
		}{{&t.Threads, 1}, {&t.Contexts, 1}, {&t.PDs, 1}, {&t.QPs, 1}, {&t.QPSharing, 1}, {&t.Window, 128},
			{&t.Postlist, 1}, {&t.SignalEvery, 1}, {&t.RecvDepth, 128}, {&t.RecvPost, 1}, {&t.RdAtomic, 16}} {
			def(d.v, d.d)
		}
		def(&t.MRs, t.regions())
		if t.TD == "" {
			t.TD = "none"
		}
		if t.Verb == "" {
			t.Verb = "write"
			if t.Transport == "ud" {
				t.Verb = "send"
			}
		}
		if t.Payload == 0 && !t.Empty && !t.bare {
			t.Payload = 2
			if t.atomic() {
				t.Payload = 8
			}
		}
		if t.MRSize == 0 {
			t.MRSize = max(4096, 2*uint64(t.Payload)+64)
		}
		if t.PageSize == "" {
			t.PageSize = "4KiB"
		}
		if t.MTU == "" {
			t.MTU = "1024"
		}
		if t.Messages == 0 && t.Duration == 0 {
			t.Duration = 200_000_000
		}
	}
}

// regions is how many memory regions each protection domain has unless the load says: one, or enough for threads that
// time writes and have a region each.
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

var pageSizes = map[string]uint64{"4KiB": 4 << 10, "2MiB": 2 << 20, "1GiB": 1 << 30}

// load is the traffic in the terms of package workload.
func (t *Traffic) load() *workload.Load {
	l := &workload.Load{
		Name: t.Name, From: t.From, To: *t.To, Threads: t.Threads, Cores: t.Cores, Contexts: t.Contexts, PDs: t.PDs,
		TD: workload.TDKind(t.TD), QPs: t.QPs, QPShare: t.QPSharing, CQShare: t.CQSharing, MRs: t.MRs, MRSize: t.MRSize, PageSize: pageSizes[t.PageSize],
		Random: t.Access == "random", Transport: workload.Transport(t.Transport), Payload: t.Payload, Inline: t.Inline, InlineMax: t.InlineMax, Window: t.Window,
		Postlist: t.Postlist, SignalEvery: t.SignalEvery, RecvDepth: t.RecvDepth, RecvPostlist: t.RecvPost, MTU: mtus[t.MTU], RdAtomic: uint8(t.RdAtomic),
		NoReceive: t.Receive == "none", MinRNRTimer: code(t.RNRTimer), AckTimeout: code(t.AckTimeout), Spread: t.Spread, Env: t.Env, Latency: t.Measure == "latency", Messages: t.Messages,
		Work: time.Duration(t.Work / 1000), Churn: workload.Churn(t.Churn), Warmup: time.Duration(t.Warmup / 1000), Duration: time.Duration(t.Duration / 1000),
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

// profileError is what is wrong with the profile that a scenario asks for, and where the
// scenario says so.
type profileError struct {
	at  string
	err error
}

func (e *profileError) Error() string { return e.err.Error() }

// stored is a profile as it is stored, by the name that it was asked for.
type stored struct {
	name string
	p    *profile.Profile
}

// profile is the scenario's profile with its changes, in the order of their keys.
func (s *Scenario) profile() (*profile.Profile, error) {
	name := cmp.Or(s.Profile, profile.Default)
	if s.base == nil || s.base.name != name {
		p, err := profile.Load(name)
		if err != nil {
			return nil, &profileError{"profile", err}
		}
		s.base = &stored{name, p}
	}
	p := s.base.p.Clone()
	keys := make([]string, 0, len(s.Set))
	for k := range s.Set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if err := p.Set(k, s.Set[k]); err != nil {
			return nil, &profileError{"set." + k, err}
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// with is a copy of the scenario with values changed by dotted path, checked once all
// are in place; a key that is neither the scenario's nor its traffic's is one of the
// profile.
func (s *Scenario) with(changes ...sweepValue) (*Scenario, error) {
	c := *cmp.Or(s.given, s)
	c.base = s.base
	c.Traffic = append([]Traffic(nil), c.Traffic...)
	c.Faults = append([]fault.FileRule(nil), s.Faults...)
	c.Set = map[string]string{}
	for k, v := range s.Set {
		c.Set[k] = v
	}
	for _, ch := range changes {
		head, _, dotted := strings.Cut(ch.key, ".")
		if dotted && head != "traffic" && head != "set" && head != "faults" {
			c.Set[ch.key] = ch.val
		} else if err := input.Set(&c, ch.key, ch.val); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", ch.key, ch.val, err)
		}
		c.zero(ch.key)
	}
	for _, ch := range changes {
		var i int
		if _, err := fmt.Sscanf(ch.key, "traffic.%d.duration", &i); err == nil && c.Traffic[i].Duration == 0 && c.Traffic[i].Messages == 0 {
			return nil, fmt.Errorf("%s=%s: give the time that is counted, such as 200us, or messages", ch.key, ch.val)
		}
	}
	if _, err := c.profile(); err != nil && !inFile(s, err) {
		return nil, err
	}
	return &c, c.check()
}

// zero notes a payload of 0 that a change gives: nothing, or 0, is otherwise the default.
func (s *Scenario) zero(key string) {
	p := strings.Split(key, ".")
	if len(p) == 3 && p[0] == "traffic" && p[2] == "payload" {
		i, _ := strconv.Atoi(p[1]) // it was set
		s.Traffic[i].bare = s.Traffic[i].Payload == 0
	}
}

// inFile reports whether the scenario as its file has it already has the error: then
// the file is the place to name.
func inFile(s *Scenario, err error) bool {
	_, own := s.profile()
	return own != nil && own.Error() == err.Error()
}

// execute is Experiment.Execute for a scenario file: --set and --sweep name values
// of the file, or of the profile.
func (s *Scenario) execute(ctx context.Context, x *Experiment, req Request, progress func(done, total int, what string)) (res *Result, err error) {
	var changes []sweepValue
	if req.Profile != "" {
		if _, err := profile.Load(req.Profile); err != nil {
			return nil, usage("--profile: %w", err)
		}
		changes = append(changes, sweepValue{"profile", req.Profile})
	}
	for _, kv := range req.Set {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, usage("--set %q is not of the form key=value", kv)
		}
		if k == "name" {
			return nil, usage("--set %s: the name is that of the files, and the file of the scenario gives it", kv)
		}
		changes = append(changes, sweepValue{k, v})
	}
	base, err := s.with(changes...)
	if err != nil {
		return nil, usage("--set: %w", err)
	}
	points, err := req.points(func(k, _ string) error {
		if k == "name" { // a column of the result has that name
			return errors.New("the name changes nothing in a run")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	shared := map[string]int{} // points in which loads share cores
	for _, pt := range points {
		sc, err := base.with(pt...)
		if err != nil {
			return nil, usage("--sweep: %w", err)
		}
		for _, what := range sc.sharedCores() {
			shared[what]++
		}
	}
	if len(points) > 1 && req.Trace != "" {
		return nil, usage("--trace records a single run: leave out --sweep")
	}
	prof, err := base.profile()
	if err != nil {
		return nil, &UsageError{err}
	}
	rec, err := req.recorder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { rec.notes(res); err = rec.end(err) }()
	res = &Result{Name: s.Name, Version: req.Version, Profile: base.Profile, ProfileHash: prof.Hash(), Seed: req.Seed,
		Hypotheses: []string{}, Rows: []Row{}, Notes: []string{}, Columns: x.Columns}
	if len(points) > 1 {
		res.Columns = append(sweepKeys(points[0]), res.Columns...)
		res.Plots = sweepPlots(s.Name, points)
	}
	if s.Source != "" {
		res.Note("Source of the scenario: %s", s.Source)
	}
	for i, pt := range points {
		sc, err := base.with(pt...)
		if err != nil {
			return res, usage("--sweep: %w", err)
		}
		p, err := sc.profile()
		if err != nil {
			return res, usage("--sweep: %w", err)
		}
		res.Hypotheses = union(res.Hypotheses, p.Hypotheses())
		if progress != nil {
			progress(i, len(points), s.Name)
		}
		if req.Fault == "" && len(sc.Faults) > 0 {
			plan, err := fault.NewPlan(sc.doc, sc.Faults)
			if err != nil {
				return res, &UsageError{err}
			}
			rec.expect(plan)
		}
		res.addProfile(sc.Profile, p.Hash(), pt)
		env := &Env{Ctx: ctx, Seed: req.Seed, Out: res, prefix: pt, rec: rec, counters: req.Counters}
		for _, what := range sc.sharedCores() {
			if shared[what] == len(points) {
				res.Note("%s", what)
			} else {
				env.Note("%s", what)
			}
		}
		if err := sc.emit(env); err != nil {
			return res, failedPoint(res, pt, err)
		}
	}
	if progress != nil {
		progress(len(points), len(points), "done")
	}
	res.Complete = true
	return res, nil
}

// failedPoint is the error that ends a run; of a sweep it names the point, and the result says that it stays.
func failedPoint(res *Result, pt []sweepValue, err error) error {
	if len(pt) == 0 || errors.Is(err, ErrInterrupted) {
		return err
	}
	if len(res.Rows) > 0 {
		res.Note("The sweep ended at %s: %v", pointName(pt), err)
	}
	wrapped := fmt.Errorf("%s: %w", pointName(pt), err)
	if bad := (*UsageError)(nil); errors.As(err, &bad) {
		return &UsageError{wrapped}
	}
	return wrapped
}

// addProfile names the profile of a point, if the sweep is over profiles.
func (r *Result) addProfile(name, hash string, pt []sweepValue) {
	if !slices.Contains(sweepKeys(pt), "profile") {
		return
	}
	if len(r.Rows) == 0 { // the first point
		r.Profile, r.ProfileHash = name, hash
	} else if !slices.Contains(strings.Split(r.Profile, ", "), name) {
		r.Profile, r.ProfileHash = r.Profile+", "+name, r.ProfileHash+", "+hash
	}
}

// sharedCores names loads whose threads share cores although nobody asked for it: threads are
// put on cores 0, 1, ... of their host unless cores names others.
func (s *Scenario) sharedCores() (out []string) {
	type place struct{ host, core int }
	users := map[place]int{}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if len(t.Cores) > 0 {
			continue
		}
		l := t.load()
		for _, side := range []struct{ host, threads int }{{t.From, t.Threads}, {*t.To, l.TargetThreads()}} {
			host, shared := side.host, i
			for core := range side.threads {
				if first, ok := users[place{host, core}]; ok {
					shared = first
				} else {
					users[place{host, core}] = i
				}
			}
			if shared != i {
				out = append(out, fmt.Sprintf("Loads %s and %s share cores of host%d, because neither names its own: cores: [...] puts the threads of a load elsewhere.", s.Traffic[shared].Name, t.Name, host))
			}
		}
	}
	return out
}
