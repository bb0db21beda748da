package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/workload"
)

// mostClients bounds the clients of all loads: as many as an all-to-all of 64 hosts has.
const mostClients = 64 * 63

// mostHosts is how many hosts a scenario may have.
const mostHosts = testbed.MostHosts

// pair is the two hosts of a client: one posts to the other.
type pair struct{ from, to int }

// several says whether the load of a file is that of several clients.
func (t *Traffic) several() bool {
	return t.Pattern != "" || t.Clients > 0 || strings.Contains(t.FromHosts+t.ToHosts, "..")
}

// span reads hosts as a file gives them: one, or the first and the last.
func span(text string) (hosts []int, err error) {
	first, last, ranged := strings.Cut(text, "..")
	if !ranged {
		last = first
	}
	var ends [2]int
	for i, s := range []string{first, last} {
		n, err := input.Whole(s)
		if err != nil || n >= mostHosts {
			return nil, fmt.Errorf("%q is not a host: hosts are 0 to %d, and 0..15 is sixteen of them", text, mostHosts-1)
		}
		ends[i] = int(n)
	}
	if ends[0] > ends[1] {
		return nil, fmt.Errorf("%q runs backwards: write %d..%d", text, ends[1], ends[0])
	}
	for h := ends[0]; h <= ends[1]; h++ {
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// hostsOf are the hosts of one end of load i: nil if the file does not say.
func (s *Scenario) hostsOf(i int, key, text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	hosts, err := span(text)
	if err != nil {
		return nil, s.doc.Errorf("traffic."+strconv.Itoa(i)+"."+key, "%v", err)
	}
	return hosts, nil
}

// pairs are the clients of load i.
func (s *Scenario) pairs(i int) ([]pair, error) {
	t := &s.Traffic[i]
	at := "traffic." + strconv.Itoa(i)
	from, err := s.hostsOf(i, "from", t.FromHosts)
	if err != nil {
		return nil, err
	}
	to, err := s.hostsOf(i, "to", t.ToHosts)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Clients > 0 && len(from) > 1 && len(from) != t.Clients:
		return nil, s.doc.Errorf(at+".clients", "clients is %d, and from names %d hosts: leave one out", t.Clients, len(from))
	case t.Clients == 0 && from == nil && t.Pattern != "" && t.Pattern != "incast" && s.Hosts > 0:
		from = upTo(0, s.Hosts)
	case t.Clients == 0 && from == nil && t.Pattern != "":
		return nil, s.doc.Errorf(at+".pattern", "pattern %s of how many hosts? Give clients, such as clients: 16, or from, such as from: 0..15", t.Pattern)
	case t.Clients > 0 && len(from) <= 1:
		first := 0
		if from != nil {
			first = from[0]
		}
		from = upTo(first, first+t.Clients)
	}
	if from == nil {
		from = []int{0}
	}
	first, last := from[0], from[len(from)-1]
	if n := last + 1; n > mostHosts {
		return nil, s.doc.Errorf(at+".clients", "%d clients need hosts up to %d: a scenario has at most %d hosts", len(from), last, mostHosts)
	}
	if t.Pattern == "all-to-all" || t.Pattern == "permutation" {
		if to != nil {
			return nil, s.doc.Errorf(at+".to", "with pattern: %s, the hosts of from are the targets too: leave to out", t.Pattern)
		}
		if len(from) < 2 {
			return nil, s.doc.Errorf(at+".pattern", "pattern %s needs two hosts or more", t.Pattern)
		}
		to = from
	}
	if to == nil && (len(from) > 1 || t.Pattern == "incast" || t.Clients > 0) {
		// The target is a host that does not post: the one behind the clients, or the one before.
		if last+1 < mostHosts && (s.Hosts == 0 || last+1 < s.Hosts) || first == 0 {
			to = []int{last + 1}
		} else {
			to = []int{first - 1}
		}
	}
	if to == nil {
		to = []int{1}
	}
	if t.Pattern == "incast" && len(to) > 1 {
		return nil, s.doc.Errorf(at+".to", "pattern incast has one target, and to names %d hosts", len(to))
	}
	var all []pair
	for k, f := range from {
		if t.Pattern == "permutation" {
			all = append(all, pair{f, from[(k+1)%len(from)]})
			continue
		}
		for _, h := range to {
			if h != f || len(from) == 1 && len(to) == 1 {
				all = append(all, pair{f, h})
			}
		}
	}
	return all, nil
}

func upTo(first, end int) (hosts []int) {
	for h := first; h < end; h++ {
		hosts = append(hosts, h)
	}
	return hosts
}

// clients are those of each load; none of a load that a file or a program gives two single hosts.
// Hosts and link become what the clients need, where the file leaves them out.
func (s *Scenario) clients() (groups [][]pair, err error) {
	hosts, far := 0, false
	for i := range s.Traffic {
		t := &s.Traffic[i]
		t.at = i
		if !t.several() {
			if err := s.ends(i); err != nil {
				return nil, err
			}
			groups = append(groups, nil)
			continue
		}
		pairs, err := s.pairs(i)
		if err != nil {
			return nil, err
		}
		need := needs(pairs)
		if s.Hosts > 0 && need > s.Hosts && s.Link != "loopback" {
			return nil, s.doc.Errorf("traffic."+strconv.Itoa(i), "the clients and targets of the load need hosts 0 to %d, and hosts is %d: give hosts: %d, leave hosts out, or name fewer clients", need-1, s.Hosts, need)
		}
		hosts = max(hosts, need)
		for _, p := range pairs {
			far = far || p.from != p.to && p.from^1 != p.to
		}
		groups = append(groups, pairs)
	}
	if hosts > 0 {
		if s.Hosts == 0 && s.Link != "loopback" {
			s.Hosts = max(hosts, 2)
		}
		if s.Link == "" && far {
			s.Link = "switch"
		}
	}
	return groups, nil
}

// needs is how many hosts the clients need.
func needs(pairs []pair) (hosts int) {
	for _, p := range pairs {
		hosts = max(hosts, p.from+1, p.to+1)
	}
	return hosts
}

// ends sets the hosts of a load that has one at each end; of one that a program made they are set.
func (s *Scenario) ends(i int) error {
	t := &s.Traffic[i]
	from, err := s.hostsOf(i, "from", t.FromHosts)
	if err != nil {
		return err
	}
	to, err := s.hostsOf(i, "to", t.ToHosts)
	if err != nil {
		return err
	}
	if from != nil {
		t.From = from[0]
	}
	if to != nil {
		t.To = &to[0]
	}
	return nil
}

// expand puts a load for each client in place of the loads that have some.
func (s *Scenario) expand(groups [][]pair) error {
	var all []Traffic
	taken := map[place]bool{}
	for i, t := range s.Traffic {
		if groups[i] == nil {
			all = append(all, t)
			continue
		}
		for _, p := range groups[i] {
			c := t
			c.group, c.From, c.To = t.Name, p.from, &p.to
			c.Name = fmt.Sprintf("%s/%d-%d", t.Name, p.from, p.to)
			if len(c.Cores) == 0 {
				c.seat(taken, s.Cores)
			}
			all = append(all, c)
		}
		if len(all) > mostClients {
			return s.doc.Errorf("traffic."+strconv.Itoa(i), "the loads have more than %d clients together", mostClients)
		}
	}
	s.Traffic = all
	return nil
}

// place is a core of a host.
type place struct{ host, core int }

// seat gives the threads of a client cores of its host that other clients do not have. Threads that
// serve a client run on the same cores of the target.
func (t *Traffic) seat(taken map[place]bool, cores int) {
	hosts := []int{t.From}
	if l := t.load(); l.TargetThreads() > 0 {
		hosts = append(hosts, *t.To)
	}
	free := func(core int) bool {
		return !slices.ContainsFunc(hosts, func(h int) bool { return taken[place{h, core}] })
	}
	t.Cores = nil
	for core := 0; core < cores && len(t.Cores) < t.Threads; core++ {
		if free(core) {
			t.Cores = append(t.Cores, core)
		}
	}
	t.crowded = len(t.Cores) < t.Threads
	for core := 0; len(t.Cores) < t.Threads; core++ {
		t.Cores = append(t.Cores, core%cores)
	}
	for _, core := range t.Cores {
		for _, h := range hosts {
			taken[place{h, core}] = true
		}
	}
}

// set is the loads from first up to end, of one group or a single one.
type set struct {
	name       string
	first, end int
}

// rowOf is the row of a load of the file, or of all. each are the rows of the clients.
func (out *Outcome) rowOf(kind string, g set, each []*table.Row) table.Row {
	if g.end-g.first == 1 {
		return *each[g.first]
	}
	row := aggregate(kind, g.name, out.loads[g.first:g.end], out.Results[g.first:g.end])
	raised, again := 0.0, false
	for _, r := range each[g.first:g.end] {
		if v, ok := r.Float(raisedRate); ok {
			raised, again = raised+v, true
		}
	}
	for _, key := range []string{LimitedBy, limitUnit, limitPercent, Confirmed} { // they are of the run
		if v := each[g.first].Get(key); v != nil {
			row.Set(key, v)
		}
	}
	if again {
		row.Set(raisedRate, raised)
	}
	return row
}

// noteClients notes what is to be said of the rates of a load: of several clients of which much is
// to be said, of the first.
func (out *Outcome) noteClients(env *Env, g set) {
	said, what := 0, ""
	for i := g.first; i < g.end; i++ {
		if why := out.why(i); why != "" {
			if said++; said == 1 {
				what = fmt.Sprintf("Load %s: %s", out.loads[i].Name, why)
			}
		}
	}
	switch {
	case said > 1:
		env.Note("%s The same kind of thing holds for %d of its %d clients.", what, said, g.end-g.first)
	case said == 1:
		env.Note("%s", what)
	}
	if why := fewSamples(out.loads[g.first], out.Results[g.first:g.end]...); why != "" {
		env.Note("Load %s: %s", g.name, why)
	}
}

// sets are the loads of the file, each with its clients.
func (out *Outcome) sets(s *Scenario) (all []set) {
	for i := range out.Results {
		t := &s.Traffic[i]
		if n := len(all); n > 0 && t.group != "" && all[n-1].name == t.group {
			all[n-1].end = i + 1
			continue
		}
		name := t.group
		if name == "" {
			name = t.Name
		}
		all = append(all, set{name, i, i + 1})
	}
	return all
}

// aggregate is the row of several clients at once: the rate of all, from the first that began to
// the last that ended, percentiles over all their messages, and how evenly they fare.
func aggregate(kind, name string, loads []*workload.Load, results []*workload.Result) table.Row {
	var row table.Row
	threads, rate, gbps, delivered, bytes, completed := 0, 0.0, 0.0, 0.0, 0.0, uint64(0)
	var goodputs, us []float64
	var ns samples
	var measured []*workload.Result
	var ones, payloads []float64
	var span workload.Result
	timed, rated, same := false, false, true
	for i, r := range results {
		l := loads[i]
		threads += l.Threads
		if l.Latency {
			timed = true
			ns.addAll(r)
			continue
		}
		if l.Churn != "" {
			continue
		}
		if l.Timed {
			timed = true
			ns.addAll(r)
		}
		us = append(us, flows(l, r)...)
		same = same && (!rated || r.Begin == span.Begin && r.End == span.End)
		if !rated {
			span.Begin, span.End = r.Begin, r.End
		}
		span.Begin, span.End = min(span.Begin, r.Begin), max(span.End, r.End)
		rated = true
		measured, ones, payloads = append(measured, r), append(ones, 1), append(payloads, float64(l.Payload))
		rate += r.Rate()
		g := r.Rate() * float64(l.Payload) * 8 / 1e9
		gbps += g
		goodputs = append(goodputs, g)
		for k := range r.Threads {
			delivered += r.Threads[k].Delivered
			bytes += r.Threads[k].Delivered * float64(l.Payload)
			completed += r.Threads[k].Completed
		}
	}
	row.Set("row", kind).Set("name", name).Set("clients", len(results)).Set("threads", threads)
	if long := (span.End - span.Begin).Seconds(); rated && !same && long > 0 { // rates of different times have no sum
		rate, gbps = delivered/long, bytes*8/1e9/long
	}
	if rated {
		row.Set("rate_mps", rate/1e6).Set("gbps", gbps).Set("messages", delivered).Set("messages_all", completed)
		row.Set("client_gbps_min", slices.Min(goodputs)).Set("client_gbps_max", slices.Max(goodputs)).Set("jain", jain(goodputs))
	}
	if c, ok := workload.Together(measured, ones); ok {
		row.Set(table.RateInterval, 100*c)
	}
	if c, ok := workload.Together(measured, payloads); ok && slices.Max(payloads) > slices.Min(payloads) {
		row.Set(table.GoodputInterval, 100*c)
	}
	flowTimes(&row, us)
	if timed {
		percentiles(&row, &ns)
	}
	return row
}

// nanoseconds are the latencies of all messages of a load.
func nanoseconds(r *workload.Result) (ns []float64) {
	for i := range r.Threads {
		for _, d := range r.Threads[i].Latency {
			ns = append(ns, float64(d.Nanoseconds()))
		}
	}
	return ns
}
