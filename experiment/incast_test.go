package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// namedRows are the rows of a kind, and of a name unless that is empty.
func namedRows(r *Result, kind, name string) (rows []*table.Row) {
	for _, row := range ofKind(r, kind) {
		if name == "" || row.Get("name") == name {
			rows = append(rows, &row)
		}
	}
	return rows
}

// value is a number of a row, which must have it.
func value(t *testing.T, row *table.Row, key string) float64 {
	t.Helper()
	v, ok := row.Float(key)
	if !ok {
		t.Fatalf("no %s in the row of %v; it has %v", key, row.Get("name"), row.Keys())
	}
	return v
}

const flowsOfTen = `
name: incast
traffic:
  - {name: storm, clients: 6, threads: 2, payload: 64KiB, measure: both, messages: 10, window: 4}
`

// Without flow control an incast loses what does not fit into the switch, waits for ACK timers, and
// says both; with it the port is full.
func TestIncastWithAndWithoutFlowControl(t *testing.T) {
	const port = 100.0 // Gb/s of the profile
	lossy := execute(t, flowsOfTen, Request{})
	clean := execute(t, flowsOfTen, Request{Set: []string{"link.pfc=true", "switch.buffer=4MiB"}})
	a, b := namedRows(lossy, "total", "all")[0], namedRows(clean, "total", "all")[0]
	if g := value(t, b, "gbps"); g < 0.85*port || g > port {
		t.Errorf("with flow control %v Gb/s", g)
	}
	if g := value(t, a, "gbps"); g > 0.2*port || a.Get(LimitedBy) != "ACK timer" {
		t.Errorf("without flow control %v Gb/s, limited by %v", g, a.Get(LimitedBy))
	}
	for _, c := range []struct {
		r     *Result
		words []string
		there bool
	}{{lossy, []string{"the switch dropped", "ACK timers held queue pairs up", "link.pfc=true pauses them"}, true}, {clean, []string{"dropped"}, false}} {
		for _, w := range c.words {
			if strings.Contains(strings.Join(c.r.Notes, "\n"), w) != c.there {
				t.Errorf("%q: %v, in\n%s", w, !c.there, strings.Join(c.r.Notes, "\n"))
			}
		}
	}
	// All flows share the port: the last one ends when its line has carried all bytes.
	bytes := 6 * 2 * 10 * 65536.0
	if least, got := bytes*8/port/1e3, value(t, b, "flow_us_max"); got < least || got > 1.2*least {
		t.Errorf("the last flow took %v us, and the line needs %v", got, least)
	}
	if flow, last := value(t, b, "flow_us_max"), value(t, b, "latency_ns_max")/1e3; last > flow {
		t.Errorf("a message took %v us, and its flow %v", last, flow)
	}
	if n := value(t, b, "samples"); n != 120 {
		t.Errorf("%v messages were timed, want all 120", n)
	}
	if r, want := value(t, b, "gbps"), bytes*8/(value(t, b, "flow_us_max")*1e3); math.Abs(r/want-1) > 0.01 {
		t.Errorf("%v Gb/s, and all bytes over the time of all flows is %v", r, want)
	}
}

// A load of which a request fails for want of packets that the switch dropped has a result too.
func TestLoadsThatDropsEnd(t *testing.T) {
	r := execute(t, `
name: doomed
traffic:
  - {name: storm, clients: 6, payload: 256KiB, window: 16, messages: 50, retry_cnt: 0, ack_timeout: 1}
`, Request{Set: []string{"hca.roce_adp_retrans_en=false", "hca.ack_timeout_min=1", "hca.ack_timeout_floor=0ps", "switch.buffer=64KiB"}})
	if !r.Complete || len(namedRows(r, "total", "")) != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), "RETRY_EXC_ERR") {
		t.Errorf("complete: %v, %d totals, notes:\n%s", r.Complete, len(namedRows(r, "total", "")), strings.Join(r.Notes, "\n"))
	}
}

// What requests of a rate take follows from Little's law: as many as are outstanding, over the
// rate.
func TestLatencyBesideTheRate(t *testing.T) {
	for _, load := range []string{"threads: 1, window: 16", "threads: 4, window: 8, qps_per_thread: 2", "threads: 2, window: 32, signal_every: 4", "threads: 2, qp_sharing: 2, window: 16", "verb: read, window: 8, payload: 4KiB"} {
		r := execute(t, "name: x\ntraffic: [{name: a, measure: both, warmup: 50us, duration: 300us, "+load+"}]", Request{})
		row := namedRows(r, "traffic", "a")[0]
		s, err := loadsOf(t, "", "{name: a, "+load+"}")
		if err != nil {
			t.Fatal(err)
		}
		outstanding := float64(s.Traffic[0].load().Outstanding())
		got := value(t, row, "latency_ns_mean") * value(t, row, "rate_mps") / 1e3
		if got < 0.6*outstanding || got > 1.05*outstanding { // a request that nobody has polled yet is outstanding too
			t.Errorf("%s: rate times latency is %.1f, and %v are outstanding", load, got, outstanding)
		}
		plain := execute(t, "name: x\ntraffic: [{name: a, warmup: 50us, duration: 300us, "+load+"}]", Request{})
		if was := value(t, namedRows(plain, "traffic", "a")[0], "rate_mps"); was != value(t, row, "rate_mps") {
			t.Errorf("%s: %v M/s, and %v without times", load, value(t, row, "rate_mps"), was)
		}
	}
	for _, bad := range []string{"transport: uc", "transport: ud", "spread: 4", "churn: reg_mr"} {
		if _, err := loadsOf(t, "", "{name: a, measure: both, "+bad+"}"); err == nil {
			t.Errorf("measure: both with %s is accepted", bad)
		}
	}
}

// Samples change nothing of a run, and add up to what was delivered.
func TestSamplesOfARun(t *testing.T) {
	req := Request{Set: []string{"link.pfc=true", "switch.buffer=4MiB"}}
	plain := execute(t, flowsOfTen, req)
	req.Every, req.Histogram = 10*time.Microsecond, true
	r := execute(t, flowsOfTen, req)
	for i := range plain.Rows {
		if a, b := plain.Rows[i], r.Rows[i]; !slices.Equal(a.Keys(), b.Keys()) || table.Text(a.Get("rate_mps")) != table.Text(b.Get("rate_mps")) || a.Get("latency_ns_p99") != b.Get("latency_ns_p99") {
			t.Fatalf("row %d is %v with samples", i, b)
		}
	}
	var ahead, lockstep bytes.Buffer
	step := req
	step.Lockstep = true
	if err := errors.Join(r.Write(&ahead, "json"), execute(t, flowsOfTen, step).Write(&lockstep, "json")); err != nil || !bytes.Equal(ahead.Bytes(), lockstep.Bytes()) {
		t.Errorf("samples differ in lockstep (%v)", err)
	}
	sum, before := 0.0, 0.0
	for _, row := range namedRows(r, "series", "storm") {
		g, at := value(t, row, "gbps"), value(t, row, "at_us")
		if sum += g * (at - before) * 1e3 / 8; g > 100 {
			t.Errorf("%v Gb/s at %v us", g, at)
		}
		before = at
	}
	if want := 6 * 2 * 10 * 65536.0; math.Abs(sum/want-1) > 0.001 {
		t.Errorf("samples add up to %v bytes, of %v", sum, want)
	}
	queues := namedRows(r, "queue", "")
	if len(queues) == 0 || slices.ContainsFunc(queues, func(row *table.Row) bool { return row.Get("name") != "to host6/mlx5_0" }) {
		t.Errorf("%d rows of queues, not of the target alone", len(queues))
	}
	full, pauses := 0.0, 0.0
	for _, row := range queues {
		full = max(full, value(t, row, "queue_bytes"))
	}
	for _, row := range namedRows(r, "switch", "") {
		pauses += value(t, row, "pauses")
	}
	if full < 64<<10 || full > 4<<20 || pauses == 0 {
		t.Errorf("the queue held at most %v bytes, and there were %v pause frames", full, pauses)
	}
	for _, of := range []string{"latency", "flow"} {
		n, last, edge := 0.0, 0.0, 0.0
		for _, row := range namedRows(r, "histogram", "storm") {
			if row.Get("of") != of {
				continue
			}
			if f, e := value(t, row, "fraction"), value(t, row, "at_most_ns"); f < last || e < edge {
				t.Errorf("%s: fraction %v behind %v, up to %v behind %v", of, f, last, e, edge)
			} else {
				last, edge = f, e
			}
			n += value(t, row, "count")
		}
		if want := map[string]float64{"latency": 120, "flow": 12}[of]; n != want || last != 1 {
			t.Errorf("%s: %v counted, want %v; the last fraction is %v", of, n, want, last)
		}
	}
}

func TestBins(t *testing.T) {
	for _, values := range [][]float64{{7}, {7, 7, 7}, {1, 2}, {0, 5, 9}, {1000, 1001, 1002, 1500}, {1, 10, 1e9}} {
		edges, counts := bins(values)
		sum := 0
		for i, n := range counts {
			lower := math.Inf(-1)
			if i > 0 {
				lower = edges[i-1]
			}
			in := 0
			for _, v := range values {
				if v > lower && v <= edges[i] {
					in++
				}
			}
			if in != n {
				t.Errorf("%v: bin %d up to %v has %d, want %d", values, i, edges[i], n, in)
			}
			sum += n
		}
		if sum != len(values) || edges[len(edges)-1] != slices.Max(values) {
			t.Errorf("%v: %d values in %d bins up to %v", values, sum, len(edges), edges[len(edges)-1])
		}
	}
	if edges, counts := bins(nil); edges != nil || counts != nil {
		t.Error("no values have bins")
	}
}

// No rate is above what the wire carries, at whatever instants requests complete that tell of many
// others.
func TestRatesStayBelowTheWire(t *testing.T) {
	for _, c := range []struct{ payload, threads, qps, window, signal, postlist, duration, warmup string }{
		{"2", "16", "16", "64", "64", "8", "200us", "0us"}, {"2", "16", "2", "128", "64", "8", "100us", "10us"},
		{"8", "32", "1", "64", "64", "16", "100us", "0us"}, {"256", "8", "2", "64", "64", "8", "50us", "0us"},
		{"64", "16", "1", "128", "16", "16", "100us", "10us"},
	} {
		r := execute(t, "name: x\nprofile: connectx-6dx\ncores: 32\ntraffic: [{name: a, payload: "+c.payload+", threads: "+c.threads+", qps_per_thread: "+c.qps+
			", window: "+c.window+", signal_every: "+c.signal+", postlist: "+c.postlist+", duration: "+c.duration+", warmup: "+c.warmup+"}]", Request{})
		row := namedRows(r, "traffic", "a")[0]
		payload := map[string]float64{"2": 4, "8": 8, "64": 64, "256": 256}[c.payload]
		// Preamble and gap, Ethernet, IPv4, UDP, BTH, RETH, ICRC and FCS.
		wire := 100e9 / 8 / (20 + 14 + 20 + 8 + 12 + 16 + 4 + 4 + payload) / 1e6
		if got := value(t, row, "rate_mps"); got > 1.0005*wire {
			t.Errorf("%+v: %v M/s, and the wire carries %v", c, got, wire)
		}
	}
}

// A single run moves its progress on, up to its end.
func TestProgressOfASingleRun(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{name: a, threads: 4, duration: 3ms}]"))
	if err != nil {
		t.Fatal(err)
	}
	seen, last := map[int]bool{}, -1
	if _, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, func(done, total int, what string) {
		if done < last || total != 1000 || what == "" {
			t.Errorf("%d of %d behind %d: %q", done, total, last, what)
		}
		seen[done], last = true, done
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 5 || last != 1000 {
		t.Errorf("%d steps, the last %d", len(seen), last)
	}
}

// A bound on a load is one on its row, whatever samples of the run are beside it; and samples are
// no changes against a run without.
func TestSamplesAreNoLoads(t *testing.T) {
	req := Request{Set: []string{"link.pfc=true", "switch.buffer=4MiB"}, Every: 10 * time.Microsecond, Histogram: true}
	r := execute(t, flowsOfTen, req)
	least := value(t, namedRows(r, "traffic", "storm")[0], "gbps")
	q, err := ParseRequirement(fmt.Sprintf("storm.gbps >= %v", 0.999*least))
	if err != nil {
		t.Fatal(err)
	}
	if says, met, err := q.Check(r.Rows); err != nil || !met {
		t.Errorf("%s (%v)", says, err)
	}
	q, err = ParseRequirement("queue.queue_bytes < 4194304")
	if err != nil {
		t.Fatal(err)
	}
	if says, met, err := q.Check(r.Rows); err != nil || !met {
		t.Errorf("%s (%v)", says, err)
	}
	plain := execute(t, flowsOfTen, Request{Set: req.Set})
	var same [2]int
	for i, of := range []*Result{r, plain} {
		if err := of.Compare(&Records{File: "old", Name: of.Name, Rows: of.Rows}, nil, nil); err != nil {
			t.Fatal(err)
		}
		same[i] = of.Against.same
	}
	if same[0] != same[1] || same[1] == 0 {
		t.Errorf("%d values of the table are compared with samples, %d without", same[0], same[1])
	}
}

// Timers are no limit of a run that is short: what is under way at its end waits for no longer than
// answers take.
func TestShortRunsWaitForNoTimer(t *testing.T) {
	for _, load := range []string{"window: 1, duration: 3us", "threads: 4, verb: send, payload: 64KiB, window: 1, duration: 2us", "threads: 4, verb: read, window: 2, duration: 2us",
		"threads: 4, payload: 64KiB, window: 16, duration: 2us", "verb: read, window: 1, payload: 64KiB, duration: 30us", "on_demand: explicit, on_demand_at: to, verb: read, mrs: 20, window: 1, duration: 1ms"} {
		r := execute(t, "name: x\ntraffic: [{name: a, "+load+"}]", Request{})
		if limit := namedRows(r, "traffic", "a")[0].Get(LimitedBy); limit == "ACK timer" {
			t.Errorf("%s: limited by %v", load, limit)
		}
	}
}

// Frames that a rule drops are lost too: the note does not say that none was.
func TestNoteOfFramesThatARuleDrops(t *testing.T) {
	r := execute(t, "name: x\ntraffic: [{name: a, messages: 1, payload: 64B}]\nfaults: [{do: drop, count: 1}]", Request{})
	if all := strings.Join(r.Notes, "\n"); strings.Contains(all, "none was dropped") || !strings.Contains(all, "ACK timeouts") {
		t.Errorf("%s", all)
	}
}

// The values that decide how long an ACK timer runs, and that no source gives, are named where it
// limits.
func TestGuessedValuesOfTheAckTimer(t *testing.T) {
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(Guessed("ACK timer", p), func(v profile.Value) bool { return v.Key == "hca.ack_timeout_floor" }) {
		t.Errorf("%v", Guessed("ACK timer", p))
	}
}
